//! PLB: a flow that meets congestion for several round trips draws another path (Qureshi et al., "PLB: Congestion Signals
//! are Simple and Effective for Network Load Balancing", SIGCOMM'22).
//!
//! The sender counts marks by rounds, each about a round trip long: a round ends when the first packet after its start is
//! acknowledged. A round is congested if a large share of its replies carry a mark. After a few congested rounds in a row the
//! sender waits for the moment at which nothing is in flight, and draws another UDP source port: the move then reorders nothing.
//! After many congested rounds it moves at once. A timeout moves the flow, too, and then bars moves by congestion for a while, so
//! that they do not lead back to a dead path. Switches need nothing but ECMP and ECN.
//!
//! The rules and defaults are those of the paper's authors in Linux (`net/ipv4/tcp_plb.c`, and the sysctls `tcp_plb_*`), which
//! change the flow label of IPv6. Our choices: the share counts replies, where TCP counts delivered packets; a draw covers all
//! source ports, so that the new one may lead over the same path.
//!
//! # Counters
//!
//! | counter | meaning |
//! |---|---|
//! | `moves_idle` | moves while nothing was in flight |
//! | `moves_forced` | moves with packets in flight |
//! | `moves_timeout` | moves after a timeout |

use crate::entropies::{Entropies, Mapping};
use crate::{Facts, Recipe, Steers};
use finding::{Finding, code};
use model::draw::{Key, below};
use model::steering::{Room, Sent};
use model::{Plan, QpSite, Site, Stamp, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.plb]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemePlb")]
pub struct Config {
    /// Share of a round's replies whose marks make the round congested, above 0 and at most 1. Default 0.5 (Linux,
    /// `tcp_plb_cong_thresh`: 128 of 256).
    pub threshold: f64,
    /// Congested rounds in a row after which a flow moves once nothing is in flight; 0 for never. Default 3 (Linux,
    /// `tcp_plb_idle_rehash_rounds`).
    pub idle_rounds: u32,
    /// Congested rounds in a row after which a flow moves at once. Default 12 (Linux, `tcp_plb_rehash_rounds`).
    pub rounds: u32,
    /// Time after a timeout in which congestion moves no flow; a draw makes it up to twice as long. Default "60s" (Linux,
    /// `tcp_plb_suspend_rto_sec`).
    pub suspend: Time,
    /// Source ports to draw from, 1 to 65535. Default 16384 (as `rps-nic`).
    pub entropies: u16,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            threshold: 0.5,
            idle_rounds: 3,
            rounds: 12,
            suspend: Time::from_ms(60_000),
            entropies: 16384,
        }
    }
}

/// Sending part of the scheme, in the NIC.
#[derive(Clone, Debug)]
pub struct Plb {
    config: Config,
    key: Key,
    drawn: u64,
    entropy: u16,
    /// Number after the last packet that was sent for the first time.
    next: u64,
    /// The round ends when packets before this one are acknowledged.
    end: u64,
    /// Replies of the round, and those with a mark.
    replies: u32,
    marked: u32,
    /// Congested rounds in a row.
    congested: u32,
    /// End of the time in which congestion moves no flow.
    suspended: Time,
    idle: u64,
    forced: u64,
    timeouts: u64,
}

impl Recipe for Config {
    type Scheme = Entropies;
    const TRIALS: &'static [&'static str] = &[
        "threshold = 0.2\nidle-rounds = 1\nrounds = 2\nsuspend = \"20us\"",
        "threshold = 1\nidle-rounds = 0\nrounds = 1\nentropies = 6",
    ];

    fn facts(&self) -> Facts {
        Facts::plain(false)
    }

    fn build(&self, site: Site<'_>) -> Entropies {
        Entropies::new(Mapping::Hash, site)
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        if !(self.threshold > 0.0 && self.threshold <= 1.0) {
            let text = format!("a share of {}; it must be above 0 and at most 1", self.threshold);
            return Err(code::RANGE.at("threshold", text));
        }
        if self.rounds == 0 {
            return Err(code::RANGE.at("rounds", "at least one congested round must come before a move"));
        }
        if self.entropies == 0 {
            return Err(code::RANGE.at("entropies", "at least one source port is needed"));
        }
        let mut warnings = Vec::new();
        if plan.ports.iter().all(|port| port.marking.is_none()) {
            warnings.push(
                code::NO_MARKS.plain("no switch marks packets, so `plb` moves flows after timeouts alone"),
            );
        }
        Ok(warnings)
    }
}

impl Steers for Config {
    type Steering = Plb;

    fn steer(&self, site: QpSite<'_>) -> Plb {
        let mut plb = Plb {
            config: Config { entropies: self.entropies.max(1), rounds: self.rounds.max(1), ..self.clone() },
            key: site.key(),
            drawn: 0,
            entropy: 0,
            next: 0,
            end: 0,
            replies: 0,
            marked: 0,
            congested: 0,
            suspended: Time::ZERO,
            idle: 0,
            forced: 0,
            timeouts: 0,
        };
        plb.move_on();
        plb
    }
}

impl Plb {
    /// Draws a source port.
    fn move_on(&mut self) {
        self.entropy = self.draw(self.config.entropies.into()) as u16;
        self.congested = 0;
    }

    fn draw(&mut self, below_this: usize) -> usize {
        self.drawn += 1;
        below(self.key.draw(self.drawn), below_this)
    }

    /// Ends a round, and begins the next one.
    fn end_round(&mut self) {
        let share = f64::from(self.marked) / f64::from(self.replies.max(1));
        let most = self.config.rounds.max(self.config.idle_rounds);
        self.congested =
            if share >= self.config.threshold { self.congested.saturating_add(1).min(most) } else { 0 };
        (self.end, self.replies, self.marked) = (self.next, 0, 0);
    }
}

impl model::Steering for Plb {
    type Annex = Stamp;

    #[inline]
    fn on_send(&mut self, now: Time, sent: Sent) -> Stamp {
        self.next = self.next.max(sent.seq + 1);
        Stamp::new(self.entropy, now)
    }

    fn on_reply(&mut self, now: Time, una: u64, annex: &Stamp, _: Room<'_>) -> u32 {
        if una > self.end {
            self.end_round();
        }
        self.replies += 1;
        self.marked += u32::from(annex.marked());
        let (idle, idle_rounds, rounds) = (una >= self.next, self.config.idle_rounds, self.config.rounds);
        let forced = self.congested >= rounds;
        let quiet = idle && idle_rounds > 0 && self.congested >= idle_rounds;
        if (forced || quiet) && now >= self.suspended {
            *(if idle { &mut self.idle } else { &mut self.forced }) += 1;
            self.move_on();
        }
        0
    }

    fn on_timeout(&mut self, now: Time) {
        let most = self.config.suspend.ps();
        let more = ((u128::from(most) * self.draw(1 << 16) as u128) >> 16) as u64;
        self.suspended = Time(now.ps().saturating_add(most).saturating_add(more));
        self.timeouts += 1;
        self.move_on();
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("moves_idle", self.idle);
        sink("moves_forced", self.forced);
        sink("moves_timeout", self.timeouts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::leaf_spine;
    use model::transport::Telling;
    use model::{Dialogue as _, QpId, Steering as _};

    /// A flow that sends ten packets a round trip, whose ACKs come back in order.
    struct Flow {
        plb: Plb,
        sent: u64,
        acked: u64,
        now: Time,
    }

    impl Flow {
        fn of(config: Config) -> Flow {
            let plb = config.steer(QpSite { plan: &leaf_spine(2, 4, 1), qp: QpId(0) });
            Flow { plb, sent: 0, acked: 0, now: Time::ZERO }
        }

        fn send(&mut self) -> u16 {
            let sent = Sent { seq: self.sent, again: false, left: 0, frame: 1500 };
            self.sent += 1;
            self.plb.on_send(self.now, sent).entropy()
        }

        fn ack(&mut self, marked: bool) {
            self.acked += 1;
            let annex = Stamp::new(0, self.now).answer(self.now, marked, Telling::default);
            self.plb.on_reply(self.now, self.acked, &annex, &mut || 0);
        }

        /// A round trip in which `marks` of ten ACKs carry a mark, and each releases a packet; returns whether the flow moved.
        fn round(&mut self, marks: u64) -> bool {
            while self.sent < self.acked + 10 {
                self.send();
            }
            let before = self.plb.entropy;
            for ack in 0..10 {
                self.ack(ack < marks);
                self.send();
            }
            self.now = Time(self.now.ps() + 10_000_000);
            self.plb.entropy != before
        }

        /// Acknowledges all that is in flight, without marks.
        fn drain(&mut self) {
            while self.acked < self.sent {
                self.ack(false);
            }
        }
    }

    /// Round trips with five marks of ten until the flow moves.
    fn rounds_until_it_moves(flow: &mut Flow) -> usize {
        1 + (0..99).take_while(|_| !flow.round(5)).count()
    }

    #[test]
    fn a_flow_moves_after_twelve_congested_rounds_in_a_row() {
        let mut flow = Flow::of(Config::default());
        assert_eq!(
            rounds_until_it_moves(&mut flow),
            12 + 1,
            "the next round trip begins before a flow moves"
        );
        assert_eq!(rounds_until_it_moves(&mut flow), 12, "the new path starts afresh");
        assert_eq!((flow.plb.forced, flow.plb.idle), (2, 0));
    }

    #[test]
    fn a_round_with_fewer_marks_than_half_starts_the_count_anew() {
        let mut flow = Flow::of(Config::default());
        (0..11).for_each(|_| assert!(!flow.round(10)));
        assert!(!flow.round(4));
        assert_eq!(rounds_until_it_moves(&mut flow), 12 + 1);
    }

    #[test]
    fn after_three_congested_rounds_a_flow_moves_when_nothing_is_in_flight() {
        for (congested, moves) in [(2, 0), (3, 1)] {
            let mut flow = Flow::of(Config::default());
            (0..congested).for_each(|_| assert!(!flow.round(5)));
            let before = flow.plb.entropy;
            flow.drain();
            assert_eq!((flow.plb.idle, flow.plb.forced), (moves, 0));
            assert_eq!(flow.send() != before, moves > 0);
        }
    }

    #[test]
    fn a_timeout_moves_the_flow_and_then_bars_moves_for_up_to_twice_the_time() {
        let suspend = Time::from_us(300);
        let mut flow = Flow::of(Config { suspend, rounds: 1, ..Config::default() });
        flow.round(0);
        let before = flow.plb.entropy;
        flow.plb.on_timeout(flow.now);
        assert_ne!(flow.plb.entropy, before);
        let barred = 10 * (rounds_until_it_moves(&mut flow) as u64 - 1);
        assert!((300..=610).contains(&barred), "{barred} us");
        assert_eq!((flow.plb.timeouts, flow.plb.forced), (1, 1));
    }

    #[test]
    fn impossible_settings_are_refused() {
        let field = |config: Config| config.validate(&leaf_spine(2, 2, 1)).unwrap_err().path();
        for threshold in [0.0, 1.001, f64::NAN] {
            assert_eq!(field(Config { threshold, ..Config::default() }), "threshold");
        }
        assert_eq!(field(Config { rounds: 0, ..Config::default() }), "rounds");
        assert_eq!(field(Config { entropies: 0, ..Config::default() }), "entropies");
    }
}
