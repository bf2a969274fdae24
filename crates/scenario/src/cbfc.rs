//! `switch.cbfc`: lossless classes whose switches grant credits in place of pauses.

use crate::headroom;
use crate::switch::PfcConfig;
use finding::{Finding, code};
use model::fabric::Link;
use model::plan::{Credits, Memory};
use model::{Bytes, Wire};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Credit-based flow control of Ultra Ethernet, with the names and values of SAI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CbfcConfig {
    /// Buffer of a port and virtual channel for what its neighbour sends, which is all that the neighbour may have in use. Default: what
    /// a link needs to run at its rate, 2 x delay x rate + `spacing` + 3 frames, in whole credits, and at most what counters of 20 bits tell apart, 134 MB with credits of
    /// 128 B (our choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credits: Option<Bytes>,
    /// Size of a credit: a frame takes whole credits. Default 128 B (`CBFC_SENDER_CREDIT_SIZE` of SAI, doc/CBFC).
    pub credit_size: Bytes,
    /// Bytes of wire between two words that return credits of a virtual channel; SAI takes 800 B and more, for all channels of a port
    /// together. Default 6400 B (`CBFC_CF_MIN_SPACING` of SAI, doc/CBFC).
    pub spacing: Bytes,
}

impl Default for CbfcConfig {
    fn default() -> Self {
        CbfcConfig { credits: None, credit_size: Bytes(128), spacing: Bytes(6_400) }
    }
}

/// Largest credit: SAI gives its size 16 bits. Vendor: SAI, doc/CBFC.
const MOST_UNIT: u64 = 65_535;
/// Longest spacing: a frame of a link of 1 Tb/s and 100 km is shorter. Our choice.
const MOST_SPACING: u64 = 1 << 30;
/// Frames beside those on the wire that keep a link busy: one that starts, one that the far end stores, and the largest one that must
/// still fit. Our choice.
const BESIDE: u64 = 3;

impl CbfcConfig {
    /// The rule of all ports. `pfc` and `memory` are those of the switch, which must ask for nothing that pauses alone have.
    pub(crate) fn rule(&self, pfc: &PfcConfig, memory: &Memory) -> Result<Credits, Finding> {
        let unsuited = |key: &str, text: &str| Err(code::UNSUITED.at(key, text));
        if pfc.watchdog.get().is_some() {
            return unsuited("pfc.watchdog", "a watchdog looks for pauses, and `switch.cbfc` sends none");
        }
        if pfc.headroom.is_some() || !pfc.alpha_at_rate.is_empty() {
            let key = if pfc.headroom.is_some() { "pfc.headroom" } else { "pfc.alpha-at-rate" };
            return unsuited(
                key,
                "`switch.cbfc` has no thresholds and no headroom; set `switch.cbfc.credits`",
            );
        }
        if !memory.is_plain() {
            let text = "`switch.cbfc` counts credits; `cell`, `slices` and `guarantee` are those of pauses";
            return unsuited("cbfc", text);
        }
        if !(1..=MOST_UNIT).contains(&self.credit_size.get()) {
            let text = format!("expected 1 to {MOST_UNIT} B, such as \"128B\", found {}", self.credit_size);
            return Err(code::RANGE.at("cbfc.credit-size", text));
        }
        if self.spacing.get() > MOST_SPACING {
            let text = format!("expected at most {}, found {}", Bytes(MOST_SPACING), self.spacing);
            return Err(code::RANGE.at("cbfc.spacing", text));
        }
        Ok(Credits { unit: self.credit_size.get() as u32, spacing: self.spacing })
    }

    /// The credits of a port's virtual channel, bytes.
    pub(crate) fn of(&self, rule: Credits, link: &Link, wire: &Wire) -> Result<Bytes, Finding> {
        let (unit, frame) = (u64::from(rule.unit), u64::from(wire.max_frame()));
        let least = rule.of(wire.max_frame());
        let on_the_way = headroom::least(link, wire, &Memory::PLAIN).get() - 2 * frame;
        let frames = (on_the_way + rule.spacing.get()).div_ceil(frame.max(1)) + BESIDE;
        let credits = match self.credits {
            Some(credits) => credits.get() / unit * unit,
            None => frames.saturating_mul(least).min(Credits::MOST * unit),
        };
        if credits < least {
            let text =
                format!("{} of credits cannot hold one frame, which takes {}", Bytes(credits), Bytes(least));
            return Err(code::FIT.at("cbfc.credits", text));
        }
        if credits / unit > Credits::MOST {
            let text = format!(
                "{} are {} credits of {unit} B, and counters of 20 bits tell {} apart; set a larger `credit-size`",
                Bytes(credits),
                credits / unit,
                Credits::MOST
            );
            return Err(code::FIT.at("cbfc.credits", text));
        }
        Ok(Bytes(credits))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Source, check};

    /// Credits of leaf0's four ports, B, or the error.
    fn told(switch: &str, more: &str) -> Result<Vec<u64>, String> {
        let text = format!(
            "{more}switch = {{ {switch} }}\nwire.frame = \"1500B\"\n[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n\
             rate = \"100Gbps\"\ndelay = \"500ns\"\n[[workload]]\npermutation = {{}}\n"
        );
        let checked = check(&Source::new("c.toml", text), &[]).map_err(|error| error.to_string())?;
        let plan = &checked.plan;
        let base = plan.fabric.base(plan.fabric.switches().next().unwrap()) as usize;
        Ok(plan.ports[base..base + 4].iter().map(|port| port.headroom.get()).collect())
    }

    #[test]
    fn a_link_has_the_credits_that_keep_it_busy() {
        // 12.5 kB are on the way and 6.4 kB may be freed before a word tells: 13 frames, and three beside.
        assert_eq!(told("cbfc = \"on\"", ""), Ok(vec![16 * 1_536; 4]));
        assert_eq!(told("cbfc.credits = \"20000B\"", ""), Ok(vec![19_968; 4]), "whole credits");
    }

    #[test]
    fn credits_hold_a_frame_and_counters_hold_them() {
        let few = told("cbfc.credits = \"1500B\"", "").unwrap_err();
        assert!(few.contains("1408B of credits cannot hold one frame, which takes 1536B"), "{few}");
        let many = told("cbfc.credits = \"200MB\", buffer = \"2GB\"", "").unwrap_err();
        assert!(many.contains("1562500 credits of 128 B"), "{many}");
    }

    #[test]
    fn what_belongs_to_pauses_is_refused() {
        let dog = told("cbfc = \"on\", pfc.watchdog = \"on\"", "").unwrap_err();
        assert!(dog.contains("a watchdog looks for pauses"), "{dog}");
        let room = told("cbfc = \"on\", pfc.headroom = \"50kB\"", "").unwrap_err();
        assert!(room.contains("set `switch.cbfc.credits`"), "{room}");
        let cells = told("cbfc = \"on\", cell = \"254B\"", "").unwrap_err();
        assert!(cells.contains("are those of pauses"), "{cells}");
        let lossy = told("cbfc = \"on\", pfc = \"off\"", "").unwrap_err();
        assert!(lossy.contains("no class is lossless"), "{lossy}");
        let storm = told("cbfc = \"on\"", "failure = [{ storm = [\"host0\"] }]\n").unwrap_err();
        assert!(storm.contains("set `switch.pfc`"), "{storm}");
        let slow = told("cbfc = \"on\"", "nic.receive = { rate = \"10Gbps\", pause = true }\n").unwrap_err();
        assert!(slow.contains("`pause = false`"), "{slow}");
    }
}
