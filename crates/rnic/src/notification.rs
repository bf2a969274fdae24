//! Reports of marked packets from the receiver to the sender.

use finding::{Finding, code};
use model::transport::{Fate, Reception, Reply};
use model::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Report of a mark to the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[cfg_attr(test, derive(Hash))]
#[serde(rename_all = "kebab-case")]
pub enum Cnp {
    /// A congestion notification packet (RoCEv2, InfiniBand Architecture Annex A17), at most one per queue pair in
    /// `cnp-interval`. A switch that blocks a NACK does not block it.
    #[default]
    Frame,
    /// A flag on the ACK or NACK that answers the marked packet, without a frame (the HPCC family of ns-3 simulators). A
    /// marked packet without an answer reports nothing.
    Flag,
    /// No report (for controls that do not read marks).
    None,
}

/// What the interval between two CNP frames counts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CnpScope {
    /// All queue pairs that receive at a port. A CNP goes to the sender of the packet that is marked first after the interval.
    #[default]
    Port,
    /// Each queue pair of the receiver.
    QueuePair,
}

/// CNPs of a receiver whose port is full, although no switch has marked a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SelfCnp {
    /// Time over which a port measures its ingress, from each multiple of this time on, and between two such CNPs of a queue pair. No
    /// default.
    pub interval: Time,
    /// Ingress above which each queue pair answers its first data packet of the next interval with a CNP: data packets, preamble and gap
    /// included. No default.
    pub above: Rate,
}

impl SelfCnp {
    pub(crate) fn validate(&self) -> Result<(), Finding> {
        match (self.interval, self.above) {
            (Time::ZERO, _) => Err(code::RANGE.at("self-cnp.interval", "must be longer than 0")),
            (_, Rate(0)) => Err(code::RANGE.at("self-cnp.above", "must be above 0")),
            _ => Ok(()),
        }
    }
}

/// Rules for reports of marks, shared by all queue pairs of a NIC.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct MarkRules {
    pub(crate) cnp: Cnp,
    /// Shortest time between two CNP frames.
    pub(crate) interval: Time,
}

/// Reports of one queue pair's marks.
#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Marks {
    /// Time before which no CNP is sent.
    quiet_until: Time,
}

impl Marks {
    /// Completes the answer to a packet with the report of its mark.
    #[inline]
    pub(crate) fn reception(
        &mut self,
        rules: &MarkRules,
        now: Time,
        marked: bool,
        fate: Fate,
        out_of_order: bool,
        reply: Option<Reply>,
    ) -> Reception {
        let (mut cnp, mut echo) = (false, false);
        if marked {
            match rules.cnp {
                Cnp::Frame => cnp = self.due(rules, now),
                Cnp::Flag => echo = reply.is_some(),
                Cnp::None => {}
            }
        }
        Reception { fate, out_of_order, reply, cnp, echo }
    }

    fn due(&mut self, rules: &MarkRules, now: Time) -> bool {
        let due = now >= self.quiet_until;
        if due {
            self.quiet_until = Time(now.ps().saturating_add(rules.interval.ps()));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Psn;

    const ACK: Option<Reply> = Some(Reply::Ack(Psn::new(0)));

    #[test]
    fn marks_within_the_interval_make_one_cnp() {
        let rules = MarkRules { cnp: Cnp::Frame, interval: Time::from_us(4) };
        let mut marks = Marks::default();
        let mut cnp =
            |ns, marked| marks.reception(&rules, Time::from_ns(ns), marked, Fate::Accepted, false, ACK).cnp;
        assert!(!cnp(0, false));
        assert!(cnp(100, true));
        assert!(!cnp(200, true) && !cnp(4_099, true));
        assert!(cnp(4_100, true));
    }

    #[test]
    fn every_reply_to_a_marked_packet_carries_the_flag() {
        let rules = MarkRules { cnp: Cnp::Flag, interval: Time::from_us(4) };
        let mut marks = Marks::default();
        let mut echo = |marked, reply| {
            let answer = marks.reception(&rules, Time::ZERO, marked, Fate::Accepted, false, reply);
            assert!(!answer.cnp);
            answer.echo
        };
        assert!(echo(true, ACK) && echo(true, ACK));
        assert!(!echo(false, ACK) && !echo(true, None));
    }
}
