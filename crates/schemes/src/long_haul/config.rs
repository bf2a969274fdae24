//! Settings of long-haul.

use super::LEAST_STEP;
use crate::ConfigError;
use model::{Bytes, Plan, Time};
use rnic::Control as _;
use rnic::congestion::dcqcn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[switch-role.external.scheme.long-haul]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeLongHaul")]
pub struct Config {
    /// Behaviour of the notification point. `"paper"`: at most one CNP per flow in `interval`. `"prototype"`: as in the
    /// prototype, one CNP for every marked packet, and a second one if `interval` has passed since the last. `"off"`: no
    /// CNPs. Default `"paper"`.
    pub notification: Notification,
    /// Shortest time between two CNPs to one flow's sender, made or forwarded; 0 sets no limit. It should equal the
    /// `cnp-interval` of receivers. Otherwise the senders that get more CNPs give way to those that get fewer. Default
    /// 50 us (long-haul paper, section 2).
    pub interval: Time,
    /// Whether CNPs from a long link count against the interval, and end here if it has not passed. Default true with
    /// `notification = "paper"` (long-haul paper, section 2), else false (prototype: not implemented).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<bool>,
    /// Behaviour of the reaction point. `"rate"`: packets of a flow are held for T_block, and leave no faster than a
    /// virtual DCQCN allows. `"delay"`: packets are held for T_block alone, in whole passes through the ingress pipeline,
    /// and no packet makes fewer passes than the packet before (the paper's wording, under which delays run away).
    /// `"prototype"`: as in the prototype, a packet goes to the tail of its port's queue once more, and the port then
    /// stands still; flows may never finish. `"off"`: no reaction. Default `"rate"` (our choice: a constant delay does not
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
    /// Most bytes held of one flow. Default: the bytes that the flow's sender sends at line rate in a round trip over the
    /// longest of the long links (our choice: by then the sender has received the CNP).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_stash: Option<Bytes>,
    /// Most bytes held in the switch. Default 209.7152 MB (our choice: 200 MiB, the buffer of an external switch in the
    /// prototype).
    pub stash: Bytes,
}

/// A DCQCN in the switch that receives a flow's CNPs before its sender does. It starts at the sender's line rate. Settings
/// that are absent here are the defaults of `[nic.congestion.dcqcn]`.
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
    pub(super) fn dcqcn(&self) -> dcqcn::Config {
        dcqcn::Config {
            rate_increase_timer: self.rate_increase_timer,
            fast_recovery: self.fast_recovery,
            rate_decrease_interval: self.rate_decrease_interval,
            alpha_timer: self.alpha_timer,
            ..dcqcn::Config::default()
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
    /// No reaction.
    Off,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            notification: Notification::Paper,
            interval: Time::from_us(50),
            gate: None,
            reaction: ReactionMode::Rate,
            first_delay: Time::from_us(8),
            most_delay: None,
            memory: Time::from_us(55),
            step: None,
            rate: VirtualRate::default(),
            flow_stash: None,
            stash: Bytes(200 << 20),
        }
    }
}

impl Config {
    pub(super) fn gates(&self) -> bool {
        self.gate.unwrap_or(self.notification == Notification::Paper)
    }

    pub(super) fn step(&self) -> Time {
        self.step.unwrap_or(self.interval.max(LEAST_STEP))
    }

    /// Checks the values; returns warnings.
    pub(super) fn checked(&self, plan: &Plan) -> Result<Vec<String>, ConfigError> {
        let fail = |field, text: String| Err(ConfigError::new(field, text));
        if self.notification == Notification::Prototype && self.interval == Time::ZERO {
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
            return fail("rate", format!("`{}` {}", invalid.field, invalid.reason));
        }
        let mut warnings = Vec::new();
        if plan.ports.iter().all(|port| port.marking.is_none()) {
            warnings
                .push("no switch marks packets (`ecn = \"off\"`), so long-haul has nothing to do".to_owned());
        }
        if self.reaction == ReactionMode::Prototype {
            warnings.push(
                "long-haul with `reaction = \"prototype\"`: after a packet returns to the tail, its port stands still until \
                 another packet comes; flows may never finish"
                    .to_owned(),
            );
        }
        Ok(warnings)
    }
}
