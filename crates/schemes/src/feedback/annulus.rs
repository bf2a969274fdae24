//! Annulus in switches: the congestion point of QCN near the source.
//!
//! Saeed et al., "Annulus: A Dual Congestion Control Loop for Datacenter and WAN Traffic Aggregates", SIGCOMM'20. Its ToRs
//! send notifications in the manner of QCN (IEEE 802.1Qau) to hosts of their own, by IP. The hosts need
//! `nic.congestion.annulus`, which keeps a second rate for them; other controls take a notification for a CNP.
//! `direct-cnp` is the simple form, by marks and with plain CNPs.
//!
//! Every egress queue is sampled once per so many bytes of arriving data. A sample computes Fb = -(q - q_eq + w (q - q_old)),
//! where q_old is the queue at the sample before. If Fb is negative, the sampled packet's sender gets a notification with
//! |Fb|, quantised to 6 bits over q_eq (2 w + 1). More feedback makes samples more frequent. Marks stay as they are.
//!
//! # Counters
//!
//! | name | counts |
//! |---|---|
//! | `cnps_due` | samples that found the queue too long |
//! | `cnps_made` | notifications sent, to senders that `beyond` admits |
//! | `feedback_sum` | sum of their quantised feedback; over `cnps_made` it is the mean |

use super::direct_cnp;
use super::{Feedback, FeedbackRecipe, Needs};
use crate::palette::Look;
use finding::{Finding, code};
use model::{Advice, Bytes, Cx, HostId, Packet, Plan, PortIndex, Rate, Site, Time, Verdict};
use rnic::NicConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[feedback.annulus]`, or `[switch-role.ROLE.feedback.annulus]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "FeedbackAnnulus")]
pub struct Config {
    /// Queue that a port aims at, at 10 Gb/s; it grows with the port's rate. Default 33 kB (802.1Qau).
    pub queue: Bytes,
    /// Weight w of the queue's growth. Default 2 (802.1Qau).
    pub weight: f64,
    /// Bytes of data between two samples without feedback. Default 150 kB (802.1Qau).
    pub sample: Bytes,
    /// Bytes of data between two samples at the largest feedback. Default 15 kB (802.1Qau).
    pub least_sample: Bytes,
    /// Largest share by which these bytes vary at random. Default 0.15 (802.1Qau).
    pub jitter: f64,
    /// Propagation delay, one way, that a flow's path must exceed for its sender to get notifications; at 0 all senders get
    /// them. Default 0 (QCN notifies the sender of any sampled packet).
    pub beyond: Time,
    /// Restricts samples to packets that come from a host of this switch, that is to the source's ToR. Default true
    /// (Annulus: a ToR knows its hosts, higher switches do not).
    pub from_hosts: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            queue: Bytes(33_000),
            weight: 2.0,
            sample: Bytes(150_000),
            least_sample: Bytes(15_000),
            jitter: 0.15,
            beyond: Time::ZERO,
            from_hosts: true,
        }
    }
}

/// Rate for which `queue` is given.
const NOMINAL: Rate = Rate::from_gbps(10);

/// Congestion point of one port.
#[derive(Clone, Debug)]
struct Port {
    /// q_eq, bytes.
    aim: f64,
    /// Queue at the last sample, bytes.
    last: f64,
    /// Bytes until the next sample.
    left: f64,
}

/// The feedback of one switch.
#[derive(Clone, Debug)]
pub struct Annulus {
    config: Config,
    ports: Vec<Port>,
    /// Sending host of every queue pair, and whether its path is longer than `beyond`.
    senders: Vec<(HostId, bool)>,
    frame: u32,
    due: u64,
    made: u64,
    sum: u64,
}

impl FeedbackRecipe for Config {
    type Feedback = Annulus;
    const LOOK: Look = Look::new(0, 4);
    const TRIALS: &'static [&'static str] =
        &["queue = \"500B\"\nsample = \"3kB\"\nleast-sample = \"1kB\"\nfrom-hosts = false"];

    fn build(&self, site: Site<'_>) -> Annulus {
        let plan = site.plan;
        let port = |rate: Rate| Port {
            aim: self.queue.get() as f64 * rate.bps() as f64 / NOMINAL.bps() as f64,
            last: 0.0,
            left: self.sample.get() as f64,
        };
        Annulus {
            config: self.clone(),
            ports: plan.fabric.ports(site.node).iter().map(|link| port(link.rate)).collect(),
            senders: direct_cnp::senders(plan, self.beyond),
            frame: plan.wire.cnp,
            due: 0,
            made: 0,
            sum: 0,
        }
    }

    fn validate(&self, _: &Plan) -> Result<Vec<Finding>, Finding> {
        let fail = |field, text: &str| Err(code::RANGE.at(field, text));
        if self.queue == Bytes(0) {
            return fail("queue", "it must be above 0: feedback is measured by it");
        }
        if !(self.weight >= 0.0 && self.weight.is_finite()) {
            return fail("weight", "it must be a number of at least 0");
        }
        if self.least_sample == Bytes(0) || self.least_sample > self.sample {
            return fail("least-sample", "it must be above 0 and at most `sample`");
        }
        if !(0.0..1.0).contains(&self.jitter) {
            return fail("jitter", "it must be at least 0 and below 1");
        }
        Ok(Vec::new())
    }

    fn validate_nic(&self, nic: &NicConfig) -> Result<Vec<Finding>, Finding> {
        let text = "the congestion control takes Annulus's notifications for plain CNPs; `nic.congestion.annulus` has a rate \
                    of its own for them";
        Ok(if nic.congestion.advised().feedback { Vec::new() } else { vec![code::READ_AS.plain(text)] })
    }
}

impl Feedback for Annulus {
    fn needs(&self) -> Needs {
        Needs { queues: true, ..Needs::default() }
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, port: PortIndex) -> Verdict {
        if pkt.is_data() && (cx.from_host || !self.config.from_hosts) {
            self.count(cx, pkt, port);
        }
        Verdict::Forward(port)
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("cnps_due", self.due);
        sink("cnps_made", self.made);
        sink("feedback_sum", self.sum);
    }
}

impl Annulus {
    /// Counts data that joins `port`, and takes a sample if one is due.
    fn count(&mut self, cx: &mut Cx<'_>, pkt: &Packet, port: PortIndex) {
        let index = usize::from(port.0);
        let (config, state) = (&self.config, &mut self.ports[index]);
        state.left -= f64::from(pkt.frame());
        if state.left > 0.0 {
            return;
        }
        let queue = f64::from(cx.queued[index]);
        let excess = queue - state.aim + config.weight * (queue - state.last);
        state.last = queue;
        let most = f64::from(Advice::MOST_FEEDBACK);
        let feedback = (excess * most / (state.aim * (2.0 * config.weight + 1.0))).clamp(0.0, most).floor();
        // The sampling frequency grows linearly with feedback.
        let (rare, often) = (config.sample.get() as f64, config.least_sample.get() as f64);
        let bytes = rare / (1.0 + (rare / often - 1.0) * feedback / most);
        let uniform = (cx.draw() >> 11) as f64 / (1u64 << 53) as f64;
        state.left = bytes * (1.0 + config.jitter * (2.0 * uniform - 1.0));
        if feedback < 1.0 {
            return;
        }
        self.due += 1;
        if let Some(&(sender, true)) = self.senders.get(pkt.qp().index()) {
            self.made += 1;
            self.sum += feedback as u64;
            cx.emit(Advice::Feedback(feedback as u8).cnp(pkt.qp(), sender, self.frame));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Bench, leaf_spine, qp};
    use crate::feedback::FeedbackConfig;
    use model::Psn;

    /// Feedback of the notifications for packets that meet these queues, and the packets between them.
    fn notified(config: Config, switch: &str, queues: impl Fn(u32) -> u32, packets: u32) -> Vec<(u32, u8)> {
        let plan = leaf_spine(2, 2, 2);
        let far = qp(&plan, 0, 2);
        let mut bench = Bench::telling(&plan, switch, &FeedbackConfig::Annulus(config));
        let mut made = Vec::new();
        for n in 0..packets {
            bench.queued.iter_mut().for_each(|bytes| *bytes = queues(n));
            let pkt = bench.data(far, Psn::new(n));
            let seen = bench.see(pkt);
            assert!(matches!(seen.verdict, Verdict::Forward(_)) && !seen.pkt.marked());
            made.extend(seen.emitted.iter().map(|cnp| match Advice::of(cnp) {
                Some(Advice::Feedback(feedback)) if cnp.to() == HostId(0) => (n, feedback),
                other => panic!("{other:?}"),
            }));
        }
        made
    }

    #[test]
    fn feedback_grows_with_the_queue_and_its_growth_and_more_feedback_means_more_samples() {
        let exact = || Config { jitter: 0.0, ..Config::default() };
        // At 100 Gb/s the port aims at 330 kB.
        assert_eq!(
            notified(exact(), "leaf0", |_| 330_000, 101),
            [(99, 25)],
            "it has grown from 0: 2 x 330 of 1650 kB"
        );
        assert_eq!(notified(exact(), "leaf0", |_| 100_000, 400), [], "a short queue");
        let steady = notified(exact(), "leaf0", |_| 660_000, 2_000);
        assert_eq!(steady[0].1, 63, "it has jumped");
        let (at, feedback) = (steady[1].0 - steady[0].0, steady[1].1);
        assert!((9..=10).contains(&at) && feedback == 12, "15 kB later: {at} packets, feedback {feedback}");
        let later = steady[3].0 - steady[2].0;
        assert!((30..=37).contains(&later), "150 kB / (1 + 9 x 12 / 63) are 55 kB: {later} packets");
        assert!(notified(exact(), "spine0", |_| 660_000, 2_000).is_empty(), "a spine has no hosts");
        let wan = Config { beyond: Time::from_ms(1), ..exact() };
        assert!(notified(wan, "leaf0", |_| 660_000, 2_000).is_empty());
    }

    #[test]
    fn samples_vary_at_random() {
        let gaps = |jitter| {
            let made = notified(Config { jitter, ..Config::default() }, "leaf0", |_| 660_000, 20_000);
            let gaps: Vec<u32> = made.windows(2).skip(1).map(|pair| pair[1].0 - pair[0].0).collect();
            (*gaps.iter().min().unwrap(), *gaps.iter().max().unwrap())
        };
        let (least, most) = gaps(0.15);
        assert!(least >= 30 && most <= 43 && most > least + 5, "{least} to {most}");
        let (least, most) = gaps(0.0);
        assert!(most <= least + 1, "{least} to {most}");
    }
}
