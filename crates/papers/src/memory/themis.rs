//! Themis (APNET'25), Eq. 4.

use super::Assignment;
use model::{Bytes, Plan, Rate, Time};
use schemes::SchemeConfig;
use schemes::themis::config::Entries;
use serde::Serialize;
use themis::Width;
use themis::memory::{QP_ENTRY_BYTES, RING_FACTOR, Tables, ring_entries};

/// Inputs of Themis's Eq. 4. The defaults are the paper's example.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ThemisInputs {
    /// Paths: entries of the PathMap.
    pub paths: u64,
    /// Cross-rack queue pairs per NIC.
    pub qps_per_nic: u64,
    /// NICs below the ToR.
    pub nics: u64,
    /// Rate of a NIC's link.
    pub rate: Rate,
    /// One-way delay of that link; the formula uses twice this value.
    pub last_hop_delay: Time,
    /// The factor F; the formula uses three decimal places.
    pub factor: f64,
    /// Largest frame (MTU).
    pub frame: Bytes,
    /// Bits of a PSN in the ring: 8, 16 or 24.
    pub psn_bits: u8,
    /// Entries of a ring; null for the formula.
    pub ring: Option<u64>,
    /// Packet memory of the switch, for comparison.
    pub sram: Bytes,
}

impl Default for ThemisInputs {
    fn default() -> Self {
        ThemisInputs {
            paths: 256,
            qps_per_nic: 100,
            nics: 16,
            rate: Rate::from_gbps(400),
            last_hop_delay: Time::from_us(1),
            factor: RING_FACTOR.0 as f64 / RING_FACTOR.1 as f64,
            frame: Bytes(1500),
            psn_bits: 8,
            ring: None,
            sram: Bytes(64_000_000),
        }
    }
}

/// Results of Eq. 4.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThemisMemory {
    /// Inputs.
    pub inputs: ThemisInputs,
    /// Entries of a ring.
    pub ring_entries: u64,
    /// Bytes of the PathMap.
    pub path_map_bytes: u64,
    /// Bytes of one queue pair.
    pub qp_bytes: u64,
    /// Bytes of the whole switch.
    pub total_bytes: u64,
    /// Share of the packet memory.
    pub share_of_sram: f64,
}

impl ThemisInputs {
    /// Changes one input.
    ///
    /// # Errors
    /// A message, if there is no such key or the value is not allowed.
    pub fn set(&mut self, assignment: &str) -> Result<(), String> {
        let set = Assignment::parse(assignment)?;
        let (key, value) = (set.key, set.value);
        let wrong = |why: &str| set.wrong(why);
        match key {
            "paths" => self.paths = set.whole()?,
            "qps-per-nic" => self.qps_per_nic = set.whole()?,
            "nics" => self.nics = set.whole()?,
            "rate" => self.rate = set.quantity()?,
            "last-hop-delay" => self.last_hop_delay = set.quantity()?,
            "factor" => match value.parse::<f64>() {
                Ok(factor) if factor > 0.0 && factor <= 1000.0 => self.factor = factor,
                _ => return Err(wrong("a number above 0 and not above 1000 is expected")),
            },
            "frame" => self.frame = set.quantity()?,
            "psn-bits" => match value {
                "8" | "16" | "24" => self.psn_bits = value.parse().unwrap_or(8),
                _ => return Err(wrong("8, 16 or 24 are possible")),
            },
            "ring" if value == "formula" => self.ring = None,
            "ring" => self.ring = Some(set.whole()?),
            "sram" => self.sram = set.quantity()?,
            _ => return Err(format!("there is no key `{key}`; {KEYS}")),
        }
        if self.frame == Bytes(0) || self.sram == Bytes(0) {
            return Err(wrong("a size above 0 is expected"));
        }
        Ok(())
    }

    /// Evaluates Eq. 4 of Themis (APNET'25).
    pub fn memory(&self) -> ThemisMemory {
        let factor = ((self.factor * 1000.0).round() as u64, 1000);
        let formula = ring_entries(self.rate.bps(), 2 * self.last_hop_delay.ps(), factor, self.frame.get());
        let tables = Tables {
            path_entries: self.paths,
            qps_per_nic: self.qps_per_nic,
            nics: self.nics,
            ring: self.ring.unwrap_or(formula),
            width: width(self.psn_bits),
            qp_entry_bytes: QP_ENTRY_BYTES,
        };
        let total = tables.total_bytes();
        ThemisMemory {
            ring_entries: tables.ring,
            path_map_bytes: Tables { nics: 0, ..tables }.total_bytes(),
            qp_bytes: tables.qp_bytes(),
            total_bytes: total,
            share_of_sram: results::stats::share(total, self.sram.get()),
            inputs: self.clone(),
        }
    }
}

const KEYS: &str =
    "the keys are paths, qps-per-nic, nics, rate, last-hop-delay, factor, frame, psn-bits, ring, sram";

fn width(bits: u8) -> Width {
    match bits {
        8 => Width::W8,
        16 => Width::W16,
        _ => Width::W24,
    }
}

/// Memory that the scheme needs in the most loaded ToR of a plan by its paper's formula, in bytes; `None` for schemes
/// without a formula.
pub fn of_plan(plan: &Plan, scheme: &SchemeConfig) -> Option<u64> {
    let SchemeConfig::Themis(config) = scheme else { return None };
    let fabric = &plan.fabric;
    let mut most = 0;
    for &tor in fabric.racks().iter().filter(|&&node| !fabric.is_host(node)) {
        let crosses =
            |qp: &&model::plan::Qp| fabric.attachment(qp.to) == tor && !fabric.same_rack(qp.from, qp.to);
        let hosts = fabric.ports(tor).iter().filter(|l| fabric.is_host(l.to));
        let ring = |l: &model::fabric::Link| {
            let factor = ((config.ring_factor * 1000.0).round() as u64, 1000);
            ring_entries(l.rate.bps(), 2 * l.delay.ps(), factor, plan.wire.max_frame().into())
        };
        let tables = Tables {
            path_entries: config.path_entries(fabric, tor) as u64,
            qps_per_nic: plan.qps.iter().filter(crosses).count() as u64,
            nics: 1,
            ring: match config.ring {
                Entries::Formula => hosts.map(ring).max().unwrap_or(0),
                Entries::Count(entries) => entries.into(),
            },
            width: width(config.psn_bits),
            qp_entry_bytes: QP_ENTRY_BYTES,
        };
        most = most.max(tables.total_bytes());
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_example_is_the_default() {
        let memory = ThemisInputs::default().memory();
        assert_eq!(memory.total_bytes, 192_512);
        assert_eq!((memory.ring_entries, memory.qp_bytes, memory.path_map_bytes), (100, 120, 512));
        assert!((memory.share_of_sram - 0.003_008).abs() < 1e-9);
    }

    #[test]
    fn keys_change_inputs_and_wrong_values_are_errors() {
        let mut inputs = ThemisInputs::default();
        inputs.set("psn-bits=16").unwrap();
        assert_eq!(inputs.memory().total_bytes, 352_512);
        inputs.set("rate = 800Gbps").unwrap();
        assert_eq!(inputs.memory().ring_entries, 200);
        inputs.set("ring=7").unwrap();
        assert_eq!(inputs.memory().ring_entries, 7);
        for wrong in [
            "ring=0",
            "sram=0B",
            "nics",
            "nics=x",
            "nics=-1",
            "speed=1",
            "psn-bits=12",
            "rate=400",
            "factor=0",
        ] {
            assert!(inputs.set(wrong).is_err(), "{wrong}");
        }
    }
}
