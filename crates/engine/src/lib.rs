//! TODO
#![no_std]
extern crate alloc;

pub mod tree;
