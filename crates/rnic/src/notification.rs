//! When a receiver reports marked packets to the sender.

use model::Time;
use model::transport::{Fate, Reception, Reply};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a receiver reports that a packet came marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cnp {
    /// A congestion notification packet of its own (RoCEv2, InfiniBand Architecture Annex A17), at most one
    /// per queue pair in `cnp-interval`. Blocking a NACK on its way does not block it.
    #[default]
    Frame,
    /// A flag on the ACK or NACK that answers the marked packet, and no frame (the HPCC family of ns-3
    /// simulators). A marked packet that is not answered reports nothing.
    Flag,
}

/// Turns marks into reports.
#[derive(Clone, Debug)]
pub struct Marks {
    cnp: Cnp,
    interval: Time,
    /// No CNP before this time.
    quiet_until: Time,
}

impl Marks {
    /// Reports as `cnp` says, CNP frames at least `interval` apart.
    pub const fn new(cnp: Cnp, interval: Time) -> Self {
        Marks { cnp, interval, quiet_until: Time::ZERO }
    }

    /// Completes the answer to a packet with the report of its mark.
    #[inline]
    pub fn reception(
        &mut self,
        now: Time,
        marked: bool,
        fate: Fate,
        out_of_order: bool,
        reply: Option<Reply>,
    ) -> Reception {
        let (mut cnp, mut echo) = (false, false);
        if marked {
            match self.cnp {
                Cnp::Frame => cnp = self.due(now),
                Cnp::Flag => echo = reply.is_some(),
            }
        }
        Reception { fate, out_of_order, reply, cnp, echo }
    }

    fn due(&mut self, now: Time) -> bool {
        let due = now >= self.quiet_until;
        if due {
            self.quiet_until = Time(now.ps().saturating_add(self.interval.ps()));
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
        let mut marks = Marks::new(Cnp::Frame, Time::from_us(4));
        let mut cnp = |ns, marked| marks.reception(Time::from_ns(ns), marked, Fate::Accepted, false, ACK).cnp;
        assert!(!cnp(0, false));
        assert!(cnp(100, true));
        assert!(!cnp(200, true) && !cnp(4_099, true));
        assert!(cnp(4_100, true));
    }

    #[test]
    fn the_flag_rides_on_every_reply_to_a_marked_packet() {
        let mut marks = Marks::new(Cnp::Flag, Time::from_us(4));
        let mut echo = |marked, reply| {
            let answer = marks.reception(Time::ZERO, marked, Fate::Accepted, false, reply);
            assert!(!answer.cnp);
            answer.echo
        };
        assert!(echo(true, ACK) && echo(true, ACK));
        assert!(!echo(false, ACK) && !echo(true, None));
    }
}
