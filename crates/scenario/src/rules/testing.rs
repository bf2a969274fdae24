//! Small scenarios for the tests of rules.

use crate::{Checked, Source, check};

/// The first lines of most tests: four ToRs with two hosts each.
pub(super) const HEAD: &str = "[topology.leaf-spine]\nleaves = 4\nspines = 2\nhosts-per-leaf = 2\n";

/// A job.
pub(super) const JOB: &str = "[[workload]]\nneighbour-ring = {}\n";

/// The texts of all warnings, or the error with its place.
pub(super) fn told(text: &str) -> String {
    match check(&Source::new("s.toml", text), &[]) {
        Ok(checked) => checked.warnings().join("\n"),
        Err(error) => error.located(),
    }
}

/// [`told`] of a small leaf-spine with these keys, which start in line 5.
pub(super) fn told_of(keys: &str) -> String {
    told(&format!("{HEAD}{keys}\n{JOB}"))
}

/// [`told_of`] with switches that drop packets.
pub(super) fn lossy(keys: &str) -> String {
    told_of(&format!("[switch]\npfc = \"off\"\n{keys}"))
}

/// Two hosts that are joined by one link with this delay.
pub(super) fn far_apart(delay: &str, settings: &str) -> Checked {
    let text = format!(
        "[topology.links]\nhosts = 2\nrate = \"100Gbps\"\ndelay = \"{delay}\"\nlinks = [[\"host0\", \"host1\"]]\n\
         {settings}[[workload]]\nflows = {{ list = [{{ from = \"host0\", to = \"host1\", bytes = \"1MB\" }}] }}\n"
    );
    check(&Source::new("s.toml", text), &[]).unwrap_or_else(|e| panic!("{e}"))
}
