//! Simulated hosts around a ToR, on virtual time. Their NICs are as small as the tests allow: one link, queue pairs that
//! send and receive, go-back-N or selective repeat, a window, a timer, and an optional reaction to NACKs and CNPs.
#![allow(dead_code, unreachable_pub, clippy::too_many_arguments)] // every test file uses its own part

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, Ipv6Addr};
use tor::{Event, Note, Out, Pool, PortId, Rate, Settings, Span, Time, Tor, WIRE_OVERHEAD};
use wire::aeth::Syndrome;
use wire::bth::{Opcode, Qpn};
use wire::ecn::{Ecn, TrafficClass};
use wire::ethernet::{Address, EtherType};
use wire::{Psn, aeth, bth, cnp, ethernet, ipv4, ipv6, pfc, reth, roce};

/// How the ends of a connection treat packets out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The receiver keeps them, and the sender resends what a NACK names.
    SelectiveRepeat,
    /// The receiver drops them, and the sender goes back.
    GoBackN,
}

/// A connection and the data that it carries.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub from: usize,
    pub to: usize,
    /// Queue pairs of both ends.
    pub qps: (u32, u32),
    pub source_port: u16,
    pub first_psn: u32,
    pub packets: u64,
    /// Payload of a packet, bytes.
    pub payload: usize,
    /// Packets that may be unacknowledged.
    pub window: u64,
    pub recovery: Recovery,
    /// Packets per message: the last one asks for an ACK.
    pub message: u64,
    pub dscp: u8,
    pub ecn: Ecn,
    pub timeout: Span,
    pub v6: bool,
    pub vlan: Option<u16>,
    /// Start of the transfer.
    pub start: Time,
    /// Requests are reads: the responder sends the data.
    pub read: bool,
    /// Part of its rate that a NACK leaves to the sender, in percent, at most once per millisecond.
    pub nack_cut: u64,
    /// Most of the line's rate that the sender takes, in percent.
    pub most: u64,
    /// React to CNPs.
    pub controlled: bool,
    /// The receiver answers marks with CNPs.
    pub cnps: bool,
    /// Time that the receiver takes for a reply.
    pub reply_delay: Span,
}

impl Default for Transfer {
    fn default() -> Self {
        Transfer {
            from: 0,
            to: 1,
            qps: (17, 18),
            source_port: 0xC121,
            first_psn: 1_000,
            packets: 2_000,
            payload: 1024,
            window: 128,
            recovery: Recovery::SelectiveRepeat,
            message: 4,
            dscp: 0,
            ecn: Ecn::NotEct,
            timeout: Span::from_millis(67),
            v6: false,
            vlan: None,
            start: Time::ZERO,
            read: false,
            nack_cut: 100,
            most: 100,
            controlled: false,
            cnps: true,
            reply_delay: Span::from_millis(1),
        }
    }
}

/// What an end has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets sent, with retransmissions.
    pub sent: u64,
    /// Packets sent again after a NACK.
    pub resent: u64,
    /// Packets sent again after a timeout.
    pub timeouts: u64,
    /// NACKs that reached the sender.
    pub nacks: u64,
    /// NACKs that the receiver sent.
    pub nacks_sent: u64,
    /// Packets that the receiver had already.
    pub duplicates: u64,
    /// Packets delivered in order.
    pub delivered: u64,
    pub acks: u64,
    pub acks_sent: u64,
    pub cnps: u64,
    pub cnps_sent: u64,
    /// Marked packets received.
    pub marked: u64,
    /// Time of the last ACK.
    pub finished: Option<Time>,
    /// Packets acknowledged by the time that `Lab::checkpoint` names.
    pub acked: u64,
}

struct End {
    transfer: Transfer,
    counts: Counts,
    // The sender.
    next: u64,
    acked: u64,
    again: BTreeSet<u64>,
    progress: Time,
    /// Percent of the line rate.
    rate: f64,
    free: Time,
    cut: Time,
    raised: Time,
    // The receiver.
    expected: u64,
    kept: BTreeSet<u64>,
    nacked: bool,
    last_cnp: Option<Time>,
    /// Lost packets, by number: for tests that count spurious retransmissions.
    pub seen: BTreeMap<u64, u32>,
}

struct Host {
    /// Replies: when they are ready, bytes, class.
    queue: VecDeque<(Time, Vec<u8>, u8)>,
    free: Time,
    paused: [Time; 8],
    turn: usize,
    /// Data frames that were received, by class.
    received: [u64; 8],
    pfc: [u64; 8],
}

pub struct Lab {
    pub tor: Tor,
    pub pool: Pool,
    pub now: Time,
    pub log: Vec<Note>,
    ends: Vec<End>,
    hosts: Vec<Host>,
    rate: Rate,
    /// Class by DSCP, as the ToR's.
    dscp: [u8; 64],
    /// Called for each frame that leaves; answers whether the host gets it.
    pub tap: Option<Tap>,
    /// Called for each frame before it enters the ToR.
    pub up: Option<Up>,
    /// Frames that went in and left, if a test wants them.
    pub seen: Option<Vec<Seen>>,
}

/// A frame at the ToR. One that leaves has the time at which its transmission started.
pub struct Seen {
    pub at: Time,
    pub port: PortId,
    pub leaves: bool,
    pub bytes: Vec<u8>,
}

/// Sees a frame that leaves, and answers whether the host gets it.
type Tap = Box<dyn FnMut(Time, PortId, &[u8]) -> bool>;
/// Sees a frame before it enters the ToR, and may change it.
type Up = Box<dyn FnMut(Time, PortId, &mut Vec<u8>)>;

pub fn mac(host: usize) -> Address {
    Address::local(host as u32 + 1)
}

fn v4(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

fn v6(host: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, host as u16 + 1)
}

impl Lab {
    /// Hosts whose links have this rate, one per port of the settings.
    pub fn new(settings: &Settings, rate: Rate, transfers: &[Transfer]) -> Self {
        let mut settings = settings.clone();
        for (n, port) in settings.ports.iter_mut().enumerate() {
            port.stations.push(mac(n));
        }
        let host = || Host {
            queue: VecDeque::new(),
            free: Time::ZERO,
            paused: [Time::ZERO; 8],
            turn: 0,
            received: [0; 8],
            pfc: [0; 8],
        };
        let end = |transfer: &Transfer| End {
            transfer: transfer.clone(),
            counts: Counts::default(),
            next: 0,
            acked: 0,
            again: BTreeSet::new(),
            progress: transfer.start,
            rate: transfer.most as f64 / 100.0,
            free: transfer.start,
            cut: Time::ZERO,
            raised: Time::ZERO,
            expected: 0,
            kept: BTreeSet::new(),
            nacked: false,
            last_cnp: None,
            seen: BTreeMap::new(),
        };
        Lab {
            hosts: settings.ports.iter().map(|_| host()).collect(),
            ends: transfers.iter().map(end).collect(),
            dscp: settings.classes.dscp,
            tor: Tor::new(&settings),
            pool: Pool::new(16_384, 4352),
            now: Time::ZERO,
            log: Vec::new(),
            rate,
            tap: None,
            up: None,
            seen: None,
        }
    }

    /// Replaces the ToR by a new one, which has seen nothing. What was under way is lost.
    pub fn restart(&mut self, settings: &Settings) {
        self.tor = Tor::new(settings);
        self.pool = Pool::new(16_384, 4352);
    }

    /// The counts of a transfer: its sender's and its receiver's together.
    pub fn counts(&self, transfer: usize) -> Counts {
        let end = &self.ends[transfer];
        Counts { acked: end.acked, ..end.counts }
    }

    /// Pause frames that a host received for a class.
    pub fn pauses(&self, host: usize, class: usize) -> u64 {
        self.hosts[host].pfc[class]
    }

    /// Rate of a sender as a part of the line rate.
    pub fn rate_of(&self, transfer: usize) -> f64 {
        self.ends[transfer].rate
    }

    pub fn received(&self, host: usize, class: usize) -> u64 {
        self.hosts[host].received[class]
    }

    /// True if all transfers are complete.
    pub fn done(&self) -> bool {
        self.ends.iter().all(|end| end.acked >= end.transfer.packets)
    }

    /// Number of notes for which a test holds.
    pub fn noted(&self, test: impl Fn(&Event) -> bool) -> usize {
        self.log.iter().filter(|note| test(&note.event)).count()
    }

    /// Runs until all transfers are complete, or until the time.
    pub fn run(&mut self, until: Time) {
        while self.now < until && !self.done() {
            self.step(until);
        }
    }

    /// Runs until the time, whatever happens.
    pub fn run_on(&mut self, until: Time) {
        while self.now < until {
            self.step(until);
        }
    }

    fn step(&mut self, until: Time) {
        let hosts = (0..self.hosts.len()).filter_map(|host| self.host_due(host));
        let timers =
            self.ends.iter().filter(|end| end.waits()).map(|end| end.progress + end.transfer.timeout);
        let due = hosts.chain(timers).chain(self.tor.poll_at()).min().unwrap_or(until);
        self.now = due.max(self.now).min(until);
        self.tor.tick(self.now, &mut self.pool);
        self.drain();
        for end in &mut self.ends {
            if end.waits() && self.now >= end.progress + end.transfer.timeout {
                end.progress = self.now;
                end.counts.timeouts += 1;
                match end.transfer.recovery {
                    Recovery::SelectiveRepeat => _ = end.again.insert(end.acked),
                    Recovery::GoBackN => end.next = end.acked,
                }
            }
        }
        for host in 0..self.hosts.len() {
            self.send(host);
        }
    }

    /// Time at which a host can send.
    fn host_due(&self, host: usize) -> Option<Time> {
        let own = &self.hosts[host];
        let reply = own
            .queue
            .iter()
            .map(|(at, _, class)| own.paused[usize::from(*class)].max(own.free).max(*at))
            .min();
        let data = self.ends.iter().filter(|end| end.transfer.from == host && end.has_data());
        let data = data.map(|end| own.free.max(end.free).max(own.paused[self.class(&end.transfer)])).min();
        reply.into_iter().chain(data).min()
    }

    fn class(&self, transfer: &Transfer) -> usize {
        usize::from(self.dscp[usize::from(transfer.dscp)])
    }

    fn send(&mut self, host: usize) {
        if self.hosts[host].free > self.now {
            return;
        }
        let (now, own) = (self.now, &mut self.hosts[host]);
        let reply =
            own.queue.iter().position(|(at, _, class)| own.paused[usize::from(*class)] <= now && *at <= now);
        let frame = match reply.and_then(|at| own.queue.remove(at)) {
            Some((_, frame, _)) => frame,
            None => {
                let count = self.ends.len();
                let turn = self.hosts[host].turn;
                let ready = |n: &usize| {
                    let end = &self.ends[*n];
                    let class = self.class(&end.transfer);
                    end.transfer.from == host
                        && end.has_data()
                        && end.free <= now
                        && self.hosts[host].paused[class] <= now
                };
                let Some(n) = (0..count).map(|i| (turn + i) % count.max(1)).find(ready) else { return };
                self.hosts[host].turn = n + 1;
                let rate = self.rate;
                self.ends[n].next_frame(now, rate)
            }
        };
        self.hosts[host].free = now + self.rate.time_of(frame.len() as u64 + WIRE_OVERHEAD);
        self.enter(PortId(host as u16), frame);
    }

    /// Puts a frame into the ToR.
    pub fn enter(&mut self, port: PortId, mut frame: Vec<u8>) {
        if let Some(up) = &mut self.up {
            up(self.now, port, &mut frame);
        }
        if let Some(seen) = &mut self.seen {
            seen.push(Seen { at: self.now, port, leaves: false, bytes: frame.clone() });
        }
        let handle = self.pool.copy_of(&frame).expect("a buffer");
        self.tor.frame(self.now, port, handle, &mut self.pool);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(out) = self.tor.poll() {
            match out {
                Out::Note(note) => self.log.push(note),
                Out::Send { started, port, frame, .. } => {
                    let bytes = self.pool.bytes(&frame).to_vec();
                    self.pool.put_back(frame);
                    if let Some(seen) = &mut self.seen {
                        seen.push(Seen { at: started, port, leaves: true, bytes: bytes.clone() });
                    }
                    let now = self.now;
                    if self.tap.as_mut().is_none_or(|tap| tap(now, port, &bytes)) {
                        self.receive(port.index(), &bytes);
                    }
                }
            }
        }
    }

    /// A frame arrives at a host.
    fn receive(&mut self, host: usize, bytes: &[u8]) {
        let link = ethernet::View::new(bytes).expect("a header");
        if link.ether_type() == EtherType::MAC_CONTROL {
            let pause = pfc::Repr::parse(&pfc::View::new(link.payload()).unwrap()).expect("a valid pause");
            assert_eq!((bytes.len(), link.destination()), (60, pfc::DESTINATION));
            for (class, quanta) in pause.quanta.iter().enumerate() {
                let Some(quanta) = *quanta else { continue };
                let own = &mut self.hosts[host];
                own.pfc[class] += 1;
                own.paused[class] = self.now + self.rate.time_of_bits(512 * u64::from(quanta));
            }
            return;
        }
        let Some((repr, vlan)) = parse(bytes) else { return };
        if repr.destination != mac(host) {
            return;
        }
        let class = match repr.ip {
            roce::Ip::V4(ip) => ip.traffic_class,
            roce::Ip::V6(ip) => ip.traffic_class,
        };
        let own = usize::from(self.dscp[usize::from(class.dscp())]);
        self.hosts[host].received[own] += 1;
        let qp = repr.bth.destination_qp.value();
        let is_data = !matches!(repr.bth.opcode, Opcode::Acknowledge | Opcode::Cnp);
        let read = matches!(u8::from(repr.bth.opcode), 0x0D..=0x10);
        let from_responder = read || !is_data;
        let of = |end: &End| {
            let t = &end.transfer;
            let peer = |other: usize| repr.source == mac(other) && t.vlan == vlan;
            if from_responder {
                t.from == host && t.qps.0 == qp && peer(t.to)
            } else {
                t.to == host && t.qps.1 == qp && peer(t.from)
            }
        };
        let Some(n) = self.ends.iter().position(of) else { return };
        let replies = self.ends[n].receive(self.now, &repr, class.ecn() == Ecn::Ce);
        let to = self.ends[n].transfer.clone();
        for (bytes, dscp) in replies {
            let class = self.dscp[usize::from(dscp)];
            self.hosts[to.to].queue.push_back((self.now + to.reply_delay, bytes, class));
        }
    }
}

/// Reads a RoCEv2 frame and its VLAN.
pub fn parse(bytes: &[u8]) -> Option<(roce::Repr, Option<u16>)> {
    let tagged = bytes[12..14] == [0x81, 0x00];
    let plain = if tagged { [&bytes[..12], &bytes[16..]].concat() } else { bytes.to_vec() };
    let vlan = tagged.then(|| u16::from_be_bytes([bytes[14], bytes[15]]) & 0xFFF);
    Some((roce::Repr::parse(&plain).ok()?.0, vlan))
}

impl Transfer {
    /// A frame of this connection. `forward` is the way from the requester to the responder.
    pub fn frame(
        &self,
        forward: bool,
        opcode: Opcode,
        psn: u64,
        extension: roce::Extension,
        payload: usize,
        ack: bool,
        dscp: u8,
        ecn: Ecn,
    ) -> Vec<u8> {
        let (from, to) = if forward { (self.from, self.to) } else { (self.to, self.from) };
        let qp = if forward { self.qps.1 } else { self.qps.0 };
        let traffic_class = TrafficClass::new(dscp, ecn);
        let ip = if self.v6 {
            roce::Ip::V6(ipv6::Repr {
                traffic_class,
                flow_label: 0,
                next_header: ipv4::UDP,
                hop_limit: 64,
                source: v6(from),
                destination: v6(to),
                payload_len: 0,
            })
        } else {
            roce::Ip::V4(ipv4::Repr {
                traffic_class,
                identification: psn as u16,
                dont_fragment: true,
                time_to_live: 64,
                protocol: ipv4::UDP,
                source: v4(from),
                destination: v4(to),
                payload_len: 0,
            })
        };
        let psn = Psn::from_seq(u64::from(self.first_psn) + psn);
        let mut bth = bth::Repr { ack_request: ack, ..bth::Repr::new(opcode, Qpn::new(qp), psn) };
        if opcode == Opcode::Cnp {
            bth = cnp::Repr::bth(Qpn::new(qp));
        }
        let repr = roce::Repr {
            destination: mac(to),
            source: mac(from),
            ip,
            source_port: self.source_port,
            bth,
            extension,
        };
        let mut bytes = vec![0; repr.frame_len(payload)];
        let body = vec![0x5A; payload];
        repr.emit(&body, &mut bytes).expect("a frame");
        if let Some(vlan) = self.vlan {
            let [a, b] = vlan.to_be_bytes();
            bytes.splice(12..12, [0x81, 0x00, a, b]);
        }
        bytes
    }
}

impl End {
    fn waits(&self) -> bool {
        self.acked < self.next && self.acked < self.transfer.packets
    }

    fn has_data(&self) -> bool {
        !self.again.is_empty()
            || self.next < self.transfer.packets && self.next < self.acked + self.transfer.window
    }

    fn next_frame(&mut self, now: Time, line: Rate) -> Vec<u8> {
        let t = &self.transfer;
        let number = match self.again.pop_first() {
            Some(number) => number,
            None => {
                self.next += 1;
                self.next - 1
            }
        };
        self.counts.sent += 1;
        *self.seen.entry(number).or_default() += 1;
        if self.waits() && self.acked == number {
            self.progress = now;
        }
        let last = (number + 1) % t.message == 0 || number + 1 == t.packets;
        let frame = if t.read {
            let reth = reth::Repr { address: 0, key: 1, length: t.payload as u32 };
            t.frame(true, Opcode::ReadRequest, number, roce::Extension::Reth(reth), 0, true, t.dscp, t.ecn)
        } else {
            let opcode = match (number % t.message == 0, last) {
                (true, true) => Opcode::SendOnly,
                (true, false) => Opcode::SendFirst,
                (false, true) => Opcode::SendLast,
                (false, false) => Opcode::SendMiddle,
            };
            t.frame(true, opcode, number, roce::Extension::None, t.payload, last, t.dscp, t.ecn)
        };
        let time = line.time_of(frame.len() as u64 + WIRE_OVERHEAD).nanos() as f64 / self.rate;
        self.free = now.max(self.free) + Span::from_nanos(time as u64);
        if now.since(self.raised) > Span::from_micros(55) {
            self.rate = (self.rate + 0.01).min(self.transfer.most as f64 / 100.0);
            self.raised = now;
        }
        frame
    }

    /// A packet arrives at the end that it is for. Returns the receiver's replies with their DSCP.
    fn receive(&mut self, now: Time, repr: &roce::Repr, marked: bool) -> Vec<(Vec<u8>, u8)> {
        let first = u64::from(self.transfer.first_psn);
        let number = |psn: Psn, near: u64| psn.unwrap_near(first + near).wrapping_sub(first);
        match (repr.bth.opcode, repr.extension) {
            (Opcode::Cnp, _) => {
                self.counts.cnps += 1;
                if self.transfer.controlled && now.since(self.cut) > Span::from_micros(50) {
                    (self.rate, self.cut, self.raised) = ((self.rate * 0.6).max(0.01), now, now);
                }
                vec![]
            }
            (Opcode::Acknowledge, roce::Extension::Aeth(aeth)) => {
                let psn = number(repr.bth.psn, self.acked);
                match aeth.syndrome {
                    Syndrome::Ack(_) => {
                        self.counts.acks += 1;
                        self.advance(now, psn.wrapping_add(1));
                    }
                    Syndrome::Nak(_) => {
                        self.counts.nacks += 1;
                        self.advance(now, psn);
                        if psn >= self.transfer.packets {
                            return vec![];
                        }
                        self.counts.resent += 1;
                        match self.transfer.recovery {
                            Recovery::SelectiveRepeat => _ = self.again.insert(psn),
                            Recovery::GoBackN => self.next = psn,
                        }
                        if now.since(self.cut) > Span::from_millis(1) && self.transfer.nack_cut < 100 {
                            self.rate = (self.rate * self.transfer.nack_cut as f64 / 100.0).max(0.05);
                            (self.cut, self.raised) = (now, now);
                        }
                    }
                    _ => {}
                }
                vec![]
            }
            (_, _) if matches!(u8::from(repr.bth.opcode), 0x0D..=0x10) => {
                let psn = number(repr.bth.psn, self.acked);
                self.counts.delivered += u64::from(psn == self.acked);
                self.advance(now, psn.wrapping_add(1));
                vec![]
            }
            _ => self.data(now, number(repr.bth.psn, self.expected), repr.bth.ack_request, marked),
        }
    }

    fn advance(&mut self, now: Time, acked: u64) {
        if acked > self.acked && acked <= self.transfer.packets {
            (self.acked, self.progress) = (acked, now);
            self.next = self.next.max(acked);
            self.again = self.again.split_off(&acked);
            if acked == self.transfer.packets {
                self.counts.finished = Some(now);
            }
        }
    }

    fn reply(&mut self, syndrome: Syndrome, psn: u64) -> (Vec<u8>, u8) {
        let msn = (self.expected / self.transfer.message) as u32;
        let extension = roce::Extension::Aeth(aeth::Repr { syndrome, msn });
        let dscp = self.transfer.dscp;
        (self.transfer.frame(false, Opcode::Acknowledge, psn, extension, 0, false, dscp, Ecn::NotEct), dscp)
    }

    fn data(&mut self, now: Time, number: u64, ack: bool, marked: bool) -> Vec<(Vec<u8>, u8)> {
        let mut replies = Vec::new();
        self.counts.marked += u64::from(marked);
        let paced = self.last_cnp.is_none_or(|last| now.since(last) >= Span::from_micros(50));
        if marked && self.transfer.cnps && paced {
            self.last_cnp = Some(now);
            self.counts.cnps_sent += 1;
            let cnp =
                self.transfer.frame(false, Opcode::Cnp, 0, roce::Extension::Cnp, 0, false, 48, Ecn::NotEct);
            replies.push((cnp, 48));
        }
        let t = &self.transfer;
        if t.read {
            if number == self.expected {
                self.expected += 1;
                let extension = roce::Extension::Aeth(aeth::Repr { syndrome: Syndrome::ACK, msn: 0 });
                let (dscp, payload) = (t.dscp, t.payload);
                let frame =
                    t.frame(false, Opcode::ReadResponseOnly, number, extension, payload, false, dscp, t.ecn);
                replies.push((frame, dscp));
            } else if number > self.expected && !self.nacked {
                self.nacked = true;
                self.counts.nacks_sent += 1;
                replies.push(self.reply(Syndrome::PSN_SEQUENCE, self.expected));
            }
            return replies;
        }
        if number == self.expected {
            self.expected += 1;
            self.counts.delivered += 1;
            while self.kept.remove(&self.expected) {
                self.expected += 1;
                self.counts.delivered += 1;
            }
            self.nacked = false;
            if ack || self.expected > number + 1 {
                self.counts.acks_sent += 1;
                replies.push(self.reply(Syndrome::ACK, self.expected - 1));
            }
        } else if number > self.expected && number < self.expected + (1 << 20) {
            if self.transfer.recovery == Recovery::SelectiveRepeat && !self.kept.insert(number) {
                self.counts.duplicates += 1;
            }
            if !self.nacked {
                self.nacked = true;
                self.counts.nacks_sent += 1;
                replies.push(self.reply(Syndrome::PSN_SEQUENCE, self.expected));
            }
        } else {
            self.counts.duplicates += 1;
            self.counts.acks_sent += 1;
            replies.push(self.reply(Syndrome::ACK, self.expected - 1));
        }
        replies
    }
}
