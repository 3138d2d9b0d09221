//! Runs what the engine decided: one command that brings up one agent, or many.
//!
//! This crate knows command lines, quoting, the boot channel, and what remote shells say when they
//! fail. Whom to start, when, and how often is not decided here.

mod bootstrapper;
mod quote;
mod template;

mod request;
mod start;
mod tail;
mod transfer;

pub mod boot;
pub mod bulk;
pub mod deliver;
pub mod diagnose;
pub mod here;

pub use bootstrapper::{
    AGENT_SUBCOMMAND, AgentProgram, Bootstrapper, Command, CommandError, Fallback, own_program,
};
pub use diagnose::{FailureKind, ShellFailure, diagnose};
pub use quote::quote;
pub use request::{Asked, Request, RequestReader};
pub use start::{Helper, StartError, start};
pub use tail::Tail;
pub use template::{ShellTemplate, TemplateError, split};
pub use transfer::Transfer;
