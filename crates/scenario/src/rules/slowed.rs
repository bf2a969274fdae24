//! Thresholds of switches that do not fit a port while a failure slows it.
//!
//! A port keeps the thresholds of its nominal rate, because switches in use do. A WRED profile is a number of bytes without a
//! speed (all 82 of sonic-buildimage), and SONiC chooses xon and headroom by the configured speed of the port (sonic-swss,
//! cfgmgr/buffermgr.cpp). A port that renegotiates its speed is no change of the configuration.

use super::case::Case;
use crate::switch::EffectiveSwitch;
use finding::{Finding, code};
use model::failure::rate_in_words;
use model::{Bytes, Rate};
use std::collections::{BTreeMap, BTreeSet};

/// The thresholds that ports of one rate keep while they are slow.
#[derive(Default)]
struct Kept {
    /// Rates of the slow ports.
    rates: BTreeSet<Rate>,
    /// Thresholds for the nominal rate, with their values.
    thresholds: BTreeSet<String>,
    /// Entries for a rate of a slow port, which do not apply.
    idle: BTreeSet<String>,
}

/// A warning for each nominal rate of ports that failures slow, with every threshold that is given by the rate of a port.
pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let (scenario, plan, fabric) = (case.scenario, case.plan, &case.plan.fabric);
    let mut slow: BTreeSet<(Rate, &str, Rate)> = BTreeSet::new();
    for change in plan.failures.changes() {
        let link = &fabric.links()[change.link.index()];
        if let Some(rate) = change.rate.filter(|rate| *rate < link.rate && !fabric.is_host(link.from)) {
            slow.insert((link.rate, fabric.role(link.from), rate));
        }
    }
    let classes: Vec<_> = scenario.switch.classes.own().map(|(i, class)| (i, class.own())).collect();
    let mut by_rate: BTreeMap<Rate, Kept> = BTreeMap::new();
    for (nominal, role, rate) in slow {
        let own = scenario.switch_role.get_key_value(role).map(|(name, config)| (name.as_str(), config));
        let kept = by_rate.entry(nominal).or_default();
        kept.rates.insert(rate);
        let each = classes.iter().map(|(i, class)| Some((*i, class)));
        for class in std::iter::once(None).chain(each) {
            kept.by(&EffectiveSwitch::new(&scenario.switch, own, class), [nominal, rate]);
        }
    }
    let told = by_rate.into_iter().filter(|(_, kept)| !kept.thresholds.is_empty() || !kept.idle.is_empty());
    told.map(|(nominal, kept)| code::SLOWED.at("failure", kept.told(nominal))).collect()
}

impl Kept {
    /// Adds the entry for the nominal rate from a list by rate, and the entry for the rate of the time as one that is not used. True
    /// if there is an entry for the nominal rate.
    fn entries(
        &mut self,
        path: &str,
        list: impl Iterator<Item = Rate>,
        value: impl Fn(usize) -> String,
        [nominal, rate]: [Rate; 2],
    ) -> bool {
        let rates: Vec<Rate> = list.collect();
        let at = |wanted| rates.iter().position(|entry| *entry == wanted);
        self.idle.extend(at(rate).map(|i| format!("`{path}.{i}`")));
        let own = at(nominal);
        self.thresholds.extend(own.map(|i| format!("`{path}.{i}` {}", value(i))));
        own.is_some()
    }

    /// Adds the thresholds of `switch` that a port of rate `nominal` keeps at `rate`.
    fn by(&mut self, switch: &EffectiveSwitch<'_>, [nominal, rate]: [Rate; 2]) {
        let (ecn, from) = switch.pick(|r| r.ecn.as_ref(), &switch.base.ecn);
        if let Some(ecn) = ecn.get() {
            let marks = |i: usize| format!("(marks from {} to {})", ecn.at_rate[i].kmin, ecn.at_rate[i].kmax);
            let rates = ecn.at_rate.iter().map(|entry| entry.rate);
            let scales = !self.entries(&switch.path("ecn.at-rate", from), rates, marks, [nominal, rate]);
            if let Some(marking) = scales.then(|| ecn.marking(nominal, "").ok()).flatten() {
                let of = |key: &str, bytes: Bytes| format!("`{}` {bytes}", switch.path(key, from));
                self.thresholds.extend([of("ecn.kmin", marking.kmin), of("ecn.kmax", marking.kmax)]);
            }
        }
        let (pfc, from) = switch.pick(|r| r.pfc.as_ref(), &switch.base.pfc);
        if let Some(pfc) = pfc.get() {
            let alpha = |i: usize| pfc.alpha_at_rate[i].alpha.to_string();
            let rates = pfc.alpha_at_rate.iter().map(|entry| entry.rate);
            self.entries(&switch.path("pfc.alpha-at-rate", from), rates, alpha, [nominal, rate]);
        }
        let (caps, from) =
            switch.pick(|r| r.queue_cap_at_rate.as_deref(), &switch.base.queue_cap_at_rate[..]);
        let cap = |i: usize| caps[i].cap.to_string();
        let rates = caps.iter().map(|entry| entry.rate);
        self.entries(&switch.path("queue-cap-at-rate", from), rates, cap, [nominal, rate]);
    }

    fn told(&self, nominal: Rate) -> String {
        let list = |all: &BTreeSet<String>| all.iter().cloned().collect::<Vec<_>>().join(", ");
        let rates: Vec<String> = self.rates.iter().map(|rate| rate_in_words(*rate)).collect();
        let (nominal, rates) = (rate_in_words(nominal), rates.join(", "));
        let mut text = format!(
            "failures slow ports of {nominal} to {rates}, and their thresholds stay those of {nominal}"
        );
        if !self.thresholds.is_empty() {
            text += &format!(": {}", list(&self.thresholds));
        }
        if !self.idle.is_empty() {
            text += &format!("; not used there: {}", list(&self.idle));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use crate::{Source, check};

    /// Warnings about slow ports of 100 Gb/s.
    fn warnings(keys: &str) -> Vec<String> {
        let text = format!(
            "[topology.leaf-spine]\nrate = \"100Gbps\"\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n[[workload]]\npermutation = {{}}\n{keys}"
        );
        let checked = check(&Source::new("f.toml", text), &[]).unwrap();
        checked.warnings().into_iter().filter(|warning| warning.contains("failures slow")).collect()
    }

    const SLOW: &str = "[[failure]]\nlinks = [[\"leaf0\", \"spine1\"]]\nrate = \"25Gbps\"\n";

    #[test]
    fn thresholds_by_rate_stay_and_are_named() {
        assert_eq!(
            warnings(SLOW),
            [
                "failures slow ports of 100 Gb/s to 25 Gb/s, and their thresholds stay those of 100 Gb/s: `switch.ecn.kmax` 400kB, \
              `switch.ecn.kmin` 100kB"
            ]
        );
        assert!(warnings("").is_empty());
        assert!(warnings(&SLOW.replace("rate = \"25Gbps\"", "loss = 0.1")).is_empty());
        // Nothing goes by the rate of a port.
        assert!(warnings(&format!("{SLOW}[switch]\necn = \"off\"\n")).is_empty());
        // A port of a host has no thresholds.
        let of_host = "[[failure]]\nlinks = [[\"host0\", \"leaf0\"]]\none-way = true\nrate = \"25Gbps\"\n";
        assert!(warnings(of_host).is_empty());
    }

    #[test]
    fn lists_by_rate_name_the_entry_that_stays_and_the_one_that_is_not_used() {
        let lists = "[switch]\npfc = \"off\"\nqueue-cap = \"1MB\"\n\
            queue-cap-at-rate = [{ rate = \"100Gbps\", cap = \"900kB\" }, { rate = \"25Gbps\", cap = \"300kB\" }]\n\
            [[switch.ecn.at-rate]]\nrate = \"25Gbps\"\nkmin = \"20kB\"\nkmax = \"80kB\"\npmax = 0.1\n\
            [[switch.ecn.at-rate]]\nrate = \"100Gbps\"\nkmin = \"90kB\"\nkmax = \"300kB\"\npmax = 0.1\n";
        assert_eq!(
            warnings(&format!("{SLOW}{lists}")),
            [
                "failures slow ports of 100 Gb/s to 25 Gb/s, and their thresholds stay those of 100 Gb/s: `switch.ecn.at-rate.1` \
              (marks from 90kB to 300kB), `switch.queue-cap-at-rate.0` 900kB; not used there: `switch.ecn.at-rate.0`, \
              `switch.queue-cap-at-rate.1`"
            ]
        );
        let alpha = "[switch.pfc]\nalpha-at-rate = [{ rate = \"25Gbps\", alpha = \"1/2\" }, { rate = \"100Gbps\", alpha = \"1/4\" }]\n\
            [switch-role.spine]\necn = \"off\"\n[switch]\necn = \"off\"\n";
        assert_eq!(
            warnings(&format!("{SLOW}{alpha}")),
            ["failures slow ports of 100 Gb/s to 25 Gb/s, and their thresholds stay those of 100 Gb/s: \
              `switch.pfc.alpha-at-rate.1` 1/4; not used there: `switch.pfc.alpha-at-rate.0`"]
        );
    }
}
