//! Frames sorted into connections, each a list of steps in the order of the capture.
//!
//! A connection is the request stream from one host to a queue pair of another. Its replies name the requester's queue pair,
//! which no request does, so the two are paired by evidence over the whole capture: a reply fits a connection if every ACK
//! names a PSN that was sent before it, and every NACK one that was, or is the next. Among several that fit, the one whose UDP
//! source port is the replies' counts. What stays ambiguous is left unpaired, and counted.

use crate::capture::{Capture, Way};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use tor::frame::{Class, Kind, Link, Roce, classify};
use wire::Psn;
use wire::bth::{self, Qpn};
use wire::ecn::Ecn;

/// A packet this far from the last one of its queue pair begins a new connection. Our choice: more than any window.
const FAR: i32 = 1 << 16;
/// Distance behind the last request up to which a reply is plausible. Our choice: many windows of a NIC.
const NEAR: i32 = 1 << 15;
/// PSNs before the first that a reply may name, if the capture does not show the first packet being sent. Our choice: more than a
/// queue pair has under way.
const EARLY: i32 = 1 << 13;

/// A RoCEv2 packet of the capture.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Place of its frame in the capture, from 0.
    pub frame: usize,
    /// Its time, ns.
    pub at: u64,
    /// Its port.
    pub port: u32,
    /// Its side.
    pub way: Way,
    /// Its fields.
    pub roce: Roce,
    /// VLAN, 0 for none.
    pub vlan: u16,
    /// True if its ICRC is right.
    pub intact: bool,
    /// The ICRC.
    pub icrc: u32,
    /// Bytes that a read asks for.
    pub asks: u32,
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// All packets up to this PSN have arrived.
    Ack(Psn),
    /// The packet with this PSN is missing.
    Nack(Psn),
    /// Something else: receiver not ready, or an error.
    Other(Psn),
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The requester sends a request that takes `span` PSNs.
    Sent {
        /// First PSN.
        psn: Psn,
        /// Number of PSNs.
        span: u32,
        /// True for a read.
        read: bool,
    },
    /// A request leaves for the responder.
    Delivered {
        /// First PSN.
        psn: Psn,
        /// Number of PSNs.
        span: u32,
        /// True if its ICRC is right.
        intact: bool,
        /// True if a switch has marked it.
        marked: bool,
    },
    /// The responder replies.
    Replied(Reply),
    /// A reply leaves for the requester.
    Heard(Reply),
    /// The responder answers a read or an atomic operation.
    Answered(Psn),
    /// Such a response leaves for the requester.
    AnswerHeard {
        /// Its PSN.
        psn: Psn,
        /// True if its ICRC is right.
        intact: bool,
    },
    /// The responder sends a CNP.
    Cnp,
}

/// A step of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Place of the frame in the capture, from 0.
    pub frame: usize,
    /// Time, ns.
    pub at: u64,
    /// What happened.
    pub act: Act,
}

/// A request stream with its replies.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Host that sends requests.
    pub requester: IpAddr,
    /// Host that executes them.
    pub responder: IpAddr,
    /// Queue pair of the responder.
    pub qp: Qpn,
    /// Queue pair of the requester, if the capture tells it.
    pub requester_qp: Option<Qpn>,
    /// VLAN, 0 for none.
    pub vlan: u16,
    /// First PSN.
    pub first: Psn,
    /// True if the capture shows the requests being sent, so that `first` is the first one.
    pub from_start: bool,
    /// The steps.
    pub steps: Vec<Step>,
    source_port: u16,
    /// Places of its request packets.
    requests: Vec<usize>,
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {} qp {}", self.requester, self.responder, self.qp.value())
    }
}

/// All connections of a capture.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    /// RoCEv2 packets of reliable connections, and CNPs, in the order of the capture.
    pub packets: Vec<Packet>,
    /// The connections, in the order of their first requests.
    pub all: Vec<Connection>,
    /// Replies whose connection is not known.
    pub unpaired: u64,
}

/// Hosts, VLAN and queue pair that name a stream of packets.
type Key = (u16, IpAddr, IpAddr, u32);

impl Connections {
    /// Sorts a capture.
    pub fn of(capture: &Capture) -> Self {
        let mut packets = Vec::new();
        for (n, frame) in capture.frames.iter().enumerate() {
            let Some(link) = Link::of(&frame.bytes) else { continue };
            let Class::Roce(roce) = classify(&link, &frame.bytes) else { continue };
            let icrc = frame.bytes.get(roce.icrc..).and_then(|rest| rest.first_chunk()).copied();
            packets.push(Packet {
                frame: n,
                at: frame.at,
                port: frame.port,
                way: frame.way,
                roce,
                vlan: link.vlan(),
                intact: roce.icrc_is_right(&frame.bytes),
                icrc: icrc.map_or(0, u32::from_le_bytes),
                asks: asked(&roce, &frame.bytes),
            });
        }
        // Where earlier frames are left out, no connection shows its start.
        let cut = capture.frames.first().and_then(|frame| frame.number).is_some_and(|number| number > 0);
        let mut connections = Connections { packets, ..Connections::default() };
        let mut streams = connections.requests(cut);
        streams.retain(|_, replies| !replies.is_empty());
        connections.pair(&streams);
        connections
    }

    /// Finds the connections by their requests. Returns the packets that answer: by hosts and the requester's queue pair.
    fn requests(&mut self, cut: bool) -> BTreeMap<Key, Vec<usize>> {
        let mut open: BTreeMap<Key, (usize, Psn)> = BTreeMap::new();
        let mut streams: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
        for (n, packet) in self.packets.iter().enumerate() {
            let roce = &packet.roce;
            let key = (packet.vlan, roce.source, roce.destination, roce.qp.value());
            match roce.kind {
                Kind::Request { .. } => {
                    let known = open.get(&key).filter(|(_, last)| roce.psn.distance_from(*last).abs() <= FAR);
                    let place = known.map_or(self.all.len(), |(place, _)| *place);
                    if place == self.all.len() {
                        self.all.push(Connection {
                            requester: roce.source,
                            responder: roce.destination,
                            qp: roce.qp,
                            requester_qp: None,
                            vlan: packet.vlan,
                            first: roce.psn,
                            from_start: !cut && packet.way != Way::Out,
                            steps: Vec::new(),
                            source_port: roce.source_port,
                            requests: Vec::new(),
                        });
                    }
                    open.insert(key, (place, roce.psn));
                    self.all[place].requests.push(n);
                }
                Kind::Unknown => {}
                _ => streams.entry(key).or_default().push(n),
            }
        }
        streams
    }

    /// Pairs replies with connections, and lays out the steps.
    fn pair(&mut self, streams: &BTreeMap<Key, Vec<usize>>) {
        let mut of_connection: Vec<Vec<usize>> = vec![Vec::new(); self.all.len()];
        let mut taken = BTreeSet::new();
        let mut waiting: Vec<(&Key, &Vec<usize>)> = streams.iter().collect();
        // A stream with one connection left takes it, which may leave another stream with one.
        loop {
            let before = waiting.len();
            waiting.retain(|(key, replies)| {
                let fit = self.candidates(key, replies, &taken);
                let ports =
                    |n: &&usize| self.all[**n].source_port == self.packets[replies[0]].roce.source_port;
                let by_port: Vec<_> = fit.iter().filter(ports).copied().collect();
                let only = match (&fit[..], &by_port[..]) {
                    (&[only], _) | (_, &[only]) => only,
                    _ => return true,
                };
                taken.insert(only);
                self.all[only].requester_qp = Some(Qpn::new(key.3));
                of_connection[only].extend_from_slice(replies);
                false
            });
            if waiting.is_empty() || waiting.len() == before {
                break;
            }
        }
        self.unpaired = waiting.iter().map(|(_, replies)| replies.len() as u64).sum();
        for (connection, replies) in self.all.iter_mut().zip(of_connection) {
            connection.lay_out(&self.packets, &replies);
        }
    }

    /// Connections that these replies can answer.
    fn candidates(&self, key: &Key, replies: &[usize], taken: &BTreeSet<usize>) -> Vec<usize> {
        let &(vlan, responder, requester, _) = key;
        let of_hosts = self.all.iter().enumerate().filter(|(n, connection)| {
            (connection.vlan, connection.responder, connection.requester) == (vlan, responder, requester)
                && !taken.contains(n)
        });
        of_hosts.filter(|(_, c)| c.can_answer(&self.packets, replies)).map(|(n, _)| n).collect()
    }
}

impl Connection {
    /// True if all replies name PSNs that had been sent.
    fn can_answer(&self, packets: &[Packet], replies: &[usize]) -> bool {
        let mut requests = self.requests.iter().copied().peekable();
        let mut last: Option<Psn> = None;
        replies.iter().all(|&reply| {
            while let Some(n) = requests.next_if(|n| *n < reply) {
                let Kind::Request { span } = packets[n].roce.kind else { continue };
                let end = packets[n].roce.psn.add(span - 1);
                last = Some(last.filter(|last| last.is_after(end)).unwrap_or(end));
            }
            let roce = &packets[reply].roce;
            if roce.kind == Kind::Cnp {
                return true;
            }
            let Some(last) = last else { return false };
            // A NACK may name the next packet to come. A switch with Themis makes it an ACK of the one before.
            let least = if roce.kind == Kind::Nack { -1 } else { 0 };
            let early = if self.from_start { 1 } else { EARLY };
            (least..NEAR).contains(&last.distance_from(roce.psn))
                && roce.psn.distance_from(self.first) >= -early
        })
    }

    /// Writes the steps.
    fn lay_out(&mut self, packets: &[Packet], replies: &[usize]) {
        let payload = |packet: &Packet| packet.roce.icrc - packet.roce.bth() - bth::LEN;
        // A first or middle response carries a whole MTU; a first one has an AETH, too.
        let mtu = replies.iter().filter_map(|&n| match packets[n].roce.opcode {
            0x0D => Some(payload(&packets[n]).saturating_sub(wire::aeth::LEN)),
            0x0E => Some(payload(&packets[n])),
            _ => None,
        });
        let mtu = mtu.max().unwrap_or(usize::MAX) as u64;
        let mut places: Vec<usize> = self.requests.iter().chain(replies).copied().collect();
        places.sort_unstable();
        for n in places {
            let packet = &packets[n];
            let (psn, intact) = (packet.roce.psn, packet.intact);
            let (inwards, outwards) = match packet.roce.kind {
                Kind::Request { .. } => {
                    let read = packet.roce.opcode == 0x0C;
                    let span = if read { u64::from(packet.asks).div_ceil(mtu).max(1) as u32 } else { 1 };
                    let marked = packet.roce.traffic_class.ecn() == Ecn::Ce;
                    (Some(Act::Sent { psn, span, read }), Some(Act::Delivered { psn, span, intact, marked }))
                }
                Kind::Response => (Some(Act::Answered(psn)), Some(Act::AnswerHeard { psn, intact })),
                // NICs drop packets with a wrong ICRC.
                _ if !intact => (None, None),
                Kind::Ack { .. } => (Some(Act::Replied(Reply::Ack(psn))), Some(Act::Heard(Reply::Ack(psn)))),
                Kind::Nack => (Some(Act::Replied(Reply::Nack(psn))), Some(Act::Heard(Reply::Nack(psn)))),
                Kind::Reply => (Some(Act::Replied(Reply::Other(psn))), Some(Act::Heard(Reply::Other(psn)))),
                Kind::Cnp => (Some(Act::Cnp), None),
                Kind::Unknown => (None, None),
            };
            let step = |act| Step { frame: packet.frame, at: packet.at, act };
            if packet.way != Way::Out {
                self.steps.extend(inwards.map(step));
            }
            if packet.way != Way::In {
                self.steps.extend(outwards.map(step));
            }
        }
    }
}

/// Bytes that a read asks for.
fn asked(roce: &Roce, frame: &[u8]) -> u32 {
    let reth = frame.get(roce.bth() + bth::LEN..).and_then(|rest| wire::reth::View::new(rest).ok());
    match reth {
        Some(view) if roce.opcode == 0x0C => wire::reth::Repr::parse(&view).length,
        _ => 0,
    }
}
