//! Workloads in the formats of other tools.

pub mod goal;
pub(crate) mod order;
