//! `switch.pfc.watchdog`: what a switch does about queues that a neighbour pauses for too long.

use crate::values::LATEST;
use finding::{Finding, code};
use model::Time;
use model::plan::Watchdog;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The watchdog of PFC, with the times and names of SONiC's `pfcwd`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct WatchdogConfig {
    /// Time for which polls must find a queue paused, in whole polls; SONiC takes 100 ms to 5 s. Default 200 ms for every 32 ports of
    /// the switch (sonic-net/sonic-utilities, pfcwd/main.py).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detection_time: Option<Time>,
    /// Time without a pause after which the queue is restored, in whole polls; SONiC takes 100 ms to 60 s. Default 200 ms for every 32
    /// ports of the switch (sonic-net/sonic-utilities, pfcwd/main.py).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restoration_time: Option<Time>,
    /// Time between two polls, at most either of the other times; SONiC takes 100 ms to 1 s. Default 200 ms for every 32 ports of the
    /// switch, at most 1 s (sonic-net/sonic-utilities, pfcwd/main.py).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<Time>,
    /// Sign of a storm at a poll. `"broadcom"`: the queue stood paused since the poll before. `"nvidia"`: it holds packets, has sent none
    /// since the poll before, and stood paused for 99 % of that time. Default `"broadcom"` (sonic-net/sonic-swss, orchagent,
    /// pfc_detect_broadcom.lua and pfc_detect_mellanox.lua; its 99 % were 80 % until 2024).
    #[serde(skip_serializing_if = "is_broadcom")]
    pub detection: Detection,
    /// Fate of the packets of a stormed queue. `"drop"`: they are dropped, as are packets of its priority that come in by its port.
    /// `"forward"`: they leave in spite of pauses. Default `"drop"` (sonic-net/sonic-utilities, pfcwd/main.py).
    #[serde(skip_serializing_if = "is_drop")]
    pub action: Action,
}

/// Sign of a storm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detection {
    /// A queue that stays paused.
    #[default]
    Broadcom,
    /// A queue that stays paused, holds packets and sends none.
    Nvidia,
}

fn is_broadcom(detection: &Detection) -> bool {
    *detection == Detection::Broadcom
}

/// Fate of the packets of a stormed queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// They are dropped.
    #[default]
    Drop,
    /// They leave in spite of pauses.
    Forward,
}

fn is_drop(action: &Action) -> bool {
    *action == Action::Drop
}

/// Each of SONiC's default times, for every so many ports, and its longest time between polls. Vendor:
/// sonic-net/sonic-utilities, pfcwd/main.py.
const USUAL: Time = Time::from_ms(200);
const PORTS: usize = 32;
const LONGEST_POLL: Time = Time::from_ms(1_000);

impl WatchdogConfig {
    /// The watchdog of a switch with so many ports.
    pub(crate) fn watchdog(&self, ports: usize) -> Result<Watchdog, Finding> {
        let usual = Time(USUAL.ps() * ports.div_ceil(PORTS).max(1) as u64);
        let range = |key: &str, time: Option<Time>, usual: Time| match time {
            Some(time) if time == Time::ZERO || time > LATEST => {
                let text =
                    format!("expected a time above 0 and up to {LATEST}, such as \"200ms\", found {time}");
                Err(code::RANGE.at(key, text))
            }
            time => Ok(time.unwrap_or(usual)),
        };
        let detection = range("detection-time", self.detection_time, usual)?;
        let restoration = range("restoration-time", self.restoration_time, usual)?;
        let most = detection.min(restoration);
        let poll = range("poll-interval", self.poll_interval, usual.min(LONGEST_POLL).min(most))?;
        if poll > most {
            let text = format!(
                "expected at most the shorter of detection and restoration time, {most}, found {poll}"
            );
            return Err(code::FIT.at("poll-interval", text));
        }
        let polls = |time: Time| time.ps().div_ceil(poll.ps());
        let (drops, held) = (self.action == Action::Drop, self.detection == Detection::Nvidia);
        Ok(Watchdog { poll, detection: polls(detection), restoration: polls(restoration), drops, held })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Source, check};
    use model::Time;
    use model::plan::Watchdog;

    /// The watchdog of a leaf with four ports and of a spine with 40, or the error.
    fn told(keys: &str) -> Result<[Option<Watchdog>; 2], String> {
        let text = format!(
            "[switch.pfc]\n{keys}\n[topology.leaf-spine]\nleaves = 40\nspines = 2\nhosts-per-leaf = 2\nrate = \"10Gbps\"\n\
             [[workload]]\npermutation = {{}}\n"
        );
        let checked = check(&Source::new("w.toml", text), &[]).map_err(|error| error.to_string())?;
        let switches = &checked.plan.switches;
        Ok([0, switches.len() - 1].map(|i| switches[i].flow_control.watchdog()))
    }

    #[test]
    fn a_watchdog_has_the_times_of_sonic() {
        let ms = Time::from_ms;
        assert_eq!(told(""), Ok([None; 2]));
        let [leaf, spine] = told("watchdog = \"on\"").unwrap();
        let usual = Watchdog { poll: ms(200), detection: 1, restoration: 1, drops: true, held: false };
        assert_eq!(leaf, Some(usual));
        assert_eq!(spine, Some(Watchdog { poll: ms(400), ..usual }), "twice for more than 32 ports");
        let own = "watchdog = { detection-time = \"400ms\", restoration-time = \"2s\", poll-interval = \"150ms\", action = \"forward\" }";
        let own = told(own).unwrap()[1];
        assert_eq!(
            own,
            Some(Watchdog { poll: ms(150), detection: 3, restoration: 14, drops: false, held: false })
        );
        let [held, _] = told("watchdog.detection = \"nvidia\"").unwrap();
        assert_eq!(held, Some(Watchdog { held: true, ..usual }));
        let short = told("watchdog = { detection-time = \"2ms\", restoration-time = \"3ms\" }").unwrap()[0];
        assert_eq!(
            short,
            Some(Watchdog { poll: ms(2), detection: 1, restoration: 2, drops: true, held: false })
        );
    }

    #[test]
    fn a_watchdog_cannot_poll_more_rarely_than_it_acts() {
        let late = told("watchdog = { detection-time = \"100ms\", poll-interval = \"150ms\" }").unwrap_err();
        assert!(late.contains("at most the shorter of detection and restoration time, 100ms"), "{late}");
        let never = told("watchdog.restoration-time = \"0s\"").unwrap_err();
        assert!(never.contains("expected a time above 0"), "{never}");
        let alert = told("watchdog.action = \"alert\"").unwrap_err();
        assert!(alert.contains("alert") && alert.contains("drop"), "{alert}");
    }
}
