//! Themis (APNET'25), Eq. 4 and its example: the switch memory of Themis.

use crate::experiment::Experiment;
use crate::memory::{ThemisInputs, ThemisMemory};
use crate::row::Row;

/// The experiment, which needs no run.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "themis-memory",
    source: "Themis (APNET'25), Eq. 4 and Table 1",
    about: "switch memory by the formula: the paper's example, and wider PSNs",
    cases: |_| Vec::new(),
    rows: |_, _| rows(),
    curves: |_| Vec::new(),
    more: |_| String::new(),
    picture: |_| crate::picture::Picture::default(),
};

fn rows() -> Vec<Row> {
    let with = |bits: u8| ThemisInputs { psn_bits: bits, ..ThemisInputs::default() }.memory();
    let paper = with(8);
    let case = "the paper's example";
    let total = |m: &ThemisMemory| Some(m.total_bytes as f64);
    let wider = "expected: more than the 192,512 B of 8 bits";
    vec![
        Row::beside(100.0, case, "ring of a queue pair", "entries", Some(paper.ring_entries as f64), ""),
        Row::beside(120.0, case, "queue pair", "B", Some(paper.qp_bytes as f64), ""),
        Row::beside(193_000.0, case, "switch", "B", total(&paper), "the paper rounds to 193 KB"),
        Row::beside(
            0.6,
            case,
            "share of a 64 MB buffer",
            "%",
            Some(paper.share_of_sram * 100.0),
            "192,512 B are 0.30 % of 64 MB; the printed 0.6 % is the share of 32 MB",
        ),
        Row::ours(case, "switch, PSNs of 16 bits", "B", total(&with(16)), wider),
        Row::ours(case, "switch, PSNs of 24 bits", "B", total(&with(24)), wider),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_gives_the_papers_numbers() {
        let rows = rows();
        assert_eq!(rows[2].measured, Some(192_512.0));
        assert_eq!(rows[0].deviation, Some(0.0));
        assert!((rows[3].measured.unwrap() - 0.3008).abs() < 1e-9);
    }
}
