//! Who answers whom.
//!
//! Data carries the queue pair number of the responder, and ACKs and NACKs carry that of the requester. A ToR that sees no
//! connection being made has to learn which belong together. A *flow* is the data from one host to one queue pair of
//! another host; a *stream* is the ACKs and NACKs that go to one queue pair of the first host. At each reply of a stream
//! that nobody knows, the flows between the two hosts are candidates if the evidence allows them:
//!
//! * **PSN**: the flow's departures reach the PSN that the reply names.
//! * **Port**: data and replies carry the same UDP source port. Linux computes it so that both ends get the same number
//!   (`rdma_get_udp_sport`).
//! * **Fold**: where Linux has no flow label, this number is a fold of both queue pair numbers, which decides between
//!   flows of one port.
//! * Every flow has one stream, so flows of known streams are no candidates.
//!
//! Each reply's candidates are intersected with those of the replies before. One left means: learnt. As long as several
//! are left the stream is unknown, and Themis lets its NACKs pass.

use crate::recent::FlowHint;
use crate::table::{Key, Table, mix};
use crate::units::{PortId, Span, Time};
use std::net::IpAddr;
use themis::Psn;
use wire::bth::Qpn;
use wire::ethernet::Address;

/// Number of candidates that a stream remembers. Our choice: one cache line. A stream with more starts again at its next
/// reply.
const CANDIDATES: usize = 12;
/// Number of flows without a stream between two hosts that are examined. Our choice: with more, nothing is learnt there.
const EXAMINED: usize = 1024;
/// Distance behind a flow's last departure up to which a reply is plausible, in PSNs. Our choice: many windows of a NIC.
const NEAR: i32 = 1 << 15;
/// A packet further than this from a flow's last one starts the flow anew: the queue pair has been set up again. Our
/// choice: more than any window.
const FAR: i32 = 1 << 16;
/// PSNs before the first departure that a NACK may name: the first packets of a flow may be late or lost. Our choice.
const EARLY: i32 = 256;
/// New flows that a port may bring at once, and the time after which it may bring one more. The time bounds what a flood
/// of queue pair numbers can do; the burst, our choice, lets a job open its queue pairs at once.
const BURST: u32 = 64;
const REFILL: Span = Span::from_millis(1);
/// Time without learning between two hosts after one of their flows had no room. Our choice: longer than any round trip,
/// so the flow whose replies these are is not missing among the candidates.
const REFUSED: Span = Span::from_millis(100);

/// No number.
const NONE: u32 = u32::MAX;

/// A kind of evidence by which streams are learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Equal ports and a near PSN.
    PortAndPsn,
    /// A near PSN alone.
    Psn,
}

/// A connection that an operator knows: both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// One end.
    pub a: End,
    /// The other end.
    pub b: End,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// IP address of the host.
    pub ip: IpAddr,
    /// Its queue pair.
    pub qp: Qpn,
}

/// The fields by which packets are told apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) vlan: u16,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) source_mac: Address,
    pub(crate) destination_mac: Address,
    pub(crate) source_port: u16,
    pub(crate) qp: Qpn,
    pub(crate) psn: Psn,
    /// Port at which the packet came in.
    pub(crate) ingress: PortId,
}

/// A packet of a flow that is known, and of one PSN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextPacket {
    pub(crate) source_mac: Address,
    pub(crate) source_port: u16,
    pub(crate) psn: Psn,
    /// Port to which it departs.
    pub(crate) port: PortId,
}

/// Requester and responder, as far as IP knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PairKey {
    vlan: u16,
    requester: IpAddr,
    responder: IpAddr,
}

impl Key for PairKey {
    #[inline]
    fn hash(&self, seed: u64) -> u64 {
        let word = |address| match address {
            IpAddr::V4(v4) => u64::from(u32::from(v4)) << 1,
            IpAddr::V6(v6) => {
                let bits = u128::from(v6);
                mix(bits as u64 ^ seed) ^ (bits >> 64) as u64 | 1
            }
        };
        mix(mix(word(self.requester) ^ seed) ^ word(self.responder) ^ u64::from(self.vlan) << 48)
    }
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    /// First of its flows without a stream.
    first: u32,
    /// Number of its flows and streams.
    used: u32,
    /// Last time at which a flow had no room.
    refused: Option<Time>,
}

/// The data from a host to a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pair: u32,
    /// Next flow of the pair without a stream.
    next: u32,
    stream: u32,
    /// Port behind which the responder is.
    pub(crate) port: PortId,
    requester: Address,
    responder: Address,
    source_port: u16,
    /// Lowest PSN that has departed.
    low: Psn,
    /// Highest PSN that a departed packet can have taken.
    last: Psn,
    acked: Option<Psn>,
    seen: Time,
    born: Time,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    pair: u32,
    flow: u32,
    /// Candidates so far; meaningless while `count` is 0.
    candidates: [u32; CANDIDATES],
    count: u8,
    /// Instant of the first reply whose candidates count. Flows born later are none.
    since: Time,
    seen: Time,
}

/// What a departure means to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// The next packet of a flow.
    Known(u32),
    /// The first packet of a flow, which may have taken the number of another one.
    New(u32),
    /// The first packet after the queue pair was set up again; true if the flow had a stream.
    Again(u32, bool),
    /// There is no room for the flow.
    Refused,
}

/// What is known about a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It answers this flow.
    Flow(u32),
    /// It answers this flow, which has just been learnt.
    Learnt(u32),
    /// It names a PSN that the flow has never sent, so the flow is no longer known.
    Unlearnt(u32),
    /// Nothing is known, for this reason.
    Unknown(Unknown),
}

/// Why a reply's flow is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unknown {
    /// No flow fits.
    NoFlow,
    /// Several flows fit.
    Ambiguous,
    /// The reply came in at another port, or from another MAC address, than those of the flow's responder.
    Elsewhere,
    /// A NACK names a PSN that the flow cannot expect.
    Implausible,
    /// A flow between these hosts has no room in the table, so the reply may answer it.
    Incomplete,
    /// There is no room for the stream.
    Full,
}

impl Unknown {
    /// All reasons.
    pub const ALL: [Unknown; 6] = [
        Unknown::NoFlow,
        Unknown::Ambiguous,
        Unknown::Elsewhere,
        Unknown::Implausible,
        Unknown::Incomplete,
        Unknown::Full,
    ];

    /// The reason's name in counters and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Unknown::NoFlow => "no-flow",
            Unknown::Ambiguous => "ambiguous",
            Unknown::Elsewhere => "elsewhere",
            Unknown::Implausible => "implausible",
            Unknown::Incomplete => "incomplete",
            Unknown::Full => "table-full",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: u32,
    at: Time,
}

/// All flows and streams of the fabric.
#[derive(Debug)]
pub(crate) struct Connections {
    pairs: Table<PairKey>,
    pair: Box<[Pair]>,
    flows: Table<u64>,
    flow: Box<[Flow]>,
    streams: Table<u64>,
    stream: Box<[Stream]>,
    evidence: Vec<Evidence>,
    /// What operators know: requester, responder, queue pair of the responder, queue pair of the requester. Sorted.
    fixed: Vec<(IpAddr, IpAddr, Qpn, Qpn)>,
    buckets: Box<[Bucket]>,
    idle: Span,
    /// Next number that the sweep examines.
    hand: u32,
    /// Number of flows forgotten so far. As long as it stays, each flow keeps its number.
    removals: u64,
}

impl Connections {
    pub(crate) fn new(
        capacity: usize,
        ports: usize,
        idle: Span,
        evidence: &[Evidence],
        connections: &[Connection],
        seed: u64,
    ) -> Self {
        let no_flow = Flow {
            pair: NONE,
            next: NONE,
            stream: NONE,
            port: PortId(0),
            requester: Address([0; 6]),
            responder: Address([0; 6]),
            source_port: 0,
            low: Psn::new(0),
            last: Psn::new(0),
            acked: None,
            seen: Time::ZERO,
            born: Time::ZERO,
        };
        let no_stream = Stream {
            pair: NONE,
            flow: NONE,
            candidates: [NONE; CANDIDATES],
            count: 0,
            since: Time::ZERO,
            seen: Time::ZERO,
        };
        let mut fixed: Vec<_> = connections
            .iter()
            .flat_map(|Connection { a, b }| [(a.ip, b.ip, b.qp, a.qp), (b.ip, a.ip, a.qp, b.qp)])
            .collect();
        fixed.sort_unstable();
        Connections {
            pairs: Table::new(capacity, seed),
            pair: vec![Pair { first: NONE, used: 0, refused: None }; capacity].into(),
            flows: Table::new(capacity, seed),
            flow: vec![no_flow; capacity].into(),
            streams: Table::new(capacity, seed),
            stream: vec![no_stream; capacity].into(),
            evidence: evidence.to_vec(),
            fixed,
            buckets: vec![Bucket { tokens: BURST, at: Time::ZERO }; ports].into(),
            idle,
            hand: 0,
            removals: 0,
        }
    }

    /// Number of flows.
    pub(crate) fn len(&self) -> usize {
        self.flows.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.flows.capacity()
    }

    pub(crate) fn flow(&self, number: u32) -> &Flow {
        &self.flow[number as usize]
    }

    /// The queue pair of a flow's responder.
    pub(crate) fn responder_qp(&self, number: u32) -> Qpn {
        Qpn::new(self.flows.key(number).unwrap_or(0) as u32)
    }

    /// The hosts of a flow, and the queue pair of its responder; `None` if no flow has this number.
    pub(crate) fn ends(&self, number: u32) -> Option<(IpAddr, IpAddr, Qpn)> {
        let key = self.flows.key(number)?;
        let pair = self.pairs.key(self.flow[number as usize].pair)?;
        Some((pair.requester, pair.responder, Qpn::new(key as u32)))
    }

    /// The queue pair of a flow's requester, if it is known.
    pub(crate) fn requester_qp(&self, number: u32) -> Option<Qpn> {
        let key = self.streams.key(self.flow[number as usize].stream)?;
        Some(Qpn::new(key as u32))
    }

    /// Takes note of a packet of the request stream that departs to `port`. It takes `span` PSNs at most.
    /// A hint that still holds saves the search for the flow.
    #[inline]
    pub(crate) fn depart(
        &mut self,
        now: Time,
        packet: &Packet,
        span: u32,
        port: PortId,
        hint: Option<FlowHint>,
    ) -> Departure {
        match hint {
            Some(hint) if hint.removals == self.removals => {
                self.depart_known(now, packet, span, port, hint.number)
            }
            _ => self.depart_unknown(now, packet, span, port),
        }
    }

    /// The number of the flow of a hint that still holds, if this packet of one PSN continues it. Changes nothing.
    #[inline]
    pub(crate) fn continues(&self, next: &NextPacket, hint: FlowHint) -> bool {
        let Some(flow) = self.flow.get(hint.number as usize) else { return false };
        hint.removals == self.removals
            && flow.requester == next.source_mac
            && flow.port == next.port
            && (-FAR..=FAR).contains(&next.psn.distance_from(flow.last))
    }

    /// Takes note of a packet that [continues](Self::continues) a flow.
    #[inline]
    pub(crate) fn depart_next(&mut self, now: Time, next: &NextPacket, number: u32) {
        let Some(flow) = self.flow.get_mut(number as usize) else { return };
        flow.seen = now;
        flow.source_port = next.source_port;
        if next.psn.is_after(flow.last) {
            flow.last = next.psn;
        }
        if flow.low.is_after(next.psn) {
            flow.low = next.psn;
        }
    }

    /// What lets the next packet of a flow find it at once.
    pub(crate) fn hint(&self, number: u32) -> FlowHint {
        FlowHint { number, removals: self.removals }
    }

    #[inline]
    fn depart_known(
        &mut self,
        now: Time,
        packet: &Packet,
        span: u32,
        port: PortId,
        number: u32,
    ) -> Departure {
        let end = packet.psn.add(span - 1);
        let flow = &mut self.flow[number as usize];
        flow.seen = now;
        let ahead = packet.psn.distance_from(flow.last);
        if flow.requester != packet.source_mac || flow.port != port || !(-FAR..=FAR).contains(&ahead) {
            return self.depart_again(now, packet, end, port, number);
        }
        if end.is_after(flow.last) {
            flow.last = end;
        }
        if flow.low.is_after(packet.psn) {
            flow.low = packet.psn;
        }
        flow.source_port = packet.source_port;
        Departure::Known(number)
    }

    /// A flow starts anew.
    #[cold]
    fn depart_again(&mut self, now: Time, packet: &Packet, end: Psn, port: PortId, number: u32) -> Departure {
        let Flow { stream, pair, .. } = self.flow[number as usize];
        if stream == NONE {
            // It still stands in the list of the pair.
            self.unlink(pair, number);
        } else {
            self.forget_stream(stream);
        }
        self.flow[number as usize] = first_of(packet, pair, end, port, now);
        self.link(pair, number);
        self.bind_fixed(now, number, packet);
        Departure::Again(number, stream != NONE)
    }

    #[inline(never)]
    fn depart_unknown(&mut self, now: Time, packet: &Packet, span: u32, port: PortId) -> Departure {
        let key = PairKey { vlan: packet.vlan, requester: packet.source, responder: packet.destination };
        let pair = self.pairs.find(&key);
        if let Some(pair) = pair
            && let Some(number) = self.flows.find(&numbered(pair, packet.qp))
        {
            return self.depart_known(now, packet, span, port, number);
        }
        let end = packet.psn.add(span - 1);
        let Some(number) = self.add_flow(now, packet, key, pair, end, port) else {
            if let Some(pair) = pair {
                self.pair[pair as usize].refused = Some(now);
            }
            return Departure::Refused;
        };
        self.bind_fixed(now, number, packet);
        Departure::New(number)
    }

    fn add_flow(
        &mut self,
        now: Time,
        packet: &Packet,
        key: PairKey,
        pair: Option<u32>,
        end: Psn,
        port: PortId,
    ) -> Option<u32> {
        if self.flows.len() == self.flows.capacity() || !self.may_add(now, packet.ingress) {
            return None;
        }
        let pair = match pair {
            Some(pair) => pair,
            None => {
                let pair = self.pairs.insert(key)?;
                self.pair[pair as usize] = Pair { first: NONE, used: 0, refused: None };
                pair
            }
        };
        let number = self.flows.insert(numbered(pair, packet.qp))?;
        self.pair[pair as usize].used += 1;
        self.flow[number as usize] = first_of(packet, pair, end, port, now);
        self.link(pair, number);
        Some(number)
    }

    /// True if the port may bring one more flow now.
    fn may_add(&mut self, now: Time, port: PortId) -> bool {
        let Some(bucket) = self.buckets.get_mut(port.index()) else { return false };
        let earned = now.since(bucket.at).nanos() / REFILL.nanos();
        if earned > 0 {
            bucket.tokens = BURST.min(bucket.tokens.saturating_add(earned.min(u64::from(BURST)) as u32));
            bucket.at = now;
        }
        let may = bucket.tokens > 0;
        bucket.tokens -= u32::from(may);
        may
    }

    fn bind_fixed(&mut self, now: Time, number: u32, packet: &Packet) {
        let known = (packet.source, packet.destination, packet.qp);
        let at = self.fixed.partition_point(|&(a, b, qp, _)| (a, b, qp) < known);
        let Some(&(a, b, qp, requester)) = self.fixed.get(at) else { return };
        if (a, b, qp) != known {
            return;
        }
        let pair = self.flow[number as usize].pair;
        if let Some(stream) = self.stream_of(now, pair, requester) {
            self.bind(stream, number);
        }
    }

    /// Finds the flow that an ACK or a NACK answers.
    pub(crate) fn answer(&mut self, now: Time, packet: &Packet, nack: bool) -> Answer {
        let key = PairKey { vlan: packet.vlan, requester: packet.destination, responder: packet.source };
        let Some(pair) = self.pairs.find(&key) else { return Answer::Unknown(Unknown::NoFlow) };
        let Some(stream) = self.stream_of(now, pair, packet.qp) else {
            return Answer::Unknown(Unknown::Full);
        };
        match self.stream[stream as usize].flow {
            NONE => self.learn(now, pair, stream, packet, nack),
            number => self.check(number, packet, nack),
        }
    }

    /// A reply of a known stream.
    fn check(&mut self, number: u32, packet: &Packet, nack: bool) -> Answer {
        let flow = &mut self.flow[number as usize];
        if flow.port != packet.ingress || flow.responder != packet.source_mac {
            return Answer::Unknown(Unknown::Elsewhere);
        }
        if nack {
            let from = flow.acked.map_or(flow.low, Psn::next).distance_from(packet.psn);
            let early = if flow.acked.is_some() { 0 } else { EARLY };
            return if from <= early && packet.psn.distance_from(flow.last) <= 1 {
                Answer::Flow(number)
            } else {
                Answer::Unknown(Unknown::Implausible)
            };
        }
        if packet.psn.is_after(flow.last) {
            let (pair, stream) = (flow.pair, flow.stream);
            flow.stream = NONE;
            self.forget_stream(stream);
            self.link(pair, number);
            return Answer::Unlearnt(number);
        }
        if flow.acked.is_none_or(|acked| packet.psn.is_after(acked)) {
            flow.acked = Some(packet.psn);
        }
        Answer::Flow(number)
    }

    /// A reply of an unknown stream.
    fn learn(&mut self, now: Time, pair: u32, stream: u32, packet: &Packet, nack: bool) -> Answer {
        if self.pair[pair as usize].refused.is_some_and(|at| now.since(at) <= REFUSED) {
            return Answer::Unknown(Unknown::Incomplete);
        }
        let before = self.stream[stream as usize];
        let of_before = |number: u32, flow: &Flow| {
            before.count == 0
                || flow.born <= before.since && before.candidates[..before.count.into()].contains(&number)
        };
        let mut found = Unknown::NoFlow;
        for evidence in &self.evidence {
            let (mut candidates, mut count, mut folds) = ([NONE; CANDIDATES], 0usize, (0usize, NONE));
            let (mut number, mut examined) = (self.pair[pair as usize].first, 0);
            while number != NONE {
                examined += 1;
                if examined > EXAMINED {
                    return Answer::Unknown(Unknown::Ambiguous);
                }
                let flow = &self.flow[number as usize];
                let port_fits = *evidence == Evidence::Psn || flow.source_port == packet.source_port;
                if port_fits && flow.can_have(packet, nack) && of_before(number, flow) {
                    if flow.port != packet.ingress || flow.responder != packet.source_mac {
                        found = Unknown::Elsewhere;
                    } else {
                        if let Some(candidate) = candidates.get_mut(count) {
                            *candidate = number;
                        }
                        count += 1;
                        let own = Qpn::new(self.flows.key(number).unwrap_or(0) as u32);
                        if fold(packet.qp, own) == packet.source_port
                            && flow.source_port == packet.source_port
                        {
                            folds = (folds.0 + 1, number);
                        }
                    }
                }
                number = flow.next;
            }
            let only = match (count, folds) {
                (1, _) => candidates[0],
                (_, (1, number)) => number,
                _ => NONE,
            };
            if only != NONE {
                self.bind(stream, only);
                let flow = &mut self.flow[only as usize];
                if !nack {
                    flow.acked = Some(packet.psn);
                }
                return Answer::Learnt(only);
            }
            if count > 0 {
                let own = &mut self.stream[stream as usize];
                if count <= CANDIDATES {
                    if own.count == 0 {
                        own.since = now;
                    }
                    (own.candidates, own.count) = (candidates, count as u8);
                }
                return Answer::Unknown(Unknown::Ambiguous);
            }
        }
        // Evidence that contradicts itself is worth nothing: the next reply starts again.
        self.stream[stream as usize].count = 0;
        Answer::Unknown(found)
    }

    /// The stream of a queue pair, which may be new; `None` if there is no room.
    fn stream_of(&mut self, now: Time, pair: u32, qp: Qpn) -> Option<u32> {
        let key = numbered(pair, qp);
        let number = match self.streams.find(&key) {
            Some(number) => number,
            None => {
                let number = self.streams.insert(key)?;
                self.pair[pair as usize].used += 1;
                let own = &mut self.stream[number as usize];
                (own.pair, own.flow, own.count) = (pair, NONE, 0);
                number
            }
        };
        self.stream[number as usize].seen = now;
        Some(number)
    }

    /// Learns that a stream answers a flow. Both leave the search.
    fn bind(&mut self, stream: u32, number: u32) {
        let old = self.stream[stream as usize].flow;
        if old != NONE {
            let pair = self.flow[old as usize].pair;
            self.flow[old as usize].stream = NONE;
            self.link(pair, old);
        }
        self.unlink(self.flow[number as usize].pair, number);
        self.flow[number as usize].stream = stream;
        self.stream[stream as usize].flow = number;
        self.stream[stream as usize].count = 0;
    }

    fn forget_stream(&mut self, stream: u32) {
        let pair = self.stream[stream as usize].pair;
        self.streams.remove(stream);
        self.release(pair);
    }

    fn link(&mut self, pair: u32, number: u32) {
        let own = &mut self.pair[pair as usize];
        self.flow[number as usize].next = own.first;
        own.first = number;
    }

    fn unlink(&mut self, pair: u32, number: u32) {
        let next = self.flow[number as usize].next;
        let mut at = self.pair[pair as usize].first;
        if at == number {
            self.pair[pair as usize].first = next;
            return;
        }
        while at != NONE {
            let after = self.flow[at as usize].next;
            if after == number {
                self.flow[at as usize].next = next;
                return;
            }
            at = after;
        }
    }

    /// Takes one from a pair's flows and streams, and forgets a pair without any.
    fn release(&mut self, pair: u32) {
        let own = &mut self.pair[pair as usize];
        own.used -= 1;
        if own.used == 0 {
            self.pairs.remove(pair);
        }
    }

    /// Moves on by `looks` calls of [`Connections::sweep`], without examining anything.
    pub(crate) fn skip(&mut self, looks: u64, count: usize) {
        let len = self.flow.len().max(1) as u64;
        let moved = (looks % len) * (count as u64).min(len);
        self.hand = ((u64::from(self.hand) + moved) % len) as u32;
    }

    /// Examines some flows and streams, and forgets the idle ones. Calls `forgotten` with the number of each such flow.
    pub(crate) fn sweep(&mut self, now: Time, count: usize, mut forgotten: impl FnMut(u32)) {
        for _ in 0..count.min(self.flow.len()) {
            let number = self.hand;
            self.hand = (self.hand + 1) % self.flow.len() as u32;
            let stream = self.stream[number as usize];
            let idle = |seen| now.since(seen) > self.idle;
            if self.streams.key(number).is_some() && stream.flow == NONE && idle(stream.seen) {
                self.forget_stream(number);
            }
            let flow = self.flow[number as usize];
            if self.flows.key(number).is_some() && now.since(flow.seen) > self.idle {
                if flow.stream == NONE {
                    self.unlink(flow.pair, number);
                } else {
                    self.forget_stream(flow.stream);
                }
                self.flows.remove(number);
                self.removals += 1;
                self.release(flow.pair);
                forgotten(number);
            }
        }
    }
}

impl Flow {
    /// Highest PSN that a departed packet can have taken.
    pub(crate) fn last(&self) -> Psn {
        self.last
    }

    /// True if the PSN of a reply fits.
    fn can_have(&self, packet: &Packet, nack: bool) -> bool {
        let behind = self.last.distance_from(packet.psn);
        let after_first = packet.psn.distance_from(self.low);
        // The NIC that sends a NACK has received a later packet.
        let (least, earliest) = if nack { (1, -EARLY) } else { (0, 0) };
        (least..NEAR).contains(&behind) && after_first >= earliest
    }
}

fn first_of(packet: &Packet, pair: u32, last: Psn, port: PortId, now: Time) -> Flow {
    Flow {
        pair,
        next: NONE,
        stream: NONE,
        port,
        requester: packet.source_mac,
        responder: packet.destination_mac,
        source_port: packet.source_port,
        low: packet.psn,
        last,
        acked: None,
        seen: now,
        born: now,
    }
}

/// A queue pair of a pair of hosts as one number.
const fn numbered(pair: u32, qp: Qpn) -> u64 {
    (pair as u64) << 24 | qp.value() as u64
}

/// The UDP source port that Linux gives a connection without a flow label, the same at both ends: `rdma_calc_flow_label`
/// and `rdma_flow_label_to_udp_sport` in `include/rdma/ib_verbs.h`.
pub fn fold(a: Qpn, b: Qpn) -> u16 {
    let product = u64::from(a.value()) * u64::from(b.value());
    let product = product ^ product >> 20 ^ product >> 40;
    let label = product as u32 & 0xF_FFFF;
    ((label & 0x3FFF) ^ label >> 14) as u16 | 0xC000
}
