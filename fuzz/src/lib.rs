//! Bolero targets for everything that reads bytes from outside. The targets are in `tests/`, one file for each
//! crate, and each has its corpus beside it; `cargo test -p fuzz` replays the corpora and tries a bounded number
//! of new inputs.
