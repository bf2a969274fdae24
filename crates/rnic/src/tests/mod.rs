//! A sender, a receiver and the line between them, for the tests of every recovery mode.

pub(crate) mod bounds;
mod calls;
mod count;
mod custom;
mod dcqcn;
mod dcqcn_hpcc;
mod every_control;
mod every_order;
mod handover;
mod recovery;
mod shortcuts;

pub(crate) use calls::{ReceiverCalls, SenderCalls};

use crate::{AnyReceiver, AnySender, NicConfig, TransportConfig};
use model::annex::{Envelope, Sack, Selective};
use model::transport::{Arrived, Departure, Fate, Reply};
use model::{Psn, Sender as _, Time};
use std::collections::BTreeMap;

/// Default settings with this recovery mode.
pub(crate) fn nic(transport: TransportConfig) -> NicConfig {
    NicConfig { transport, ..NicConfig::default() }
}

/// The table of a recovery mode whose receivers acknowledge every packet, if `ack-every` is 1.
pub(crate) fn acking(name: &str) -> String {
    let own = ["ack-bytes = \"1B\"", "ack-packets = 1", "message-packets = 1", ""];
    let mut tables = own.into_iter().map(|own| format!("[transport.{name}]\n{own}\n"));
    tables.find(|table| toml::from_str::<NicConfig>(table).is_ok()).expect("the mode has a table")
}

/// One-way delay without faults.
const DELAY: Time = Time::from_ns(500);
/// Time between the starts of two packets.
const SPACING: Time = Time::from_ns(100);

#[derive(Clone, Copy, Debug)]
enum Fault {
    Lose,
    Delay(Time),
    /// The packet arrives, and a copy of it so much later.
    Copy(Time),
}

#[derive(Clone, Copy)]
enum Event {
    /// A packet, whether it asks for an ACK, its message, and the time of its transmission.
    Data(u64, bool, Envelope, Time),
    /// A reply, and the time at which the packet was sent that it answers.
    Reply(Reply, Selective, Sack, Time),
}

/// A sender and a receiver with a virtual clock. A fault is set for a transmission or a reply by its ordinal.
pub(crate) struct Pair {
    sender: AnySender,
    receiver: AnyReceiver,
    now: Time,
    line_free: Time,
    events: BTreeMap<(Time, u64), Event>,
    data_faults: BTreeMap<u64, Fault>,
    reply_faults: BTreeMap<u64, Fault>,
    serial: u64,
    replies: u64,
    packets: u64,
    taken: Vec<u32>,
    /// Number of packets in a message; the last of each asks for an ACK.
    pub(crate) message: u64,
    pub(crate) window: u64,
    /// Every transmission, in order.
    pub(crate) sent: Vec<u64>,
    pub(crate) retransmitted: u64,
    pub(crate) copied: u64,
    pub(crate) lost: u64,
    pub(crate) accepted: u64,
    pub(crate) duplicate: u64,
    pub(crate) discarded: u64,
    pub(crate) out_of_order: u64,
    pub(crate) nacks: u64,
    pub(crate) timeouts: u64,
    /// Arrival of the last acknowledgement.
    pub(crate) finished: Time,
}

impl Pair {
    pub(crate) fn new(config: &NicConfig) -> Self {
        let nic = config.build();
        Pair {
            sender: nic.sender(),
            receiver: nic.receiver(),
            now: Time::ZERO,
            line_free: Time::ZERO,
            events: BTreeMap::new(),
            data_faults: BTreeMap::new(),
            reply_faults: BTreeMap::new(),
            serial: 0,
            replies: 0,
            packets: 0,
            taken: Vec::new(),
            message: u64::MAX,
            window: u64::MAX,
            sent: Vec::new(),
            retransmitted: 0,
            copied: 0,
            lost: 0,
            accepted: 0,
            duplicate: 0,
            discarded: 0,
            out_of_order: 0,
            nacks: 0,
            timeouts: 0,
            finished: Time::NEVER,
        }
    }

    pub(crate) fn lose_data(&mut self, transmission: u64) {
        self.data_faults.insert(transmission, Fault::Lose);
    }

    pub(crate) fn delay_data(&mut self, transmission: u64, by: Time) {
        self.data_faults.insert(transmission, Fault::Delay(by));
    }

    pub(crate) fn lose_reply(&mut self, reply: u64) {
        self.reply_faults.insert(reply, Fault::Lose);
    }

    /// Sends `packets` and returns when all are acknowledged and the line is empty.
    pub(crate) fn run(&mut self, packets: u64) {
        self.packets += packets;
        self.taken.resize(self.packets as usize, 0);
        self.sender.post(packets);
        self.finished = Time::NEVER;
        for step in 0.. {
            assert!(
                step < 1_000_000,
                "the exchange does not end: una {} of {}",
                self.sender.una(),
                self.packets
            );
            if !self.step() {
                break;
            }
            if self.finished == Time::NEVER && self.sender.una() == self.packets {
                self.finished = self.now;
            }
        }
        assert_eq!(self.sender.una(), self.packets, "the sender is stuck");
        assert_eq!(self.receiver.expected(), self.packets);
        assert_eq!(self.sender.deadline(), Time::NEVER);
        assert!(self.taken.iter().all(|&n| n == 1));
        assert_eq!(
            self.sent.len() as u64 + self.copied,
            self.accepted + self.duplicate + self.discarded + self.lost
        );
    }

    /// Does the earliest of an arrival, a timeout and a transmission, in this order at the same time; false if none is left.
    fn step(&mut self) -> bool {
        let arrival = self.events.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
        let timer = self.sender.deadline();
        let send = if self.sender.ready(self.window) { self.now.max(self.line_free) } else { Time::NEVER };
        let at = arrival.min(timer).min(send);
        if at == Time::NEVER {
            return false;
        }
        self.now = at;
        if arrival == at {
            let event = self.events.pop_first();
            match event.map(|(_, event)| event) {
                Some(Event::Data(seq, asks, envelope, sent)) => self.on_data(seq, asks, envelope, sent),
                Some(Event::Reply(reply, selective, sack, sent)) => {
                    let (una, trip) = (self.sender.una(), Time(at.ps() - sent.ps()));
                    let (progress, _) = self.sender.on_sack(at, reply, selective, (&sack, trip), self.window);
                    assert_eq!(self.sender.una(), una + progress.acked);
                }
                None => {}
            }
        } else if timer == at {
            self.timeouts += 1;
            self.sender.on_timeout(at);
            assert!(self.sender.deadline() > at);
        } else {
            self.send();
        }
        true
    }

    fn send(&mut self) {
        let sent = self.sender.send(self.now, self.window).expect("the sender was ready");
        let Departure { seq, again, asks, envelope, .. } = sent;
        assert_eq!(again, self.sent.contains(&seq));
        assert!(seq >= self.sender.una() && seq < self.packets);
        let fault = self.data_faults.get(&(self.sent.len() as u64)).copied();
        self.sent.push(seq);
        self.retransmitted += u64::from(again);
        self.line_free = self.now + SPACING;
        match fault {
            Some(Fault::Lose) => self.lost += 1,
            Some(Fault::Copy(_)) => self.copied += 1,
            _ => {}
        }
        self.travel(Event::Data(seq, asks, envelope, self.now), fault);
    }

    fn on_data(&mut self, seq: u64, asks: bool, envelope: Envelope, sent: Time) {
        let last = (seq + 1).is_multiple_of(self.message) || seq + 1 == self.packets;
        let packet = Arrived { psn: Psn::from_seq(seq), frame: 1, marked: false, last, asks, envelope };
        let answer = self.receiver.on_arrived(self.now, packet);
        match answer.fate {
            Fate::Accepted => {
                self.accepted += 1;
                self.taken[seq as usize] += 1;
            }
            Fate::Duplicate => self.duplicate += 1,
            Fate::Discarded => self.discarded += 1,
        }
        self.out_of_order += u64::from(answer.out_of_order);
        if let Some(reply) = answer.reply {
            self.nacks += u64::from(matches!(reply, Reply::Nack(_)));
            let fault = self.reply_faults.get(&self.replies).copied();
            self.replies += 1;
            self.travel(Event::Reply(reply, self.receiver.selective(), self.receiver.sack(), sent), fault);
        }
    }

    fn travel(&mut self, event: Event, fault: Option<Fault>) {
        let arrives = self.now + DELAY;
        match fault {
            None => self.arrive(arrives, event),
            Some(Fault::Lose) => {}
            Some(Fault::Delay(by)) => self.arrive(arrives + by, event),
            Some(Fault::Copy(by)) => {
                self.arrive(arrives, event);
                self.arrive(arrives + by, event);
            }
        }
    }

    fn arrive(&mut self, at: Time, event: Event) {
        self.events.insert((at, self.serial), event);
        self.serial += 1;
    }
}
