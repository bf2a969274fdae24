//! One number for everything that a run did: equal digests mean equal runs.
//!
//! The digest covers the integers of the [`Outcome`](engine::Outcome). It leaves out the cost of the run, the engine that ran
//! it, counts by NIC, recordings over time and derived floats. It is XXH3 with 128 bits over little-endian 64-bit words. Each metric's entry
//! gives its place in the digest.

use crate::data::RunData;
use crate::metrics::control::Control;
use crate::metrics::hops::Hops;
use crate::metrics::packets::Packets;
use crate::metrics::{Digest, Measured, Metric};
use engine::outcome::{Ending, Exceeded};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::Xxh3;

/// Version of the digest. It changes with the contents of the digest, so that digests of different versions differ.
const FORMAT: u64 = 2;

struct Words {
    hash: Xxh3,
    /// Metrics at the end of the digest: their keys and numbers.
    named: Vec<(String, u64)>,
}

impl Words {
    fn put(&mut self, words: &[u64]) {
        for word in words {
            self.hash.update(&word.to_le_bytes());
        }
    }

    fn put_named(&mut self, name: &str, word: u64) {
        self.hash.update(name.as_bytes());
        self.put(&[word]);
    }

    /// The counts of a section, in the order that their entries give.
    fn put_section<T: Measured>(&mut self, section: &T) {
        let mut counts = BTreeMap::new();
        T::tell(Some(section), Metric::default(), &mut |metric, value| {
            counts.insert(metric.key, value.as_u64().unwrap_or(0));
        });
        let mut words = Vec::new();
        T::tell(None, Metric::default(), &mut |metric, _| {
            // A group that is missing has counted nothing.
            let count = counts.get(&metric.key).copied().unwrap_or(0);
            words.push((metric.digest, metric.key, count));
        });
        words.sort_by_key(|(place, ..)| *place);
        let together =
            words.iter().any(|(place, _, count)| matches!(place, Digest::Together(_)) && *count > 0);
        for (place, key, count) in words {
            match place {
                Digest::Always(_) => self.put(&[count]),
                Digest::Together(_) if together => self.put(&[count]),
                Digest::Named if count > 0 => self.named.push((key, count)),
                _ => {}
            }
        }
    }
}

/// The digest of a run, 32 hexadecimal digits.
pub fn of(run: RunData<'_>) -> String {
    let outcome = run.outcome;
    let mut to = Words { hash: Xxh3::new(), named: Vec::new() };
    let ending = match &outcome.ending {
        Ending::Finished => 0,
        Ending::Stopped => 1,
        Ending::Interrupted => 2,
        Ending::Stalled(_) => 3,
        Ending::Memory(_) => 4,
        Ending::RetryExceeded(_) => 5,
    };
    to.put(&[FORMAT, ending, outcome.end.ps()]);
    if let Ending::RetryExceeded(Exceeded { at, qp, link }) = outcome.ending {
        to.put(&[at.ps(), qp.0.into(), link.map_or(u64::MAX, |link| link.0.into())]);
    }
    to.put_section(&Hops::read(run));
    to.put(&[outcome.messages.len() as u64]);
    for m in &outcome.messages {
        to.put(&[
            m.start.ps(),
            m.received.ps(),
            m.acked.ps(),
            m.last_sent.ps(),
            m.wire_bytes,
            m.retransmitted,
        ]);
    }
    for task in &outcome.tasks {
        to.put(&[task.ready.ps(), task.start.ps(), task.end.ps()]);
    }
    to.put(&[outcome.links.len() as u64]);
    for l in &outcome.links {
        to.put(&[l.frames, l.bytes, l.busy.ps(), l.max_queue, l.marks, l.drops, l.lost, l.pauses]);
        to.put(&[l.paused.ps()]);
    }
    for buffer in &outcome.max_buffer {
        to.put(&[buffer.get()]);
    }
    to.put_section(&Packets::read(run));
    to.put_section(&Control::read(run));
    for (name, count) in &outcome.counters {
        to.put_named(name, *count);
    }
    for (key, count) in std::mem::take(&mut to.named) {
        to.put_named(&key, count);
    }
    hex(to.hash.digest128())
}

/// 32 hexadecimal digits.
pub(crate) fn hex(number: u128) -> String {
    format!("{number:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{outcome, plan};
    use engine::Outcome;

    #[test]
    fn every_count_changes_the_digest_and_effort_and_recordings_do_not() {
        let plan = plan(3);
        let of_outcome = |outcome: &Outcome| of(RunData { plan: &plan, ideal: &[], outcome, served: None });
        let base = of_outcome(&outcome(3));
        let mut o = outcome(3);
        o.effort.visits += 1;
        o.recording.width.0 += 1;
        assert_eq!(of_outcome(&o), base);
        o.data.spurious += 1;
        assert_ne!(of_outcome(&o), base);
        let mut o = outcome(3);
        o.messages[2].acked.0 += 1;
        assert_ne!(of_outcome(&o), base);
        assert_eq!(base.len(), 32);
    }
}
