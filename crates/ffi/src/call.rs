//! A call from C, and the code that it returns.

use std::env;
use std::error::Error;
use std::ffi::c_int;
use std::io::{Write, stderr};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `PMI_SUCCESS` and `PMI2_SUCCESS`.
const SUCCESS: c_int = 0;

/// `PMI_FAIL` and `PMI2_FAIL`.
const FAIL: c_int = -1;

/// `PMI_ERR_INVALID_ARG` and `PMI2_ERR_INVALID_ARG`: null where something must be.
pub const ERR_INVALID_ARG: c_int = 3;

/// Does what C has called for. A panic, which C could not pass on, fails.
pub fn call(work: impl FnOnce() -> Result<(), c_int>) -> c_int {
    // What a panic leaves half done is behind locks, whose poison is looked past: each change of state is one step.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => FAIL,
    }
}

/// Tells a user who has asked for it, by one of these variables, what a code cannot say.
pub fn tell(error: &dyn Error, variables: &[&str]) {
    let is_asked = |name: &&str| env::var_os(name).is_some_and(|value| value != "0");
    if !variables.iter().any(is_asked) {
        return;
    }
    let mut chain = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        chain += &format!(": {error}");
        cause = error.source();
    }
    let _ = writeln!(stderr(), "error: {chain}"); // where that fails, nobody listens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_code() {
        assert_eq!(call(|| Ok(())), SUCCESS);
        assert_eq!(call(|| Err(14)), 14);
        assert_eq!(call(|| panic!("within a test")), FAIL);
    }
}
