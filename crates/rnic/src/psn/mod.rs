//! Ends that know cumulative PSNs alone: an ACK acknowledges all packets up to its PSN, and a NACK all packets before it.

pub mod in_order;
pub mod receiver;
pub mod sender;
