//! TODO
#![no_std]
extern crate alloc;
