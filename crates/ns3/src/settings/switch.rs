//! Buffers, PFC and marking.

use super::Mapping;
use crate::tokens::Token;
use crate::topology::{Dialect, Link};
use finding::Finding;
use model::{Bytes, Rate};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a port that HPCC's program reserves beside the shared buffer.
const RESERVED: u64 = 4 * 1024;
/// Buffer per port of ConWeave's program with BUFFER_SIZE 0.
const PER_PORT: u64 = 375_000;

impl<'a> Mapping<'a, '_, '_> {
    pub(super) fn switch(&mut self) -> Result<(), Finding> {
        self.classes()?;
        let lossless = self.pfc()?;
        self.buffers(lossless)?;
        self.marking()
    }

    /// In HPCC's program ACKs share the queue of data in switches, whatever ACK_HIGH_PRIO says.
    fn classes(&mut self) -> Result<(), Finding> {
        if self.config.is_conweave() {
            return Ok(());
        }
        let high = self.config.flag("ACK_HIGH_PRIO")?;
        let word = self.config.given("ACK_HIGH_PRIO").unwrap_or(self.settings.start);
        if self.has_loops() && high {
            return Ok(());
        }
        if high {
            self.warn(
                &word,
                "the ACKs of a paused NIC wait here: ACK_HIGH_PRIO lets them overtake the pause",
            );
        }
        self.put(word, "switch", "classes = \"one\"");
        Ok(())
    }

    /// PFC of all switches; true if there is any.
    fn pfc(&mut self) -> Result<bool, Finding> {
        let word = self.config.given("ENABLE_PFC").unwrap_or(self.settings.start);
        // Only ConWeave's program has the key.
        if (self.config.is_conweave() || self.config.given("ENABLE_PFC").is_some())
            && !self.config.flag("ENABLE_PFC")?
        {
            self.put(word, "switch", "pfc = \"off\"");
            return Ok(false);
        }
        if self.config.is_conweave() {
            self.put(word, "switch", "pfc = { alpha = \"1/16\" }");
            return Ok(true);
        }
        // The share doubles with each doubling of a rate above that of the NICs, up to 1.
        let nic = self.graph.first_host_rate();
        let mut faster = Vec::new();
        if self.dialect() != Dialect::Tors {
            for rate in self.switch_rates().into_iter().filter(|rate| Some(*rate) > nic) {
                let (mut shift, mut left) = (3u32, rate.bps());
                while Some(Rate(left)) > nic && shift > 0 {
                    (shift, left) = (shift - 1, left / 2);
                }
                faster.push(format!("{{ rate = \"{rate}\", alpha = \"1/{}\" }}", 1 << shift));
            }
        }
        let faster = match faster.is_empty() {
            true => String::new(),
            false => format!(", alpha-at-rate = [{}]", faster.join(", ")),
        };
        self.put(word, "switch", format!("pfc = {{ alpha = \"1/8\"{faster}, headroom = {{ delays = 3 }} }}"));
        Ok(true)
    }

    /// Rates of the links of switches. NVSwitches mark no packet.
    fn switch_rates(&self) -> BTreeSet<Rate> {
        let graph = self.graph;
        let is_switch = |id| graph.switches.contains_key(&id) && !graph.nvswitches.contains(&id);
        let links = self.graph.links.iter().filter(|link| is_switch(link.from) || is_switch(link.to));
        links.map(|link| link.rate).collect()
    }

    /// The buffer of every switch: one for all, and roles for switches that differ.
    fn buffers(&mut self, lossless: bool) -> Result<(), Finding> {
        let Some(word) = self.config.get("BUFFER_SIZE") else { return Ok(()) };
        let mib: u32 = word.number("a buffer in MiB")?;
        // The programs compute in 32 bits.
        let size = u64::from(mib.wrapping_mul(1 << 20));
        let mut ports: BTreeMap<u32, Vec<&Link>> =
            self.graph.switches.keys().map(|id| (*id, Vec::new())).collect();
        for link in &self.graph.links {
            for end in [link.from, link.to] {
                if let Some(ports) = ports.get_mut(&end) {
                    ports.push(link);
                }
            }
        }
        let mut others = BTreeMap::new();
        let mut wrapped = Vec::new();
        for (id, links) in &ports {
            let headroom: u64 = links.iter().map(|link| headroom(link)).fold(0, u64::saturating_add);
            let kept = headroom.saturating_add(RESERVED * links.len() as u64);
            let own = match (self.config.is_conweave(), self.dialect()) {
                (true, _) if mib == 0 => PER_PORT * links.len() as u64,
                (true, _) => size,
                (false, Dialect::Tors) => size.saturating_add(headroom),
                (false, _) if lossless && kept > size => {
                    wrapped.push((*id, kept));
                    let shared = size.wrapping_sub(kept) & u64::from(u32::MAX);
                    shared.saturating_add(headroom)
                }
                (false, _) => size,
            };
            others.insert(*id, own);
        }
        self.say_wrapped(&word, size, &wrapped);
        // The most common size is that of `[switch]`.
        let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
        others.values().for_each(|own| *sizes.entry(*own).or_default() += 1);
        let usual = sizes.iter().max_by_key(|(_, count)| **count).map_or(size, |(own, _)| *own);
        let text = match usual == u64::from(mib) << 20 {
            true => format!("{mib}MiB"),
            false => Bytes(usual).to_string(),
        };
        self.put(word, "switch", format!("buffer = \"{text}\""));
        let roles: BTreeMap<u64, String> = sizes
            .into_keys()
            .filter(|own| *own != usual)
            .zip(1..)
            .map(|(own, n)| (own, format!("buffer-{n}")))
            .collect();
        for (own, role) in &roles {
            self.put(word, &format!("switch-role.{role}"), format!("buffer = \"{}\"", Bytes(*own)));
        }
        for (id, own) in others {
            if let Some(role) = roles.get(&own)
                && !self.graph.nvswitches.contains(&id)
            {
                self.settings.roles.insert(id, role.clone());
            }
        }
        Ok(())
    }

    /// Says which buffers are smaller than their headrooms.
    fn say_wrapped(&mut self, word: &Token<'_>, size: u64, wrapped: &[(u32, u64)]) {
        let Some((first, kept)) = wrapped.first() else { return };
        let more = match wrapped.len() {
            1 => String::new(),
            n => format!(" (and those of {} more switches)", n - 1),
        };
        self.warn(
            word,
            format!(
                "the headrooms of node {first}'s ports take {}, more than its buffer of {}{more}; the program's 32-bit \
                 difference wraps to about 4 GB, so such a switch never pauses a neighbour, and the scenario gives it such a \
                 buffer",
                Bytes(*kept),
                Bytes(size)
            ),
        );
    }

    fn marking(&mut self) -> Result<(), Finding> {
        let kmin = self.rates("KMIN_MAP")?;
        let kmax = self.rates("KMAX_MAP")?;
        let pmax = self.rates("PMAX_MAP")?;
        if !self.config.flag("ENABLE_QCN")? {
            let word = self.config.given("ENABLE_QCN").unwrap_or(self.settings.start);
            self.put(word, "switch", "ecn = \"off\"");
            return Ok(());
        }
        let mut rows = Vec::new();
        for (rate, low) in &kmin {
            let Some(high) = kmax.get(rate) else {
                return Err(low.error(format!("KMIN_MAP has the rate {rate}, KMAX_MAP has not")));
            };
            let share = match pmax.get(rate) {
                Some(word) => word.share("a probability")?,
                None => {
                    let text = format!(
                        "PMAX_MAP lacks the rate {rate}: the program stops there, and the scenario has 0.2"
                    );
                    self.warn(low, text);
                    0.2
                }
            };
            let (kmin, kmax, pmax) = (kilobytes(low)?, kilobytes(high)?, toml::Value::Float(share));
            let row =
                format!("  {{ rate = \"{rate}\", kmin = \"{kmin}\", kmax = \"{kmax}\", pmax = {pmax} }},");
            rows.push((row, *low));
        }
        let missing: Vec<String> = self
            .switch_rates()
            .into_iter()
            .filter(|rate| !kmin.contains_key(rate))
            .map(|rate| rate.to_string())
            .collect();
        if !missing.is_empty() {
            let text = format!(
                "KMIN_MAP lacks rates of links ({}): the program stops there, and the scenario marks by the default thresholds, \
                 which grow with the rate",
                missing.join(", ")
            );
            let word = self.config.given("KMIN_MAP").unwrap_or(self.settings.start);
            self.warn(&word, text);
        }
        if let Some((_, first)) = rows.first().cloned() {
            self.put(first, "switch.ecn", "at-rate = [");
            rows.into_iter().for_each(|(row, word)| self.put(word, "switch.ecn", row));
            self.put(first, "switch.ecn", "]");
        }
        Ok(())
    }

    /// The values of a map by rate.
    fn rates(&self, key: &'static str) -> Result<BTreeMap<Rate, Token<'a>>, Finding> {
        let pairs = self.config.all(key).unwrap_or_default().get(1..).unwrap_or_default();
        pairs.chunks_exact(2).map(|pair| Ok((pair[0].rate()?, pair[1]))).collect()
    }
}

/// Headroom of HPCC's program: 3 x rate x delay, in whole bytes of the round-down, as a 32-bit number.
fn headroom(link: &Link) -> u64 {
    let ns = link.delay.ps() / 1000;
    let bytes = link.rate.bps().wrapping_mul(ns) / 8 / 1_000_000_000 * 3;
    bytes & u64::from(u32::MAX)
}

/// A threshold in kB of 1000 bytes.
fn kilobytes(word: &Token<'_>) -> Result<Bytes, Finding> {
    format!("{}kB", word.text)
        .parse()
        .map_err(|_| word.error(format!("expected a threshold in kB, found \"{}\"", word.text)))
}
