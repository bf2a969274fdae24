//! Logs of benchmarks, from reading to suspects. One program, since each would be linked with all of the crate.

mod cases;
mod measured;
mod readers;
