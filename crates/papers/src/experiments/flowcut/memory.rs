//! Flowcut, Eq. 1: memory of its tables over round-trip times, rates and hosts.

use crate::experiment::Experiment;
use crate::memory::FlowcutInputs;
use crate::memory::flowcut::{ACK_BYTES, ENTRY_BYTES};
use crate::row::Row;

/// The experiment, which needs no run.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "flowcut-memory",
    source: "Flowcut switching (arXiv 2506.21406), Eq. 1, Figures 4 and 5, Table III",
    about: "table memory by the formula: full switch, ingress and NIC, beside flowlet and flowcell",
    cases: |_| Vec::new(),
    rows: |_, _| rows(),
    curves: |_| Vec::new(),
    more: |_| String::new(),
    picture: |_| crate::picture::Picture::default(),
};

const FIGURE_4: &str = "Fig. 4 shows curves; the text says below 7 MiB at 1024 hosts";
const BEYOND: &str = "Fig. 4 shows curves; the text says more than 50 MiB beyond 16,384 hosts";

fn rows() -> Vec<Row> {
    let bytes = |set: &[String], scheme: &str| {
        let mut inputs = FlowcutInputs::default();
        let all_set = set.iter().all(|s| inputs.set(s).is_ok());
        inputs.memory().bytes_of(scheme).filter(|_| all_set).map(|b| b as f64)
    };
    let mebibytes = |set: &[String]| bytes(set, "flowcut-full").map(|b| b / f64::from(1 << 20));
    let mut rows = Vec::new();
    for rtt in [1, 2, 5, 10, 20, 50] {
        let case = format!("1024 hosts, 200 Gb/s, {rtt} us");
        rows.push(Row::ours(&case, "full switch", "MiB", mebibytes(&[format!("rtt={rtt}us")]), FIGURE_4));
    }
    for rate in [400, 800, 1600] {
        let case = format!("1024 hosts, {rate} Gb/s, 5 us");
        rows.push(Row::ours(&case, "full switch", "MiB", mebibytes(&[format!("rate={rate}Gbps")]), FIGURE_4));
    }
    for hosts in [1024, 4096, 16384, 32768, 65536] {
        let case = format!("{hosts} hosts, 800 Gb/s, 5 us");
        let set = [format!("hosts={hosts}"), "rate=800Gbps".into()];
        rows.push(Row::ours(&case, "full switch", "MiB", mebibytes(&set), BEYOND));
    }
    let fast = ["rate=800Gbps".to_owned()];
    for (scheme, what, note) in [
        (
            "flowcut-ingress",
            "a ToR of 16 hosts",
            "the text says more than 100 KiB, which no reading of Eq. 1 gives",
        ),
        ("flowcut-nic", "a NIC", "the text says more than 10 KiB, which no reading of Eq. 1 gives"),
    ] {
        let kibibytes = bytes(&fast, scheme).map(|b| b / 1024.0);
        rows.push(Row::ours(&format!("{what}, 800 Gb/s, 5 us"), scheme, "KiB", kibibytes, note));
    }
    // The formula uses these values of Table III as inputs, so they cannot confirm the table.
    let taken = "taken from Table III";
    for (scheme, entry) in ENTRY_BYTES {
        rows.push(Row::ours("Table III", format!("entry of {scheme}"), "B", Some(entry as f64), taken));
    }
    let overhead = 100.0 * FlowcutInputs::default().memory().wire_overhead;
    rows.push(Row::ours("Table III", "ACK on the wire", "B", Some(ACK_BYTES as f64), taken));
    let note = "the text says less than 2 %, with packets of 1 KiB";
    rows.push(Row::ours("Table III", "ACKs, of payload", "%", Some(overhead), note));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_within_the_bounds_of_the_text() {
        let rows = rows();
        let of = |case: &str| rows.iter().find(|r| r.case.starts_with(case)).unwrap().measured.unwrap();
        assert!(of("1024 hosts, 200 Gb/s, 50 us") < 7.0);
        assert!(of("16384 hosts") < 50.0 && of("32768 hosts") > 50.0);
        assert!(rows.iter().all(|r| r.measured.is_some()));
    }
}
