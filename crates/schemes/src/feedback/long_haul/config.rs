//! Settings of long-haul.

use super::links::{LEAST_STEP, time_to_send};
use finding::{Finding, code};
use model::{Bytes, Plan, Rate, Time};
use rnic::Control as _;
use rnic::congestion::dcqcn_hpcc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[switch-role.external.feedback.long-haul]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "FeedbackLongHaul")]
pub struct Config {
    /// Behaviour of the notification point. `"paper"`: at most one CNP per flow in `interval`. `"prototype"`: as in the
    /// prototype, one CNP for every marked packet, and a second one if `interval` has passed since the last.
    /// `"proactive"`: the notification point of the full version (ICNP'25). It acts as data starts on the wire of any
    /// port, after the switch's own marking, and clears every mark; a flow's sender gets a CNP if `interval` has passed
    /// since the last one left. `"off"`: no CNPs. Default `"paper"` (the poster).
    pub notification: Notification,
    /// Shortest time between two CNPs to one flow's sender, made or forwarded; 0 sets no limit. It should equal the
    /// `cnp-interval` of receivers. Otherwise the senders that get more CNPs give way to those that get fewer. Default
    /// 50 us (long-haul paper, section 2); 5 us with `notification = "proactive"` (ICNP'25 artefact).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Time>,
    /// Time from a marked packet until its CNP leaves. Default 0; 2 us with `notification = "proactive"` (ICNP'25
    /// artefact: a pass through the pipeline).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cnp_delay: Option<Time>,
    /// Upper end of the delays from which every CNP draws its own; `cnp-delay` is the lower end. The authors' P4 switch
    /// takes 3 to 53 us. Default: `cnp-delay`, without a draw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cnp_delay_most: Option<Time>,
    /// Table of the numbers of senders' queue pairs, which a CNP needs; a packet names the receiver's alone. Without an
    /// entry there is no CNP. Default: none, every flow gets CNPs (ICNP'25 artefact, ns-3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cnp_table: Option<CnpTable>,
    /// Whether CNPs from a long link count against the interval, and end here if it has not passed. Default true with
    /// `notification = "paper"` (long-haul paper, section 2), else false (prototype: not implemented).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<bool>,
    /// Behaviour of the reaction point. `"rate"`: packets of a flow are held for T_block, and leave no faster than a
    /// virtual DCQCN allows. `"delay"`: packets are held for T_block alone, in whole passes through the ingress pipeline,
    /// and no packet makes fewer passes than the packet before (the paper's wording, under which delays run away).
    /// `"prototype"`: as in the prototype, a packet goes to the tail of its port's queue once more, and the port then
    /// stands still; flows may never finish. `"loop"`: the reaction point of the full version (ICNP'25), which sends a
    /// flow's packets through a loop of the switch, more often with every CNP. `"pause"`: the switch pauses the long link,
    /// the alternative that the full version compares. `"off"`: no reaction. Default `"rate"` (our choice: a constant delay does not
    /// change a rate).
    pub reaction: ReactionMode,
    /// T_block after a single CNP. Default 8 us (our choice: a round trip within the paper's datacentre; the paper gives no
    /// number).
    pub first_delay: Time,
    /// Upper bound of T_block. Default: the round trip over the longest of the long links (our choice: by then the sender
    /// has received the CNP).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_delay: Option<Time>,
    /// Memory for CNPs. A CNP within this time of the flow's last one doubles T_block. Each such time without a CNP halves
    /// T_block, and T_block below half of `first-delay` becomes 0. With `"prototype"`, a flow's packets take further turns
    /// for this long after a CNP. Default 55 us (prototype: the counterpart of its alpha timer; doubling and halving are
    /// our choice, the paper says "similar to DCQCN").
    pub memory: Time,
    /// Shortest time between two changes of a flow's T_block. Default: `interval`, and at least 1 us (our choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Time>,
    /// Settings of the virtual rate of `reaction = "rate"`.
    pub rate: VirtualRate,
    /// Settings of `reaction = "loop"`.
    #[serde(rename = "loop", skip_serializing_if = "Circuit::is_default")]
    pub circuit: Circuit,
    /// With `reaction = "pause"`, time after the last CNP of a local receiver until the switch resumes the long link.
    /// Default 55 us (our choice: as `memory`; the artefact has no rule).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Time>,
    /// Most bytes held of one flow. Default: the bytes that the flow's sender sends at line rate in a round trip over the
    /// longest of the long links (our choice: by then the sender has received the CNP).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_stash: Option<Bytes>,
    /// Most bytes held in the switch. Default 209.7152 MB (our choice: 200 MiB, the buffer of an external switch in the
    /// prototype).
    pub stash: Bytes,
}

/// A DCQCN in the switch that receives a flow's CNPs before its sender does. It starts at the sender's line rate. Settings
/// that are absent here are the defaults of `[nic.congestion.dcqcn-hpcc]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "LongHaulVirtualRate")]
pub struct VirtualRate {
    /// Time between rate increases. Default 55 us (DCQCN paper, SIGCOMM 2015; our choice over the sender's own timer: this
    /// loop is short, and held packets delay the flow for as long as the virtual rate is below the arrival rate).
    pub rate_increase_timer: Time,
    /// Number of increases that only return towards the rate before the cut. Default 5 (DCQCN paper, SIGCOMM 2015).
    pub fast_recovery: u32,
    /// Shortest time between rate cuts. Default 4 us (HPCC simulators).
    pub rate_decrease_interval: Time,
    /// Time between updates of alpha. Default 1 us (HPCC simulators).
    pub alpha_timer: Time,
}

impl Default for VirtualRate {
    fn default() -> Self {
        VirtualRate {
            rate_increase_timer: Time::from_us(55),
            fast_recovery: 5,
            rate_decrease_interval: Time::from_us(4),
            alpha_timer: Time::from_us(1),
        }
    }
}

impl VirtualRate {
    pub(super) fn dcqcn(&self) -> dcqcn_hpcc::Config {
        dcqcn_hpcc::Config {
            rate_increase_timer: self.rate_increase_timer,
            fast_recovery: self.fast_recovery,
            rate_decrease_interval: self.rate_decrease_interval,
            alpha_timer: self.alpha_timer,
            ..dcqcn_hpcc::Config::default()
        }
    }
}

/// Behaviour of the notification point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "LongHaulNotification")]
pub enum Notification {
    /// As described in the paper: at most one CNP per flow and interval.
    Paper,
    /// As in the prototype: one CNP for every marked packet, or two.
    Prototype,
    /// As in the full version: at departure, by any mark.
    Proactive,
    /// No notification.
    Off,
}

/// Behaviour of the reaction point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "LongHaulReaction")]
pub enum ReactionMode {
    /// A delay and a virtual rate.
    Rate,
    /// A delay alone.
    Delay,
    /// As in the prototype: a further turn in the queue of the port.
    Prototype,
    /// As in the full version: passes through a loop.
    Loop,
    /// Pauses of the long link.
    Pause,
    /// No reaction.
    Off,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            notification: Notification::Paper,
            interval: None,
            cnp_delay: None,
            cnp_delay_most: None,
            cnp_table: None,
            gate: None,
            reaction: ReactionMode::Rate,
            first_delay: Time::from_us(8),
            most_delay: None,
            memory: Time::from_us(55),
            step: None,
            rate: VirtualRate::default(),
            circuit: Circuit::default(),
            pause: None,
            flow_stash: None,
            stash: Bytes(200 << 20),
        }
    }
}

impl Config {
    fn proactive(&self) -> bool {
        self.notification == Notification::Proactive
    }

    pub(super) fn interval(&self) -> Time {
        self.interval.unwrap_or(Time::from_us(if self.proactive() { 5 } else { 50 }))
    }

    /// Shortest and longest delay of a CNP.
    pub(super) fn cnp_delays(&self) -> (Time, Time) {
        let least = self.cnp_delay.unwrap_or(Time::from_us(if self.proactive() { 2 } else { 0 }));
        (least, self.cnp_delay_most.unwrap_or(least))
    }

    pub(super) fn pause(&self) -> Time {
        self.pause.unwrap_or(Time::from_us(55))
    }

    pub(super) fn gates(&self) -> bool {
        self.gate.unwrap_or(self.notification == Notification::Paper)
    }

    pub(super) fn step(&self) -> Time {
        self.step.unwrap_or(self.interval().max(LEAST_STEP))
    }

    /// Checks the values; returns warnings.
    pub(super) fn checked(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        let fail = |field, text: String| Err(code::RANGE.at(field, text));
        if self.notification == Notification::Prototype && self.interval() == Time::ZERO {
            let text = "the prototype sends a second CNP after this interval, so 0 would double every CNP; \
                        the prototype has 10 us";
            return fail("interval", text.to_owned());
        }
        for (field, time) in [("first-delay", Some(self.first_delay)), ("most-delay", self.most_delay)] {
            if time == Some(Time::ZERO) && self.reaction == ReactionMode::Delay {
                return fail(
                    field,
                    "with `reaction = \"delay\"` it must be longer than 0: nothing else holds packets back"
                        .into(),
                );
            }
        }
        if self.memory == Time::ZERO {
            return fail(
                "memory",
                "it must be longer than 0, or every CNP would be forgotten at once".to_owned(),
            );
        }
        if self.step == Some(Time::ZERO) {
            let text = "T_block may double once per step, so it must be longer than 0";
            return fail("step", text.to_owned());
        }
        if self.most_delay.is_some_and(|most| most < self.first_delay) {
            let text = format!("it is below `first-delay` ({})", self.first_delay);
            return fail("most-delay", text);
        }
        if self.reaction == ReactionMode::Rate
            && let Err(invalid) = self.rate.dcqcn().validate()
        {
            return fail("rate", format!("`{}` {}", invalid.path(), invalid.text));
        }
        let (least, most) = self.cnp_delays();
        if most < least {
            return fail("cnp-delay-most", format!("it is below the shortest delay of a CNP ({least})"));
        }
        if self.reaction == ReactionMode::Loop {
            self.circuit.checked()?;
        }
        let lossless = |switch: &model::plan::SwitchSettings| switch.flow_control.is_lossless();
        if self.reaction == ReactionMode::Pause && !plan.switches.iter().all(lossless) {
            let text = "a switch that drops (`flow = \"lossy\"`) sends no pauses";
            return fail("reaction", text.to_owned());
        }
        if self.reaction == ReactionMode::Pause && self.pause == Some(Time::ZERO) {
            return fail("pause", "it must be longer than 0, or no pause would last".to_owned());
        }
        let mut warnings = Vec::new();
        if self.reaction == ReactionMode::Loop {
            warnings.extend(self.circuit.warning(plan));
        }
        if self.reaction == ReactionMode::Pause && self.pause() >= plan.no_progress {
            let text = "long-haul with `reaction = \"pause\"`: a pause lasts as long as `stop.no-progress` or longer, so flows \
                        may never finish";
            warnings.push(code::NO_END.at("pause", text));
        }
        if plan.ports.iter().all(|port| port.marking.is_none()) {
            let text = "no switch marks packets (`ecn = \"off\"`), so long-haul has nothing to do";
            warnings.push(code::NO_MARKS.plain(text));
        }
        if self.reaction == ReactionMode::Prototype {
            let text = "long-haul with `reaction = \"prototype\"`: after a packet returns to the tail, its port stands still \
                        until another packet comes; flows may never finish";
            warnings.push(code::NO_END.at("reaction", text));
        }
        Ok(warnings)
    }
}

/// Table of the P4 prototype, by which a switch knows the number of a sender's queue pair. Programs at the hosts report
/// queue pairs to the switch's processor when they begin and when they end. Here an entry comes with the first packet of a
/// message and goes after its last one, as with a queue pair for every message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "LongHaulCnpTable")]
pub struct CnpTable {
    /// Most flows in the table. A full table takes a flow once another one has ended. Default 10000 (ICNP'25 artefact, P4).
    pub entries: usize,
    /// Time from a flow's first packet at the switch until its entry is there. Default 0 (the artefact tests that the
    /// entry comes before the first data).
    pub install_delay: Time,
    /// Time from a message's last packet until its flow's entry is removed, unless the next message has begun. Default 3 us (ICNP'25 artefact, its estimate of the
    /// entries that it needs).
    pub removal_delay: Time,
}

impl Default for CnpTable {
    fn default() -> Self {
        CnpTable { entries: 10_000, install_delay: Time::ZERO, removal_delay: Time::from_us(3) }
    }
}

/// The loop of `reaction = "loop"`, a port of the switch whose link leads back to the switch. A flow with a CNP has a
/// number of passes. Each of its packets from the long link makes so many passes before it leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "LongHaulLoop")]
pub struct Circuit {
    /// Rate of the loop. Default 1600 Gb/s (ICNP'25 artefact).
    pub rate: Rate,
    /// Delay of the loop. Default 100 ns (ICNP'25 artefact).
    pub delay: Time,
    /// Passes after a flow's first CNP. Default 1 (ICNP'25 artefact).
    pub passes: u32,
    /// Upper bound of a flow's passes; with `ramp = "twenty"` at most 400 count. Default 3000 (ICNP'25 artefact: the length
    /// of its tables, which it does not check).
    pub most_passes: u32,
    /// How passes grow. `"sqrt"`: after the first CNP, one pass for every `threshold` CNPs and one for the first CNP of
    /// each such count, and each pass raises the threshold by 1. `"twenty"`: a pass per CNP for the first ten, then one
    /// for every twentieth (the artefact until March 2025). Default `"sqrt"` (the artefact since March 2025).
    pub ramp: Ramp,
    /// First threshold of `ramp = "sqrt"`, CNPs. Default 5 (ICNP'25 artefact, its `alpha`).
    pub threshold: u32,
    /// Shortest time between two CNPs of a flow that count. Default 5 ns (ICNP'25 artefact).
    pub gap: Time,
    /// How a flow's packets leave the loop after its last CNP.
    pub recovery: Recovery,
    /// Places for the state of flows, selected by the exclusive or of sender, receiver and queue pair. Default: one for
    /// every flow. The journal version's switch has 1024.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Fate of a flow whose place is taken. `"ignore"`: it has no state, so its packets make no passes. `"share"`: both
    /// flows have the same state. Default `"ignore"` (ICNP'25 artefact, journal version).
    pub on_collision: Collision,
    /// Time from a flow's first CNP until its packets make passes. Default 0, as with state in registers; 2 ms for a match
    /// table that the processor of the switch fills (ICNP'25 artefact, journal version).
    pub cpu_delay: Time,
    /// Packets of full size that circle for ever, to take the loop's capacity. Default 0 (the journal version sweeps it).
    pub background: u32,
}

impl Default for Circuit {
    fn default() -> Self {
        Circuit {
            rate: Rate::from_gbps(1600),
            delay: Time::from_ns(100),
            passes: 1,
            most_passes: 3000,
            ramp: Ramp::Sqrt,
            threshold: 5,
            gap: Time::from_ns(5),
            recovery: Recovery::default(),
            slots: None,
            on_collision: Collision::Ignore,
            cpu_delay: Time::ZERO,
            background: 0,
        }
    }
}

/// Most packets that circle for ever. Our choice: a thousand times more than the default loop carries.
const MOST_BACKGROUND: u32 = 20_000;

impl Circuit {
    fn is_default(&self) -> bool {
        *self == Circuit::default()
    }

    fn warning(&self, plan: &Plan) -> Option<Finding> {
        let fastest = plan.fabric.links().iter().map(|link| link.rate).max()?;
        let frame = time_to_send(plan.wire.max_frame().into(), self.rate);
        let longest = (self.delay.ps().saturating_add(frame)).saturating_mul(self.most_passes.into());
        let (key, text) = if self.rate < fastest {
            ("rate", format!("the loop ({}) is slower than the fastest link ({fastest})", self.rate))
        } else if longest >= plan.no_progress.ps() {
            let text = "`most-passes` may take";
            ("most-passes", format!("{text} {}, as long as `stop.no-progress` or longer", Time(longest)))
        } else {
            return None;
        };
        let text = format!("long-haul with `reaction = \"loop\"`: {text}, so flows may never finish");
        Some(code::NO_END.at(&format!("loop.{key}"), text))
    }

    fn checked(&self) -> Result<(), Finding> {
        let fail = |field, text: &str| Err(code::FIT.at(field, text));
        if self.rate == Rate(0) {
            return fail("loop.rate", "it must be above 0, or no packet would come back");
        }
        if self.delay == Time::ZERO {
            return fail(
                "loop.delay",
                "it must be longer than 0, or passes of a single packet would take no time",
            );
        }
        if self.passes == 0 || self.passes > self.most_passes {
            return fail("loop.passes", "it must be at least 1 and at most `most-passes`");
        }
        if self.most_passes > 100_000 {
            return fail("loop.most-passes", "it must be at most 100000");
        }
        if self.slots == Some(0) {
            return fail("loop.slots", "it must be at least 1: without a place no flow makes passes");
        }
        if self.background > MOST_BACKGROUND {
            return fail("loop.background", "it must be at most 20000 packets");
        }
        Ok(())
    }
}

/// How passes grow with CNPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "LongHaulRamp")]
pub enum Ramp {
    /// About twice the square root of the CNPs.
    Sqrt,
    /// Ten at once, then one for every twentieth CNP.
    Twenty,
}

/// Fate of a flow whose place is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "LongHaulCollision")]
pub enum Collision {
    /// The flow has no state.
    Ignore,
    /// The flow has the state of the other one.
    Share,
}

/// How packets leave the loop early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "LongHaulRecovery")]
pub struct Recovery {
    /// Time after a flow's last CNP from which its packets may leave before their passes are over. Default 500 us (ICNP'25
    /// artefact; its branches have 1 to 8 ms).
    pub after: Time,
    /// `"ordered"`: a packet leaves if no packet of its flow has fewer passes left. `"direct"`: every packet that comes round
    /// leaves, so packets may overtake each other. `"none"`: packets make all their passes. Default `"ordered"` (ICNP'25
    /// artefact).
    pub mode: RecoveryMode,
}

impl Default for Recovery {
    fn default() -> Self {
        Recovery { after: Time::from_us(500), mode: RecoveryMode::Ordered }
    }
}

/// Order of the packets that leave the loop early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "LongHaulRecoveryMode")]
pub enum RecoveryMode {
    /// In order.
    Ordered,
    /// As they come round.
    Direct,
    /// None leaves early.
    None,
}
