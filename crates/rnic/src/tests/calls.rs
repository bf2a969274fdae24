//! Short calls of ends, for tests.

use model::annex::{Envelope, Sack, Selective};
use model::transport::{Delivery, Heard, Progress, Reply, Returned, Sacked};
use model::{Psn, Sender, Time};

/// Calls of a sender, each with one of many arguments.
pub(crate) trait SenderCalls: Sender {
    /// Posts a message of frames of 1 B.
    fn post(&mut self, packets: u64) {
        self.post_message(packets, 1, 1);
    }

    fn next(&mut self, now: Time, window: u64) -> Option<(u64, bool)> {
        self.send(now, window).map(|sent| (sent.seq, sent.again))
    }

    fn on_reply(&mut self, now: Time, reply: Reply) -> Progress {
        self.hear(now, &Heard::Reply(reply)).0
    }

    fn on_selective(&mut self, now: Time, reply: Reply, selective: Selective) -> Progress {
        self.hear(now, &Heard::Named(reply, selective)).0
    }

    /// Takes a reply with a map that answers no probe.
    fn on_sack(
        &mut self,
        now: Time,
        reply: Reply,
        selective: Selective,
        sack: &Sack,
        window: u64,
    ) -> (Progress, Delivery) {
        let sacked = Sacked { selective, sack: *sack, trip: Time::ZERO, assumed: None, window };
        self.hear(now, &Heard::Sacked(reply, sacked))
    }

    fn on_returned(
        &mut self,
        now: Time,
        psn: Psn,
        envelope: Envelope,
        last_hop: bool,
        window: u64,
    ) -> (Progress, Delivery) {
        self.hear(now, &Heard::Returned(Returned { psn, envelope, last_hop, window }))
    }

    fn una(&self) -> u64 {
        self.position().una
    }

    fn high(&self) -> u64 {
        self.position().high
    }

    fn deadline(&self) -> Time {
        self.position().deadline
    }

    fn on_timeout(&mut self, now: Time) {
        self.on_deadline(now);
    }
}

impl<S: Sender + ?Sized> SenderCalls for S {}
