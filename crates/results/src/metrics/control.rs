//! Control packets. `created` equals the sum of `arrived`, `heard`, `blocked`, `dropped` and `in_flight`.

use super::{Better, Digest, Shown, Unit};
use crate::data::RunData;

const CREATED: &str = "control.created";

section! {
    /// Control packets. `created` = `arrived` + `heard` + `blocked` + `dropped` + `in_flight`.
    pub struct Control read from run: RunData<'_>;

    /// ACKs that receivers sent.
    ack: u64 = run.outcome.control.ack => { label: "ACKs", unit: Unit::Packets, digest: Digest::Always(1) };

    /// NACKs that receivers sent.
    nack: u64 = run.outcome.control.nack => {
        label: "NACKs", unit: Unit::Packets, shown: Shown::Page, digest: Digest::Always(2),
    };

    /// CNPs (congestion notifications) that receivers sent.
    cnp: u64 = run.outcome.control.cnp => {
        label: "CNPs", unit: Unit::Packets, shown: Shown::Page, digest: Digest::Always(3),
    };

    /// PFC pause frames.
    pause: u64 = run.outcome.control.pause => {
        label: "pauses", heading: "pauses\n", unit: Unit::Packets, better: Better::Less, shown: Shown::Sweep,
        digest: Digest::Always(4),
    };

    /// PFC resume frames.
    resume: u64 = run.outcome.control.resume => {
        label: "resumes", unit: Unit::Packets, digest: Digest::Always(5),
    };

    /// Time for which ports stood paused by PFC, summed over ports.
    paused_us: f64 = run.outcome.links.iter().map(|link| link.paused.as_us()).sum() => {
        label: "time paused", unit: Unit::Microseconds, better: Better::Less, shown: Shown::Page,
    };

    /// Retransmission timers that fired.
    timeout: u64 = run.outcome.control.timeout => {
        label: "timeouts", better: Better::Less, shown: Shown::Page, digest: Digest::Always(6),
    };

    /// ACKs, NACKs and CNPs that a scheme stopped on their way.
    blocked: u64 = run.outcome.control.blocked => {
        unit: Unit::Packets, shown: Shown::Page, share_of: CREATED, digest: Digest::Always(10),
    };

    /// Signals: packets that a switch sent to other switches on behalf of its scheme.
    signals: u64 = run.outcome.control.signals => {
        unit: Unit::Packets, shown: Shown::Page, share_of: CREATED, digest: Digest::Together(1),
    };

    /// ACKs, NACKs, CNPs, grants, probes and their answers, port reports, returned headers and signals.
    created: u64 = run.outcome.control.created => {
        label: "control packets", unit: Unit::Packets, digest: Digest::Always(7),
    };

    /// Control packets lost on a link or for lack of buffer.
    dropped: u64 = run.outcome.control.dropped => {
        unit: Unit::Packets, better: Better::Less, share_of: CREATED, digest: Digest::Always(11),
    };

    /// ACKs, NACKs and CNPs that schemes made.
    forged: u64 = run.outcome.control.forged => {
        unit: Unit::Packets, share_of: CREATED, digest: Digest::Always(8),
    };

    /// Control packets that arrived at their host.
    arrived: u64 = run.outcome.control.arrived => {
        unit: Unit::Packets, share_of: CREATED, digest: Digest::Always(9),
    };

    /// Signals that ended at the switch that waited for them.
    heard: u64 = run.outcome.control.heard => {
        unit: Unit::Packets, share_of: CREATED, digest: Digest::Together(2),
    };

    /// Control packets on a wire or in a queue at the end.
    in_flight: u64 = run.outcome.control.in_flight => {
        unit: Unit::Packets, share_of: CREATED, digest: Digest::Always(12),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{keys, outcome, plan};

    #[test]
    fn the_keys_are_the_contract() {
        let (plan, outcome) = (plan(3), outcome(3));
        let section = Control::read(RunData { plan: &plan, ideal: &[], outcome: &outcome, served: None });
        assert_eq!(
            keys(&section),
            "ack nack cnp pause resume paused_us timeout blocked signals created dropped forged arrived heard \
             in_flight"
        );
    }
}
