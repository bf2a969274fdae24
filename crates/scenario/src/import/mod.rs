//! Scenarios from files of other tools.

pub(crate) mod foreign;
pub mod goal;
pub mod hpcc;
