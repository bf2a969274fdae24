//! Ends that track whole messages: the receiver counts the packets of each message, and the sender repeats single packets only
//! when their headers come back.

pub mod receiver;
pub mod sender;
