//! Runs of the HPCC family of ns-3 simulators, equalled flow by flow: an import takes the same paths, and flows take the
//! same times.
//!
//! The files in `ns3/` are three runs of ConWeave's program (github.com/conweave-project/conweave-ns3 at 236a801): 128 hosts
//! on a fat tree (k = 8, 400 Gb/s, 1 us per link), ECMP, DCQCN and go-back-N. We made the last two ourselves.
//!
//! | flows | FCTs | run |
//! |---|---|---|
//! | `flow.txt` | `fct.txt` | a permutation of 1 MB flows that start at 1 ms |
//! | `flow.txt` | `fct-marks.txt` | the same with marks from 50 kB on: rates are cut |
//! | `flow-repeated.txt` | `fct-repeated.txt` | another permutation of 300 kB flows, three times, 50 us apart |
//!
//! FCT files have what the program wrote: source, destination, source port, destination port, bytes, start in ns, FCT in ns,
//! ideal FCT in ns.

use engine::outcome::Ending;
use engine::{Kind, Outcome};
use scenario::import::hpcc::{File, import};
use scenario::{Checked, Source};
use std::collections::BTreeMap;

const TOPOLOGY: &str = include_str!("../ns3/topology.txt");

/// The settings of the runs in `ns3/`, without marks and without PFC. With both off, the program writes `fct.txt` bit for bit.
const CONFIG: &str = "LB_MODE 0\nENABLE_PFC 0\nENABLE_QCN 0\nPACKET_PAYLOAD_SIZE 1000\nBUFFER_SIZE 9\nCC_MODE 1\n\
                      RP_TIMER 300\nRATE_DECREASE_INTERVAL 4\nALPHA_RESUME_INTERVAL 1\nEWMA_GAIN 0.00390625\n\
                      FAST_RECOVERY_TIMES 1\nRATE_AI 160Mb/s\nRATE_HAI 400Mb/s\nMIN_RATE 100Mb/s\n\
                      CLAMP_TARGET_RATE 0\nHAS_WIN 0\n";
/// A mark for every packet behind 50 kB, so that no mark is drawn.
const MARKS: &str = "KMAX_MAP 1 400000000000 50\nKMIN_MAP 1 400000000000 50\nPMAX_MAP 1 400000000000 1.0\n";

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

/// FCTs of a run here and in ns-3, in ns: mean, median and 99th percentile. Deviations of flows, in percent: median, 90th
/// percentile and largest.
#[derive(Debug)]
struct Compared {
    here: [f64; 3],
    there: [f64; 3],
    deviations: [f64; 3],
}

fn compare(flows: &str, config: &str, fcts: &str) -> Compared {
    let (checked, run) = run(TOPOLOGY, flows, Some(config));
    // The program rounds starts to nanoseconds in floating point.
    let us = |ns: u64| (ns + 500) / 1000;
    let mut here = BTreeMap::new();
    for (message, record) in checked.plan.messages.iter().zip(&run.messages) {
        let qp = &checked.plan.qps[message.qp.index()];
        let key = (u64::from(qp.from.0), u64::from(qp.to.0), us(record.start.ps() / 1000));
        here.insert(key, results::flows::fct(record).unwrap().ps() as f64 / 1e3);
    }
    assert_eq!(here.len(), fcts.lines().count());
    let (mut ours, mut theirs, mut deviations) = (Vec::new(), Vec::new(), Vec::new());
    for line in fcts.lines() {
        let row: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let (there, here) = (row[6] as f64, here[&(row[0], row[1], us(row[5]))]);
        theirs.push(there);
        ours.push(here);
        deviations.push((here / there - 1.0).abs() * 100.0);
    }
    for values in [&mut ours, &mut theirs, &mut deviations] {
        values.sort_by(f64::total_cmp);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let of = |values: &[f64]| [mean(values), percentile(values, 0.5), percentile(values, 0.99)];
    let deviations = [0.5, 0.9, 1.0].map(|part| percentile(&deviations, part));
    Compared { here: of(&ours), there: of(&theirs), deviations }
}

impl Compared {
    /// Fails if the distributions differ by more than `part`, or deviations of flows exceed `limits`.
    fn within(&self, part: f64, limits: [f64; 3]) {
        let alike = self.here.iter().zip(self.there).all(|(here, there)| (here / there - 1.0).abs() < part);
        assert!(alike && self.deviations.iter().zip(limits).all(|(found, limit)| *found < limit), "{self:?}");
    }
}

#[test]
fn every_flow_takes_the_time_that_it_took_in_ns3() {
    let compared = compare(include_str!("../ns3/flow.txt"), CONFIG, include_str!("../ns3/fct.txt"));
    compared.within(0.0005, [0.005, 0.05, 0.2]);
}

/// DCQCN cuts the rates of the same flows at the same times: the 99th percentile is four times as long.
#[test]
fn every_flow_takes_the_same_time_when_marks_cut_its_rate() {
    let config = format!("{}{MARKS}", CONFIG.replace("ENABLE_QCN 0", "ENABLE_QCN 1"));
    let compared = compare(include_str!("../ns3/flow.txt"), &config, include_str!("../ns3/fct-marks.txt"));
    assert!(compared.here[2] > 370_000.0, "{compared:?}");
    compared.within(0.001, [0.05, 0.2, 0.7]);
}

/// Ports count up, so the second flow between two hosts takes another path than the first.
#[test]
fn repeated_flows_take_the_times_that_they_took_in_ns3() {
    let compared =
        compare(include_str!("../ns3/flow-repeated.txt"), CONFIG, include_str!("../ns3/fct-repeated.txt"));
    compared.within(0.0005, [0.05, 0.15, 0.3]);
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
