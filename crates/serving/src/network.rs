//! What the program asks of a network.

use model::Time;

/// A message from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// Number of the message, which comes back when it has arrived.
    pub id: u64,
    /// Sender.
    pub from: u32,
    /// Receiver.
    pub to: u32,
    /// Bytes.
    pub bytes: u64,
    /// Number of the queue pair among those of the two ranks.
    pub tag: u32,
}

/// A network without any load.
pub trait Network {
    /// Time from the start of all these messages to the arrival of their last byte if nothing else is under way.
    fn alone(&mut self, messages: &[Message]) -> Time;

    /// Time from the start of these requests of READs until their answers can start.
    fn asked(&mut self, requests: &[Message]) -> Time {
        self.alone(requests)
    }

    /// Number of switches between two ranks.
    fn switches(&mut self, from: u32, to: u32) -> u32;
}
