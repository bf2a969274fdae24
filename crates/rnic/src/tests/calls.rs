//! Short calls of ends, for tests.

use model::annex::{Envelope, Notice, Sack, Selective};
use model::transport::{Arrived, Heard, Inbound, Progress, Reception, Reply, Returned, Sacked};
use model::{Delivery, PortIndex, Psn, Receiver, Sender, Time};

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

    /// Takes a reply with a map that answers no probe; the packet that it answers was sent `trip` before, or at an unknown time.
    fn on_sack(
        &mut self,
        now: Time,
        reply: Reply,
        selective: Selective,
        (sack, trip): (&Sack, Time),
        window: u64,
    ) -> (Progress, Delivery) {
        let sacked = Sacked { selective, sack: *sack, trip, assumed: None, window };
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

/// Calls of a receiver, each with one kind of arrival or for one part of an answer.
pub(crate) trait ReceiverCalls: Receiver {
    /// Takes a packet that is a message of its own.
    fn on_data(&mut self, now: Time, psn: Psn, marked: bool, last: bool) -> Reception {
        let envelope = Envelope { first: psn, packets: 1, attempt: 0 };
        self.on_arrived(now, Arrived { psn, frame: 1, marked, last, asks: last, envelope })
    }

    fn on_arrived(&mut self, now: Time, packet: Arrived) -> Reception {
        self.on_arrival(now, Inbound::Data(packet)).0
    }

    fn on_notice(&mut self, now: Time, notice: Notice, marked: bool) -> Reception {
        self.on_arrival(now, Inbound::Notice { notice, marked }).0
    }

    fn on_cut(&mut self, now: Time, psn: Psn, marked: bool, last_hop: bool) -> Reception {
        self.on_arrival(now, Inbound::Headers { psn, marked, last_hop }).0
    }

    fn expected(&self) -> u64 {
        self.standing().expected
    }

    fn completed(&self) -> u64 {
        self.standing().completed
    }

    fn held(&self) -> u64 {
        self.standing().held
    }

    fn deadline(&self) -> Time {
        self.standing().deadline
    }

    fn selective(&self) -> Selective {
        self.telling(0, PortIndex(0)).selective
    }

    fn crowded(&self) -> bool {
        self.telling(0, PortIndex(0)).crowded
    }

    fn sack(&self) -> Sack {
        self.telling(0, PortIndex(0)).sack
    }
}

impl<R: Receiver + ?Sized> ReceiverCalls for R {}
