//! A host: its queue pairs, the order in which they send, its timers, and its part in the workload.
//!
//! Both engines use it. It knows nothing of ports, queues or windows.
//!
//! | file | content |
//! |---|---|
//! | [`nic`] | the host's state; arrivals and timers |
//! | [`queue_pair`] | state of a queue pair at its sender and at its receiver |
//! | [`ready`] | the order in which queue pairs send |
//! | [`classes`] | classes of queue pairs that take turns, if the NIC has any |
//! | [`holding`] | queue pairs that a pause holds back while others go on |
//! | [`sending`], [`receiving`] | packets of a queue pair at its sender and at its receiver |
//! | [`prefetch`] | reads of state before it is needed |
//! | [`intake`] | what a NIC does not take in |
//! | [`receive_queue`] | the queue of a NIC whose host takes data slowly |
//! | [`ingress`] | losses while a port is nearly full |
//! | [`meter`] | ingress of ports over intervals |
//! | [`ports`], [`sharing`] | ports of a NIC that serve all its queue pairs |
//! | [`failover`] | queue pairs that leave a dead port of their NIC, and return |
//! | [`port_status`] | which ports of a NIC and of its peers are down |
//! | [`granting`] | replies and grants at deadlines |
//! | [`message_turns`] | when queue pairs may begin a message, if a rate limits them |
//! | [`cutting`] | what a cut takes from messages |
//! | [`messages`] | when messages are posted, and when they are acknowledged |
//! | [`self_cnps`] | CNPs without marks, while a port is full |
//! | [`timers`] | starts of messages, retransmissions, replies and grants |
//! | [`noting`] | records of the queue pairs that a run records or follows |

mod classes;
mod cnp_ports;
mod cutting;
mod failover;
mod granting;
mod holding;
mod ingress;
mod intake;
mod message_turns;
mod messages;
mod meter;
mod nic;
mod noting;
mod port_status;
mod ports;
mod prefetch;
mod queue_pair;
mod ready;
mod receive_queue;
mod receiving;
mod resting;
mod self_cnps;
mod sending;
mod sharing;
#[cfg(test)]
mod tests;
mod timers;

pub(crate) use nic::{Abroad, Host, Replies};
pub(crate) use receiving::Received;
pub(crate) use resting::quiet_from;
pub(crate) use sharing::Vacancy;
