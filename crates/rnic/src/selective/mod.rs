//! Ends whose NACKs and ACKs name single packets besides ePSN.

pub mod in_flight;
pub mod receiver;
pub mod sender;
