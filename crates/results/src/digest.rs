//! One number for everything that a run did: equal digests, equal runs.
//!
//! It covers the integers of the [`Outcome`] and nothing else: not how long the run took, not which engine ran
//! it, not what was recorded over time, not the floats that results derive. XXH3 with 128 bits over little-endian 64-bit words.

use engine::Outcome;
use engine::outcome::Ending;
use xxhash_rust::xxh3::Xxh3;

/// Changes when what the digest covers changes, so that digests of different versions never compare equal.
const FORMAT: u64 = 2;

struct Words(Xxh3);

impl Words {
    fn put(&mut self, words: &[u64]) {
        for word in words {
            self.0.update(&word.to_le_bytes());
        }
    }
}

/// The digest of a run, 32 hexadecimal digits.
pub fn of_outcome(outcome: &Outcome) -> String {
    let mut to = Words(Xxh3::new());
    let ending = match &outcome.ending {
        Ending::Finished => 0,
        Ending::Stopped => 1,
        Ending::Interrupted => 2,
        Ending::Stalled(_) => 3,
    };
    to.put(&[FORMAT, ending, outcome.end.ps(), outcome.data_hops, outcome.control_hops]);
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
    to.put(&[outcome.links.len() as u64]);
    for l in &outcome.links {
        to.put(&[l.frames, l.bytes, l.busy.ps(), l.max_queue, l.marks, l.drops, l.lost, l.pauses]);
        to.put(&[l.paused.ps()]);
    }
    for buffer in &outcome.max_buffer {
        to.put(&[buffer.get()]);
    }
    let d = &outcome.data;
    to.put(&[d.sent, d.accepted, d.retransmitted, d.spurious, d.duplicated, d.duplicate, d.discarded]);
    to.put(&[d.out_of_order, d.dropped_buffer, d.dropped_link, d.dropped_scheme, d.held, d.in_flight]);
    if d.noticed + d.reorder_sum > 0 {
        to.put(&[d.noticed, d.reorder_sum, d.reorder_peak]);
    }
    let c = &outcome.control;
    to.put(&[c.ack, c.nack, c.cnp, c.pause, c.resume, c.timeout, c.created, c.forged, c.arrived]);
    to.put(&[c.blocked, c.dropped, c.in_flight]);
    if c.signals > 0 {
        to.put(&[c.signals, c.heard]);
    }
    for (name, count) in &outcome.counters {
        to.0.update(name.as_bytes());
        to.put(&[*count]);
    }
    hex(to.0.digest128())
}

fn hex(number: u128) -> String {
    format!("{number:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::outcome;

    #[test]
    fn anything_that_happened_changes_the_digest_and_effort_and_recordings_do_not() {
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
