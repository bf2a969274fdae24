//! Small scenarios for the tests of rules.

use crate::{Checked, Source, check};
use finding::Finding;

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

/// The topology of tests with [`lay`]: two ToRs with two hosts each, at 100 Gb/s.
pub(crate) const LEAVES: &str =
    "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\nrate = \"100Gbps\"\n";

/// A permutation under these keys, of which the topology is one.
pub(crate) fn lay(keys: &str) -> Result<Checked, Finding> {
    let text = format!("{keys}\n[[workload]]\npermutation = {{ kind = \"shift\" }}\n");
    check(&Source::new("s.toml", text), &[])
}
