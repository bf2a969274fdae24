//! Runs of the HPCC family of ns-3 simulators, equalled flow by flow: an import takes the same paths, and flows take the
//! same times.
//!
//! The files in `ns3/` are one run of ConWeave's program: 128 hosts on a fat tree (k = 8, 400 Gb/s, 1 us per link), a
//! permutation of 1 MB flows that start at 1 ms, ECMP, DCQCN and go-back-N. `fct.txt` is what the program wrote: source,
//! destination, source port, destination port, bytes, start in ns, FCT in ns, ideal FCT in ns.

use engine::outcome::Ending;
use engine::{Kind, Outcome};
use scenario::import::hpcc::{File, import};
use scenario::{Checked, Source};
use std::collections::BTreeMap;

/// The settings of the run in `ns3/`. The FCTs show neither a rate cut nor a pause: every flow is as fast as without marks
/// and without PFC, to 0.11 %. So both are off here.
const CONFIG: &str = "LB_MODE 0\nENABLE_PFC 0\nENABLE_QCN 0\nPACKET_PAYLOAD_SIZE 1000\nBUFFER_SIZE 9\nCC_MODE 1\n\
                      RP_TIMER 300\nRATE_DECREASE_INTERVAL 4\nALPHA_RESUME_INTERVAL 1\nEWMA_GAIN 0.00390625\n\
                      FAST_RECOVERY_TIMES 1\nRATE_AI 160Mb/s\nRATE_HAI 400Mb/s\nMIN_RATE 100Mb/s\n\
                      CLAMP_TARGET_RATE 0\nHAS_WIN 0\n";

/// Two hosts on each of the switches 4 and 5, which the switches 6 and 7 join.
const SMALL: &str = "8 4 8\n4 5 6 7\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 5 100Gbps 1us 0\n3 5 100Gbps 1us 0\n\
                     4 6 100Gbps 1us 0\n4 7 100Gbps 1us 0\n5 6 100Gbps 1us 0\n5 7 100Gbps 1us 0\n";

fn run(topology: &str, flows: &str, config: Option<&str>) -> (Checked, Outcome) {
    let file = |name, text| File { name, text };
    let config = config.map(|text| file("config.txt", text));
    let imported = import(file("topology.txt", topology), file("flow.txt", flows), config).unwrap();
    assert_eq!(imported.warnings, Vec::<String>::new());
    let checked = scenario::check(&Source::new("imported.toml", &*imported.toml), &[]).unwrap();
    let outcome = sim::run(&checked.plan, &checked.schemes, &checked.nics, Kind::Window, &mut ());
    assert_eq!(outcome.ending, Ending::Finished);
    (checked, outcome)
}

/// A value of sorted `values`, so that a share `part` of them is at most as large.
fn percentile(values: &[f64], part: f64) -> f64 {
    values[((values.len() as f64 * part).ceil() as usize).clamp(1, values.len()) - 1]
}

#[test]
fn every_flow_takes_the_time_that_it_took_in_ns3() {
    let (topology, flows) = (include_str!("ns3/topology.txt"), include_str!("ns3/flow.txt"));
    let (checked, run) = run(topology, flows, Some(CONFIG));
    let mut here = BTreeMap::new();
    for (message, record) in checked.plan.messages.iter().zip(&run.messages) {
        let qp = &checked.plan.qps[message.qp.index()];
        here.insert((qp.from.0, qp.to.0), results::flows::fct(record).unwrap().ps() as f64 / 1e3);
    }
    let (mut ours, mut theirs, mut deviations) = (Vec::new(), Vec::new(), Vec::new());
    for line in include_str!("ns3/fct.txt").lines() {
        let row: Vec<u32> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let (there, here) = (f64::from(row[6]), here[&(row[0], row[1])]);
        theirs.push(there);
        ours.push(here);
        deviations.push((here / there - 1.0).abs() * 100.0);
    }
    for values in [&mut ours, &mut theirs, &mut deviations] {
        values.sort_by(f64::total_cmp);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let of = |values: &[f64]| [mean(values), percentile(values, 0.5), percentile(values, 0.99)];
    // Nanoseconds: mean, median and 99th percentile.
    let (ours, theirs) = (of(&ours), of(&theirs));
    for (here, there) in ours.iter().zip(theirs) {
        assert!((here / there - 1.0).abs() < 0.0005, "{ours:?} here, {theirs:?} in ns-3");
    }
    // Percent.
    let (median, most, all) =
        (percentile(&deviations, 0.5), percentile(&deviations, 0.9), percentile(&deviations, 1.0));
    assert!(median < 0.005 && most < 0.05 && all < 0.2, "{median} {most} {all}");
}

/// Bits of the flows whose packets crossed the link from node `from` to node `to`: the flow `i` has 2^i packets.
fn crossed((checked, run): &(Checked, Outcome), from: &str, to: &str) -> u64 {
    let fabric = &checked.plan.fabric;
    let [from, to] = [from, to].map(|name| fabric.find(name).unwrap());
    let port = fabric.ports(from).iter().position(|link| link.to == to).unwrap();
    run.links[fabric.base(from) as usize + port].frames
}

/// The expected paths come from a separate program in Python, by the rules of that family: MurmurHash3 of addresses and
/// ports, with the seeds 4 and 5, modulo the two next hops.
#[test]
fn repeated_flows_take_the_paths_of_their_ports() {
    let pairs = [(0, 2), (0, 2), (0, 2), (0, 2), (0, 3), (1, 3), (1, 2), (1, 3)];
    for (port, data, acks) in [(" 100", 0b1111_0111, 0b1001_0001), ("", 0b0110_0101, 0b0100_0111)] {
        let mut flows = format!("{}\n", pairs.len());
        for (i, (from, to)) in pairs.iter().enumerate() {
            flows += &format!("{from} {to} 3{port} {} 0.00{i}\n", 1000 << i);
        }
        let got = run(SMALL, &flows, Some("ENABLE_QCN 0\nENABLE_PFC 0\nLB_MODE 0\n"));
        assert_eq!(crossed(&got, "n4", "n6"), data, "data of flows with the port column {port:?}");
        assert_eq!(crossed(&got, "n4", "n7"), 255 - data);
        assert_eq!(crossed(&got, "n5", "n6"), acks, "ACKs of flows with the port column {port:?}");
        assert_eq!(crossed(&got, "n5", "n7"), 255 - acks);
    }
}
