//! Injected events: faults that a test asks for, packet by packet. They act on frames as they come in, before anything
//! else looks at them.

use crate::frame::{Kind, Roce};
use crate::units::{PortId, Span};
use std::net::IpAddr;
use wire::Psn;
use wire::bth::Qpn;

/// Connections that the rules can number. Our choice: a test injects into few; packets of further ones match no number.
const CONNECTIONS: usize = 256;

/// A rule: what happens to which packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Packets that came in at this port; `None` for all ports.
    pub from: Option<PortId>,
    /// Packets of this kind.
    pub kind: Matched,
    /// Packets of the connection with this number, from 1 in the order in which the port brought them first.
    pub connection: Option<u32>,
    /// Packets with this distance from the first PSN of their connection.
    pub psn: Option<u32>,
    /// Packets whose PSN leaves this remainder: divisor, at least 1, and remainder.
    pub psn_mod: Option<(u32, u32)>,
    /// Of the packets that meet all conditions above: these, counted from 1.
    pub nth: (u64, u64),
    /// Of the packets that `nth` allows: each n-th, at least 1.
    pub every: u64,
    /// What happens.
    pub action: Action,
}

/// A kind of packets that a rule names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Matched {
    /// Packets of the request stream, except reads.
    #[default]
    Data,
    /// ACKs.
    Ack,
    /// NACKs for missing packets.
    Nack,
    /// Other replies: receiver not ready, and errors.
    Reply,
    /// Congestion notification packets.
    Cnp,
    /// Requests of reads.
    ReadRequest,
    /// Responses to reads and atomic operations.
    Response,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is lost.
    Drop,
    /// It is marked, as by a queue.
    Mark,
    /// This bit of the IP packet flips, counted from the start of its last 16 bytes, so that the ICRC is wrong.
    Corrupt(u8),
    /// It comes in later.
    Delay(Span),
    /// It comes in twice.
    Duplicate,
    /// It comes in after so many later frames of its port.
    Reorder(u32),
    /// It is lost, and so is every later packet that meets the rule's conditions, whatever its count.
    Stop,
}

impl Action {
    /// The action's name in configurations and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Action::Drop => "drop",
            Action::Mark => "ce",
            Action::Corrupt(_) => "corrupt",
            Action::Delay(_) => "delay",
            Action::Duplicate => "duplicate",
            Action::Reorder(_) => "reorder",
            Action::Stop => "stop",
        }
    }
}

impl Rule {
    /// A rule for the first data packet of all.
    pub const fn new(action: Action) -> Self {
        Rule {
            from: None,
            kind: Matched::Data,
            connection: None,
            psn: None,
            psn_mod: None,
            nth: (1, 1),
            every: 1,
            action,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    port: PortId,
    source: IpAddr,
    destination: IpAddr,
    qp: Qpn,
    reply: bool,
    first: Psn,
    number: u32,
}

/// The rules and what they have counted.
#[derive(Debug)]
pub(crate) struct Injector {
    rules: Vec<(Rule, u64, bool)>,
    seen: Vec<Seen>,
}

impl Injector {
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let rules = rules.iter().map(|rule| (rule.clone(), 0, false)).collect();
        Injector { rules, seen: Vec::with_capacity(CONNECTIONS) }
    }

    /// What happens to a packet: the action of the first rule that applies.
    pub(crate) fn judge(&mut self, port: PortId, roce: &Roce) -> Option<Action> {
        let kind = match roce.kind {
            Kind::Request { .. } if roce.opcode == 0x0C => Matched::ReadRequest,
            Kind::Request { .. } => Matched::Data,
            Kind::Response => Matched::Response,
            Kind::Ack { .. } => Matched::Ack,
            Kind::Nack => Matched::Nack,
            Kind::Reply => Matched::Reply,
            Kind::Cnp => Matched::Cnp,
            Kind::Unknown => return None,
        };
        let seen = self.see(port, roce);
        let mut action = None;
        for (rule, count, stopped) in &mut self.rules {
            let distance = seen.map(|seen| roce.psn.value().wrapping_sub(seen.first.value()) & 0xFF_FFFF);
            let meets = rule.from.is_none_or(|from| from == port)
                && rule.kind == kind
                && rule.connection.is_none_or(|number| seen.is_some_and(|seen| seen.number == number))
                && rule.psn.is_none_or(|psn| distance == Some(psn))
                && rule.psn_mod.is_none_or(|(n, rest)| roce.psn.value() % n.max(1) == rest);
            if !meets {
                continue;
            }
            *count += 1;
            let (from, to) = rule.nth;
            let counts = (from..=to).contains(count) && (*count - from + 1).is_multiple_of(rule.every.max(1));
            *stopped |= counts && rule.action == Action::Stop;
            if action.is_none() && (counts || *stopped) {
                action = Some(rule.action);
            }
        }
        action
    }

    /// The connection of a packet. Replies are connections of their own.
    fn see(&mut self, port: PortId, roce: &Roce) -> Option<Seen> {
        let reply = !roce.is_request();
        let same = |seen: &&Seen| {
            (seen.port, seen.source, seen.destination, seen.qp, seen.reply)
                == (port, roce.source, roce.destination, roce.qp, reply)
        };
        if let Some(seen) = self.seen.iter().find(same) {
            return Some(*seen);
        }
        if self.seen.len() == CONNECTIONS {
            return None;
        }
        let earlier = self.seen.iter().filter(|seen| seen.port == port && seen.reply == reply).count();
        let (source, destination, qp) = (roce.source, roce.destination, roce.qp);
        let seen = Seen { port, source, destination, qp, reply, first: roce.psn, number: earlier as u32 + 1 };
        self.seen.push(seen);
        Some(seen)
    }
}
