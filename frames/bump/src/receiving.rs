//! The requests of one queue pair on their way from the network to the host, which gets them in order.

use crate::frame::{Kind, MTUS, Roce};
use crate::pairing::End;
use crate::reply::Template;
use crate::sending::{FAR, MOST_COPIES};
use model::transport::{Arrived, Fate, Inbound, Receiver as _, Reception, Reply};
use model::{Psn, Time};
use rnic::{AnyReceiver, Nic};
use std::collections::BTreeMap;
use wire::bth::Qpn;

/// Most packets that wait for one ahead of them. Our choice: the sending bump keeps no more copies.
const MOST_HELD: usize = MOST_COPIES;

/// What the sending side of a flow tells its receiving side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// PSN of packet 0.
    pub(crate) first: Psn,
    /// Path MTU, once it is known.
    pub(crate) mtu: Option<u32>,
    /// Number of the connection: a queue pair number may be used again.
    pub(crate) connection: u64,
}

/// The receiving side of a flow.
pub(crate) struct Receiving {
    port: u16,
    paired: Option<Qpn>,
    /// PSN of packet 0.
    first: Psn,
    /// Connection of the sending side, if it tells.
    connection: Option<u64>,
    receiver: AnyReceiver,
    /// Packets that wait for one ahead of them.
    held: BTreeMap<u64, Vec<u8>>,
    mtu: Option<u32>,
    /// Length of the read that was delivered last, if the number of its responses is not known.
    open_read: Option<u32>,
    /// The host's replies.
    pub(crate) template: Option<Template>,
    /// NACK that waits for a template.
    owed: Option<Psn>,
    /// Time of the last packet.
    pub(crate) used: Time,
}

/// What happens to an arriving packet.
#[derive(Debug, Default)]
pub(crate) struct Arrival {
    /// Packets for the host, in order.
    pub(crate) deliver: Vec<Vec<u8>>,
    /// PSN of a NACK that is due.
    pub(crate) nack: Option<Psn>,
    /// True if a CNP is due.
    pub(crate) cnp: bool,
    /// True if a packet ahead of this one was missing.
    pub(crate) out_of_order: bool,
    /// True if the packet was dropped because too many wait.
    pub(crate) full: bool,
    /// Fate of the packet.
    pub(crate) fate: Option<Fate>,
}

impl Receiving {
    pub(crate) fn new(roce: &Roce, told: Option<Told>, nic: &Nic) -> Self {
        Receiving {
            port: roce.port,
            paired: None,
            first: told.map_or(roce.psn, |told| told.first),
            connection: told.map(|told| told.connection),
            receiver: nic.receiver(),
            held: BTreeMap::new(),
            mtu: None,
            open_read: None,
            template: None,
            owed: None,
            used: Time::ZERO,
        }
    }

    /// True if a packet belongs to another connection than this one.
    pub(crate) fn is_foreign(&self, roce: &Roce, told: Option<Told>) -> bool {
        match told {
            Some(told) => self.connection.is_some_and(|connection| connection != told.connection),
            None => {
                let distance = roce.psn.distance_from(self.expected());
                self.open_read.is_none() && !(-FAR..FAR).contains(&distance)
            }
        }
    }

    /// Gives a packet to the receiver, which counts no bytes and no messages.
    fn receive(&mut self, now: Time, psn: Psn, marked: bool, last: bool) -> Reception {
        let packet = Arrived { psn, frame: 0, marked, last, asks: false, envelope: Default::default() };
        self.receiver.on_arrival(now, Inbound::Data(packet)).0
    }

    /// Takes a packet.
    pub(crate) fn arrive(&mut self, now: Time, roce: &Roce, frame: Vec<u8>, mtu: Option<u32>) -> Arrival {
        (self.used, self.port) = (now, roce.port);
        self.mtu = roce.mtu.or(mtu).or(self.mtu);
        let mut arrival = Arrival::default();
        self.close_read(now);
        self.deliver_held(now, self.receiver.standing().expected, &mut arrival);
        let mut distance = roce.psn.distance_from(self.expected());
        if let Some(bytes) = self.open_read.filter(|_| distance > 0)
            && let Some(mtu) = MTUS.into_iter().find(|mtu| bytes.div_ceil(*mtu) as i32 == distance + 1)
        {
            // Nobody tells the path MTU, but the responses of this read would fill the gap.
            self.mtu = Some(mtu);
            self.close_read(now);
            distance = roce.psn.distance_from(self.expected());
        }
        let Some(number) = self.receiver.standing().expected.checked_add_signed(distance.into()) else {
            // From before this bump has looked.
            arrival.fate = Some(Fate::Duplicate);
            arrival.deliver.push(frame);
            return arrival;
        };
        if distance > 0 && self.held.len() >= MOST_HELD {
            arrival.full = true;
            return arrival;
        }
        let before = self.receiver.standing().expected;
        let reception = self.receive(now, Psn::from_seq(number), roce.marked, roce.asks);
        arrival.fate = Some(reception.fate);
        arrival.cnp = reception.cnp;
        arrival.out_of_order = reception.out_of_order;
        match (reception.fate, distance) {
            (Fate::Accepted, 0) => {
                self.deliver(roce, frame, &mut arrival);
                self.deliver_held(now, before + 1, &mut arrival);
            }
            (Fate::Accepted, _) => {
                self.held.insert(number, frame);
            }
            // The host acknowledges it again.
            (Fate::Duplicate, ..0) => arrival.deliver.push(frame),
            (Fate::Duplicate | Fate::Discarded, _) => {}
        }
        if let Some(Reply::Nack(psn)) = reception.reply {
            arrival.nack = Some(self.psn(psn));
        }
        arrival
    }

    /// Hands a packet to the host.
    fn deliver(&mut self, roce: &Roce, frame: Vec<u8>, arrival: &mut Arrival) {
        self.open_read = match roce.kind {
            Kind::Read(bytes) => Some(bytes),
            _ => None,
        };
        arrival.deliver.push(frame);
    }

    /// Hands packets to the host that nothing holds up, from number `at` on.
    fn deliver_held(&mut self, now: Time, mut at: u64, arrival: &mut Arrival) {
        loop {
            while at < self.receiver.standing().expected {
                if let Some(frame) = self.held.remove(&at)
                    && let Some(roce) = Roce::of(&frame)
                {
                    self.deliver(&roce, frame, arrival);
                }
                at += 1;
            }
            if !self.close_read(now) {
                return;
            }
        }
    }

    /// Takes the PSNs of a read's responses for arrived, once their number is known. They belong to the read.
    fn close_read(&mut self, now: Time) -> bool {
        let (Some(bytes), Some(mtu)) = (self.open_read, self.mtu) else { return false };
        self.open_read = None;
        for _ in 1..bytes.div_ceil(mtu) {
            let next = Psn::from_seq(self.receiver.standing().expected);
            self.receive(now, next, false, false);
        }
        true
    }

    /// Handles a reply of the host. Returns a NACK that has waited for it.
    pub(crate) fn note_reply(&mut self, roce: &Roce, frame: &[u8]) -> Option<Psn> {
        if self.template.is_none() || roce.kind != Kind::Response {
            self.template = Template::of(roce, frame);
        }
        self.mtu = roce.mtu.or(self.mtu);
        let owed = self.owed.take()?;
        (owed == self.expected() && !self.held.is_empty()).then_some(owed)
    }

    /// Notes that a NACK must wait for the first reply of the host.
    pub(crate) fn owe(&mut self, psn: Psn) {
        self.owed = Some(psn);
    }

    /// Continues at the packet that the host expects.
    pub(crate) fn resume(&mut self, psn: Psn, nic: &Nic) {
        self.first = psn;
        self.receiver = nic.receiver();
        self.held.clear();
        (self.open_read, self.owed) = (None, None);
    }

    /// Number of packets that wait for one ahead of them.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    fn expected(&self) -> Psn {
        self.psn(Psn::from_seq(self.receiver.standing().expected))
    }

    /// PSN of a packet's number.
    fn psn(&self, number: Psn) -> Psn {
        self.first.add(number.value())
    }
}

impl End for Receiving {
    fn port(&self) -> u16 {
        self.port
    }

    /// The host answers packets that it has, which are not long ago.
    fn may_answer(&self, psn: Psn) -> bool {
        let distance = psn.distance_from(self.expected());
        (-(MOST_COPIES as i32)..=0).contains(&distance) || self.open_read.is_some()
    }

    fn paired(&mut self) -> &mut Option<Qpn> {
        &mut self.paired
    }
}
