//! The expected range beside measured clusters.

use busbw::{Input, Request, answer};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The cells of `ropewalk reproduce hardware`: collective, nodes, GPUs per node, bytes, time in us.
const CELLS: &str = include_str!("../../../papers/src/experiments/hardware/h100.csv");

/// The harness of the measurements added 160 us to a call, and 40 us to an all-to-all.
#[test]
fn the_range_holds_nine_of_ten_measured_cells() {
    let mut runs: BTreeMap<(&str, u32, u32), String> = BTreeMap::new();
    for line in CELLS.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let (nodes, gpus): (u32, u32) = (fields[1].parse().unwrap(), fields[2].parse().unwrap());
        let (bytes, us): (u64, f64) = (fields[3].parse().unwrap(), fields[4].parse().unwrap());
        let algbw = bytes as f64 / us / 1e3;
        let log = runs.entry((fields[0], nodes, gpus)).or_default();
        writeln!(log, "{bytes} {} float sum -1 {us} {algbw:.3} {algbw:.3} 0", bytes / 4).unwrap();
    }
    let (mut inside, mut all) = (0, 0);
    for ((collective, nodes, gpus), text) in runs {
        let call = if collective == "all_to_all" { (30.0, 50.0) } else { (150.0, 170.0) };
        let told = answer(&Request {
            logs: vec![Input { name: collective.to_owned(), text }],
            cluster: Some(format!("{nodes} nodes, {gpus} h100, {gpus}x400G, roce, nvls off")),
            collective: Some(collective.replace("all_to_all", "alltoall")),
            call: Some(call),
            ..Request::default()
        })
        .unwrap();
        all += told.rows.len();
        let holds = |row: &&busbw::answer::Row| {
            row.expected.is_some_and(|range| (range.least..=range.most).contains(&row.measured))
        };
        inside += told.rows.iter().filter(holds).count();
    }
    assert_eq!(all, 180);
    assert!(inside * 10 >= 9 * all, "{inside} of {all}");
}
