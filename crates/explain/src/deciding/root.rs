//! What a run's lost time may be due to: a row for each cause, with the settings that it depends on.

use scenario::Checked;
use serde::Serialize;

/// A cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Root {
    /// Congestion control holds rates down, though links have room.
    Control,
    /// NICs take packets out of order for losses.
    Reordering,
    /// Links lose packets.
    Loss,
    /// Switches drop or trim packets for lack of buffer.
    Drops,
    /// Senders wait for a retransmission timer.
    Timer,
    /// A failure slows a link.
    SlowLink,
    /// The receivers' links are full.
    Receiver,
    /// The senders' own links are full.
    Sender,
    /// Flows share links while others beside them have room.
    Collisions,
    /// Links between switches are full.
    Uplinks,
    /// Pauses from a full port elsewhere hold packets up.
    Pauses,
    /// A host takes data slowly, and pauses its link.
    SlowHost,
    /// Senders wait for ACKs because of a window that is no congestion control's.
    Window,
    /// Messages wait for earlier ones of their queue pair.
    Order,
    /// Schemes send copies.
    Copies,
    /// ACKs are late.
    Acks,
    /// GPUs compute.
    Computation,
    /// A slow GPU computes longer than others.
    Straggler,
    /// Messages take as long as alone on the fabric: sizes and links decide.
    Alone,
    /// Copies inside servers, and costs of steps.
    Server,
    /// The workload sets a later start.
    Schedule,
    /// The run ended first.
    RunEnded,
}

/// A change of settings, for a variation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// This key gets this value.
    Set(&'static str, &'static str),
    /// The quantity at this key is multiplied.
    Times(&'static str, f64),
    /// No congestion control.
    NoControl,
    /// All that the control varies.
    OfControl,
    /// The next seed: other draws, and with them other orders of equal times.
    NextSeed,
    /// GPUs compute in so many times the time.
    Computing(f64),
}

/// Variations: name and changes.
type Variations = &'static [(&'static str, &'static [Change])];

/// A row: a cause, what it is called, the settings that it depends on, and their variations.
pub(super) struct Row {
    pub(super) root: Root,
    /// Noun phrase; `{}` stands for the subject.
    pub(super) noun: &'static str,
    /// Keys, the most telling first. `control` stands for the keys that the congestion control declares.
    pub(super) depends: &'static [&'static str],
    pub(super) variations: Variations,
}

const CONTROL: Variations = &[
    ("no congestion control", &[Change::NoControl]),
    ("", &[Change::OfControl]),
    ("CNPs counted per queue pair", &[Change::Set("nic.cnp-interval-per", "queue-pair")]),
    ("CNPs counted per port", &[Change::Set("nic.cnp-interval-per", "port")]),
    (
        "marks at 4 times the queue",
        &[Change::Times("switch.ecn.kmin", 4.0), Change::Times("switch.ecn.kmax", 4.0)],
    ),
    (
        "marks at a quarter of the queue",
        &[Change::Times("switch.ecn.kmin", 0.25), Change::Times("switch.ecn.kmax", 0.25)],
    ),
    ("another seed", &[Change::NextSeed]),
];
const RECOVERY: Variations = &[
    ("no congestion control", &[Change::NoControl]),
    ("NACKs that leave rates alone", &[Change::Set("nic.on-nack", "none")]),
    ("a timeout of 100 us", &[Change::Set("nic.timeout", "{fixed='100us'}")]),
    ("a timeout of 16 ms", &[Change::Set("nic.timeout", "{fixed='16ms'}")]),
    ("", &[Change::OfControl]),
    ("another seed", &[Change::NextSeed]),
];
const TIMER: Variations = &[
    ("a timeout of 100 us", &[Change::Set("nic.timeout", "{fixed='100us'}")]),
    ("a timeout of 1 ms", &[Change::Set("nic.timeout", "{fixed='1ms'}")]),
    ("a timeout of 16 ms", &[Change::Set("nic.timeout", "{fixed='16ms'}")]),
    ("timeouts that leave rates alone", &[Change::Set("nic.on-timeout", "none")]),
    ("no congestion control", &[Change::NoControl]),
    ("another seed", &[Change::NextSeed]),
];
const LINKS: Variations = &[
    ("no congestion control", &[Change::NoControl]),
    ("another seed", &[Change::NextSeed]),
    ("twice the buffer", &[Change::Times("switch.buffer", 2.0)]),
    ("", &[Change::OfControl]),
];
const PAUSES: Variations = &[
    ("twice the buffer", &[Change::Times("switch.buffer", 2.0)]),
    ("half the buffer", &[Change::Times("switch.buffer", 0.5)]),
    ("PFC's alpha 1/2", &[Change::Set("switch.pfc.alpha", "1/2")]),
    ("PFC's alpha 1/32", &[Change::Set("switch.pfc.alpha", "1/32")]),
    ("no congestion control", &[Change::NoControl]),
    ("", &[Change::OfControl]),
    ("another seed", &[Change::NextSeed]),
];
const COMPUTING: Variations = &[
    ("computation 25 % faster", &[Change::Computing(0.8)]),
    ("computation 25 % slower", &[Change::Computing(1.25)]),
    ("no congestion control", &[Change::NoControl]),
    ("another seed", &[Change::NextSeed]),
];
const RATES: &[&str] = &["control", "nic.cnp-interval-per", "switch.ecn.kmin", "switch.ecn.kmax"];
const LOSSES: &[&str] = &["nic.timeout", "nic.on-nack", "control"];
const BUFFERS: &[&str] = &["switch.pfc.alpha", "switch.buffer", "switch.pfc.headroom"];

/// All rows, in the order of [`Root`].
pub(super) const ROWS: &[Row] = &[
    Row { root: Root::Control, noun: "{} holding rates down", depends: RATES, variations: CONTROL },
    Row {
        root: Root::Reordering,
        noun: "packets out of order, which NICs take for lost{}",
        depends: LOSSES,
        variations: RECOVERY,
    },
    Row { root: Root::Loss, noun: "packets lost on {}", depends: LOSSES, variations: RECOVERY },
    Row {
        root: Root::Drops,
        noun: "packets that did not fit into the buffer before {}",
        depends: &["switch.buffer", "switch.drop-alpha", "switch.queue-cap", "nic.timeout"],
        variations: RECOVERY,
    },
    Row {
        root: Root::Timer,
        noun: "retransmission timers{}",
        depends: &["nic.timeout", "nic.timeout.fixed", "nic.timeout.adp", "nic.on-timeout"],
        variations: TIMER,
    },
    Row { root: Root::SlowLink, noun: "the slow link {}", depends: RATES, variations: LINKS },
    Row { root: Root::Receiver, noun: "the receivers' links ({})", depends: RATES, variations: LINKS },
    Row { root: Root::Sender, noun: "the senders' own links ({})", depends: RATES, variations: LINKS },
    Row {
        root: Root::Collisions,
        noun: "flows that share links while others have room ({})",
        depends: RATES,
        variations: LINKS,
    },
    Row { root: Root::Uplinks, noun: "full links between switches ({})", depends: RATES, variations: LINKS },
    Row { root: Root::Pauses, noun: "pauses, because {}", depends: BUFFERS, variations: PAUSES },
    Row {
        root: Root::SlowHost,
        noun: "a host that takes data slowly ({})",
        depends: BUFFERS,
        variations: PAUSES,
    },
    Row {
        root: Root::Window,
        noun: "windows: senders waiting for ACKs",
        depends: &["nic.window", "nic.ack-every"],
        variations: LINKS,
    },
    Row {
        root: Root::Order,
        noun: "messages waiting for earlier ones of their queue pair",
        depends: &[],
        variations: LINKS,
    },
    Row { root: Root::Copies, noun: "copies that the scheme sends", depends: &[], variations: LINKS },
    Row { root: Root::Acks, noun: "late ACKs", depends: &["nic.ack-every"], variations: LINKS },
    Row {
        root: Root::Computation,
        noun: "computation",
        depends: &["workload.0.training.compute"],
        variations: COMPUTING,
    },
    Row { root: Root::Straggler, noun: "the slow server {}", depends: &[], variations: COMPUTING },
    Row {
        root: Root::Alone,
        noun: "messages as long as they take alone on the fabric",
        depends: &[],
        variations: COMPUTING,
    },
    Row {
        root: Root::Server,
        noun: "copies inside servers and costs of steps",
        depends: &["server.nvlink", "server.cost"],
        variations: COMPUTING,
    },
    Row { root: Root::Schedule, noun: "starts that the workload sets", depends: &[], variations: LINKS },
    Row { root: Root::RunEnded, noun: "the end of the run", depends: &[], variations: LINKS },
];

/// The row of a cause.
pub(super) fn row(root: Root) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.root == root)
}

/// The congestion control of a scenario, as readers call it.
pub(super) fn control(checked: &Checked) -> String {
    checked.scenario.nic.congestion.name().to_uppercase()
}

impl Root {
    /// The cause as a noun phrase about `subject`.
    pub(super) fn phrase(self, subject: &str) -> String {
        row(self).map_or_else(String::new, |row| row.noun.replacen("{}", subject, 1).replace(" ()", ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_one_row() {
        let roots: Vec<Root> = ROWS.iter().map(|row| row.root).collect();
        let mut sorted = roots.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(roots, sorted);
        assert_eq!(roots.len(), Root::RunEnded as usize + 1);
    }
}
