//! What switches tell senders beside the marks of packets: one file per part, and the one list of them.
//!
//! | file | feedback |
//! |---|---|
//! | [`direct_cnp`] | a switch that would mark a packet sends a CNP to its sender |
//! | [`annulus`] | a switch near the source samples its queues and sends feedback in the manner of QCN |
//! | [`bicc`] | both ends of a long link: CNPs near the source, credit of the receivers near the destination |
//! | [`fair_rate`] | the edge of a datacentre tells senders their share of what a receiver drains |
//! | [`long_haul`] | congestion control at the edge of a datacentre, for flows with a remote end |
//!
//! A feedback chooses no path. It stands beside the scheme of its switch ([`crate::with_feedback`]), and gets a packet once the
//! scheme has chosen the packet's port. It may send CNPs, clear marks, end the CNPs of receivers, and hold data back.
//!
//! To add one, write `src/feedback/name.rs` with a `Config` (its table in a scenario), a state machine `Name` that is a
//! [`Feedback`], and `impl FeedbackRecipe for Config`. Add `name: Name` to the list below. The contract test at the end of this
//! file then checks it beside every scheme.

use crate::palette::Look;
use finding::{Finding, code};
use model::{Cx, NodeId, Packet, Plan, PortIndex, Reroute, Site, Verdict};
use rnic::NicConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a switch tells senders: a pure state machine, one instance per switch.
pub trait Feedback {
    /// Inputs that it needs; constant for the run.
    fn needs(&self) -> Needs;

    /// Handles a packet that has arrived, and that the scheme sends out by `port`. The verdict is to forward it there, to hold
    /// data, or to drop a CNP.
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, port: PortIndex) -> Verdict;

    /// Handles a data packet that starts on the wire of `port`, as [`model::Scheme::on_start`] does. Only with
    /// [`Needs::departures`].
    fn on_start(&mut self, _cx: &mut Cx<'_>, _pkt: &mut Packet, _port: PortIndex) {}

    /// Handles a time that [`Cx::wake_at`] requested, or an earlier one that the scheme requested.
    fn on_wake(&mut self, _cx: &mut Cx<'_>) {}

    /// Handles a change of routes.
    fn on_routes_change(&mut self, _news: &Reroute<'_>) {}

    /// Reports its counters by name; the results sum them over all switches.
    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64));
}

/// The inputs that a feedback needs beside arrivals of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// It reads [`Cx::queued`] at the port of data.
    pub queues: bool,
    /// It needs `on_packet` for replies, too.
    pub replies: bool,
    /// It needs `on_start`.
    pub departures: bool,
}

/// Settings of a feedback: every feedback's `Config` implements it.
pub trait FeedbackRecipe {
    /// State machine of a switch.
    type Feedback: Feedback;
    /// Look of ECMP with it in pictures.
    const LOOK: Look;
    /// Settings with which tests run the feedback: texts that follow `[feedback.NAME]`. Small numbers make rare events happen in
    /// short runs. Default: its defaults.
    const TRIALS: &'static [&'static str] = &[""];

    /// The feedback of one switch.
    fn build(&self, site: Site<'_>) -> Self::Feedback;

    /// Checks the settings against a plan; returns warnings.
    ///
    /// # Errors
    /// The first field that cannot work.
    fn validate(&self, _plan: &Plan) -> Result<Vec<Finding>, Finding> {
        Ok(Vec::new())
    }

    /// Checks the settings against a NIC; returns warnings.
    ///
    /// # Errors
    /// The first field that cannot work.
    fn validate_nic(&self, _nic: &NicConfig) -> Result<Vec<Finding>, Finding> {
        Ok(Vec::new())
    }

    /// True if it can stand in switches with a long link alone.
    fn needs_long_link(&self) -> bool {
        false
    }
}

/// `[feedback.none]`: nothing to set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "FeedbackNone")]
pub struct Silent {}

macro_rules! feedbacks {
    ($($(#[$meta:meta])* $module:ident: $Variant:ident),+ $(,)?) => {
        $(pub mod $module;)+

        /// A feedback and its settings: the table `[feedback.NAME]` of a scenario.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        #[expect(clippy::large_enum_variant, reason = "a scenario has few of them")]
        pub enum FeedbackConfig {
            /// No feedback: switches mark packets and send no CNPs.
            None(Silent),
            $($(#[$meta])* $Variant($module::Config),)+
        }

        impl FeedbackConfig {
            /// Names of all feedbacks, as a scenario spells them.
            pub const NAMES: &[&str] = &["none", $(kebab!($module)),+];

            /// The feedback of that name with its defaults.
            pub fn named(name: &str) -> Option<FeedbackConfig> {
                if name == "none" {
                    return Some(FeedbackConfig::default());
                }
                $(if name == kebab!($module) {
                    return Some(FeedbackConfig::$Variant(Default::default()));
                })+
                None
            }

            /// Name of the feedback, as a scenario spells it.
            pub fn name(&self) -> &'static str {
                match self {
                    FeedbackConfig::None(_) => "none",
                    $(FeedbackConfig::$Variant(_) => kebab!($module),)+
                }
            }

            /// Settings with which tests run the feedback: texts that follow `[feedback.NAME]`.
            pub fn trials(&self) -> &'static [&'static str] {
                match self {
                    FeedbackConfig::None(_) => &[""],
                    $(FeedbackConfig::$Variant(_) => <$module::Config as FeedbackRecipe>::TRIALS,)+
                }
            }

            /// Look in pictures; `None` without a feedback.
            pub(crate) fn look(&self) -> Option<Look> {
                match self {
                    FeedbackConfig::None(_) => None,
                    $(FeedbackConfig::$Variant(_) => Some(<$module::Config as FeedbackRecipe>::LOOK),)+
                }
            }

            /// The feedback of one switch; `None` if it cannot stand there.
            pub fn build(&self, site: Site<'_>) -> Option<AnyFeedback> {
                if !self.fits(site.plan, site.node) {
                    return None;
                }
                match self {
                    FeedbackConfig::None(_) => None,
                    $(FeedbackConfig::$Variant(config) => Some(AnyFeedback::$Variant(config.build(site))),)+
                }
            }
        }

        /// Evaluates an expression with the settings of any feedback, or another one without a feedback.
        macro_rules! of_config {
            ($any:expr, $config:ident => $value:expr, none => $none:expr) => {
                match $any {
                    FeedbackConfig::None(_) => $none,
                    $(FeedbackConfig::$Variant($config) => $value,)+
                }
            };
        }

        /// Any feedback, chosen at run time.
        #[expect(clippy::large_enum_variant, reason = "it is boxed together with its scheme")]
        pub enum AnyFeedback {
            $($(#[$meta])* $Variant($module::$Variant),)+
        }

        /// Calls a method of any feedback.
        macro_rules! of_feedback {
            ($any:expr, $feedback:ident => $call:expr) => {
                match $any {
                    $(AnyFeedback::$Variant($feedback) => $call,)+
                }
            };
        }
    };
}

feedbacks! {
    /// Direct CNPs: switches send CNPs to senders (the naive solution of the long-haul paper).
    direct_cnp: DirectCnp,
    /// Annulus (SIGCOMM'20): switches near the source send feedback in the manner of QCN.
    annulus: Annulus,
    /// BiCC (INFOCOM'24): at both ends of a long link, CNPs near the source and credit near the destination.
    bicc: Bicc,
    /// Fair rates (LSCC, LRCC): the edge of a datacentre tells senders the rate that they should not exceed.
    fair_rate: FairRate,
    /// Long-haul THEMIS: notification point and reaction point in the switch at a datacentre's edge.
    long_haul: LongHaul,
}

impl Default for FeedbackConfig {
    fn default() -> Self {
        FeedbackConfig::None(Silent {})
    }
}

impl FeedbackConfig {
    /// True for `none`.
    pub fn is_none(&self) -> bool {
        matches!(self, FeedbackConfig::None(_))
    }

    /// True if it can stand in a switch.
    pub fn fits(&self, plan: &Plan, node: NodeId) -> bool {
        !of_config!(self, config => config.needs_long_link(), none => false)
            || !long_haul::long_ports(plan, node).is_empty()
    }

    /// Checks the settings against a plan; returns warnings.
    ///
    /// # Errors
    /// The first field that cannot work.
    pub fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        of_config!(self, config => config.validate(plan), none => Ok(Vec::new()))
    }

    /// Checks the settings against a NIC; returns warnings.
    ///
    /// # Errors
    /// The first field that cannot work.
    pub fn validate_nic(&self, nic: &NicConfig) -> Result<Vec<Finding>, Finding> {
        of_config!(self, config => config.validate_nic(nic), none => Ok(Vec::new()))
    }

    /// Checks that it can stand in all of these switches, or, if `some` is set, in one of them at least.
    ///
    /// # Errors
    /// A switch that is unsuitable.
    pub fn place(&self, plan: &Plan, switches: &[NodeId], some: bool) -> Result<(), Finding> {
        let unfit = |node: &&NodeId| !self.fits(plan, **node);
        let Some(&node) = switches.iter().find(unfit) else { return Ok(()) };
        if some && !switches.iter().all(|node| unfit(&node)) {
            return Ok(());
        }
        let (name, role) = (plan.fabric.name(node), plan.fabric.role(node));
        let text = match some {
            true => "no switch has a long link, one that leads to another switch of the same role".to_owned(),
            false => format!(
                "the switch `{name}` has no long link: none of its links leads to another switch of the role `{role}`"
            ),
        };
        let help =
            format!("`{}` belongs at the two ends of a long link, as in `topology.datacentres`", self.name());
        Err(code::UNSUITED.at("", text).with_help(help))
    }
}

impl Feedback for AnyFeedback {
    fn needs(&self) -> Needs {
        of_feedback!(self, feedback => feedback.needs())
    }

    #[inline]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, port: PortIndex) -> Verdict {
        of_feedback!(self, feedback => feedback.on_packet(cx, pkt, port))
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, port: PortIndex) {
        of_feedback!(self, feedback => feedback.on_start(cx, pkt, port))
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        of_feedback!(self, feedback => feedback.on_wake(cx))
    }

    fn on_routes_change(&mut self, news: &Reroute<'_>) {
        of_feedback!(self, feedback => feedback.on_routes_change(news))
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        of_feedback!(self, feedback => feedback.counters(sink))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Bench, datacentres, leaf_spine, reply};
    use crate::{AnyScheme, SchemeConfig};
    use model::draw::{Key, Purpose, below};
    use model::{Kind, Psn, QpId, Scheme, Time};

    #[test]
    fn names_tables_and_variants_agree() {
        for &name in FeedbackConfig::NAMES {
            let config = FeedbackConfig::named(name).unwrap();
            assert_eq!(config.name(), name);
            assert_eq!(toml::from_str::<FeedbackConfig>(&format!("[{name}]")).unwrap(), config);
            assert!(toml::from_str::<FeedbackConfig>(&format!("[{name}]\nno-such-key = 1")).is_err());
            assert!(!SchemeConfig::names().contains(&name), "{name}");
        }
        assert_eq!(FeedbackConfig::named("long-hauls"), None);
        assert!(FeedbackConfig::default().is_none());
    }

    /// What a switch did with one packet: the verdict, the packet, and the packets that it made.
    type Step = (Verdict, Packet, Vec<Packet>);

    /// Sends a switch 3000 random packets of all kinds; returns what it did with each.
    fn story(plan: &Plan, switch: &str, scheme: AnyScheme) -> Vec<Step> {
        let mut bench = Bench::with(plan, switch, scheme);
        let (key, mut steps) = (Key::new(7, Purpose::Workload, 0), Vec::new());
        for i in 0..3_000 {
            let pick = |what, n| below(key.draw2(i, what), n);
            let qp = QpId(pick(0, plan.qps.len()) as u32);
            let psn = Psn::new((i as u32 / 8).wrapping_sub(4).wrapping_add(pick(1, 8) as u32));
            bench.queued.iter_mut().for_each(|q| *q = pick(2, 3) as u32 * 400_000);
            let mut pkt = match pick(3, 7) {
                0 => reply(plan, Kind::Ack, qp, psn),
                1 => reply(plan, Kind::Nack, qp, psn),
                2 => reply(plan, Kind::Cnp, qp, psn),
                _ => bench.data(qp, psn),
            };
            if pkt.is_data() && pick(5, 4) == 0 {
                pkt.mark();
            }
            bench.pass(bench.now);
            let seen = bench.see(pkt);
            steps.push((seen.verdict, seen.pkt, seen.emitted));
        }
        bench.queued.fill(0);
        bench.pass(Time::NEVER);
        assert!(bench.held.is_empty(), "{switch} holds packets for ever");
        steps
    }

    /// Beside any scheme a feedback leaves the choice of ports to the scheme, and touches feedback alone.
    #[test]
    fn every_feedback_keeps_its_contract_beside_every_scheme() {
        for (plan, switch) in [(datacentres(2), "external0"), (leaf_spine(3, 4, 2), "leaf0")] {
            let site = Site { plan: &plan, node: plan.fabric.find(switch).unwrap() };
            for scheme in SchemeConfig::names().iter().map(|name| SchemeConfig::named(name).unwrap()) {
                let alone = story(&plan, switch, scheme.build(site));
                for feedback in FeedbackConfig::NAMES.iter().map(|name| FeedbackConfig::named(name).unwrap())
                {
                    let both = || scheme.build(site).telling(feedback.build(site));
                    let what = format!("{} beside {}", feedback.name(), scheme.name());
                    assert!(!both().interest().local || feedback.build(site).is_none(), "{what}");
                    let told = story(&plan, switch, both());
                    assert_eq!(told, story(&plan, switch, both()), "{what} is not reproducible");
                    for ((before, _, emitted), (verdict, pkt, made)) in alone.iter().zip(&told) {
                        let ok = verdict == before
                            || *verdict == Verdict::Hold && pkt.is_data()
                            || *verdict == Verdict::Drop && pkt.kind() == Kind::Cnp;
                        assert!(ok, "{what}: {verdict:?} in place of {before:?}");
                        let more = made.iter().filter(|own| !emitted.contains(own));
                        assert!(
                            more.clone().all(|own| own.kind() == Kind::Cnp && own.qp() == pkt.qp()),
                            "{what}"
                        );
                    }
                }
            }
        }
    }
}
