//! The suspects: a row each, with its curve, the evidence for and against it, and what to run next.
//!
//! Priors and weights are our choice, from how often causes were named in public threads about slow collectives.

use crate::case::{Case, LARGE, listed};
use crate::expect::Range;
use crate::likelihood;
use crate::log::Test;
use crate::simulate::{Scene, TOLD, command};
use collective::Kind;
use serde::Serialize;

/// A suspect as it is answered.
#[derive(Clone, Debug, Serialize)]
pub struct Accused {
    /// Name, for scripts.
    pub name: &'static str,
    /// The suspicion, in words.
    pub title: String,
    /// Probability among all suspects and an unknown cause.
    pub probability: f64,
    /// What was found for it.
    pub evidence_for: Vec<String>,
    /// What was found against it.
    pub evidence_against: Vec<String>,
    /// What to run next.
    pub next: Vec<String>,
    /// Settings that simulate it, if a scenario can show it.
    #[serde(skip)]
    pub(crate) simulate: Vec<String>,
    /// The command that simulates it, for 256 MiB.
    pub simulated_by: Option<String>,
    /// Its curve: size, least and most bus bandwidth, GB/s.
    pub curve: Vec<(u64, f64, f64)>,
}

/// What speaks for and against a suspect.
#[derive(Default)]
pub(crate) struct Evidence {
    ln: f64,
    on: Vec<String>,
    against: Vec<String>,
}

/// Weights of evidence: how many times as likely a finding is if the suspect is guilty.
const WEAK: f64 = 2.0;
const MEDIUM: f64 = 6.0;
const STRONG: f64 = 40.0;
const CERTAIN: f64 = 400.0;

impl Evidence {
    fn on(&mut self, weight: f64, words: impl Into<String>) {
        self.ln += weight.ln();
        self.on.push(words.into());
    }

    fn against(&mut self, weight: f64, words: impl Into<String>) {
        self.ln -= weight.ln();
        self.against.push(words.into());
    }
}

/// A curve that a suspect may cause.
struct Shape {
    ranges: Vec<Range>,
    /// What it means, such as `1 of 8 NICs`; empty if nothing is to be said.
    words: String,
    /// How often the suspect has this shape, beside its other shapes.
    weight: f64,
}

fn shape(ranges: Vec<Range>, words: impl Into<String>) -> Shape {
    Shape { ranges, words: words.into(), weight: 1.0 }
}

impl Shape {
    fn weighing(self, weight: f64) -> Self {
        Shape { weight, ..self }
    }
}

/// A row of the table.
struct Suspect {
    name: &'static str,
    title: fn(&Case<'_>) -> String,
    /// How often it is the cause, among all.
    prior: f64,
    applies: fn(&Case<'_>) -> bool,
    shapes: fn(&Case<'_>) -> Vec<Shape>,
    evidence: fn(&Case<'_>, &mut Evidence),
    next: fn(&Case<'_>) -> Vec<String>,
    /// Settings of a scenario that show it.
    simulate: fn(&Case<'_>) -> Vec<String>,
}

/// How often the cause is none of the table.
const UNKNOWN: f64 = 0.08;

const TABLE: &[Suspect] = &[
    Suspect {
        name: "few-nics",
        title: |case| match (&case.in_use, &case.model) {
            (Some((nics, _)), Some(model)) => format!("{} of {} NICs in use", number(*nics), model.nics),
            (_, Some(model)) => match nearest_count(case) {
                Some(nics) => format!("{} of {} NICs in use", number(nics), model.nics),
                None => "one or few NICs in use".to_owned(),
            },
            _ => "one or few NICs in use".to_owned(),
        },
        prior: 0.14,
        applies: |case| {
            let several = case.model.as_ref().is_none_or(|model| model.nics > 1);
            case.networked() && several && case.test != Some(Test::SendRecv)
        },
        shapes: |case| {
            let Some(model) = &case.model else { return Vec::new() };
            if let Some((nics, _)) = case.in_use {
                // What is certain explains at least this part of the loss, whatever else there is.
                return vec![
                    shape(case.share(0.84, 0.98), share_of_nics(case, nics)),
                    shape(case.share(0.30, 0.98), share_words(case, "of the NICs in use")),
                ];
            }
            let of = |nics: u32| {
                let all = f64::from(nics) * model.nic;
                // One NIC, or those of one CPU, are in use more often than any other number.
                let weight = if nics == 1 || 2 * nics == model.nics { 4.0 } else { 1.0 };
                shape(case.limit(0.85 * all, 0.98 * all), share_of_nics(case, nics)).weighing(weight)
            };
            let tree = |nics: u32| {
                let all = 1.875 * f64::from(nics) * model.nic;
                let words = format!("{} with a tree, which sends each byte once", share_of_nics(case, nics));
                shape(case.limit(0.85 * all, 0.98 * all), words).weighing(0.5)
            };
            let two = model.nodes == 2 && case.test == Some(Test::Of(Kind::AllReduce));
            let trees = [1, model.nics / 2].into_iter().filter(|nics| two && *nics > 0).map(tree);
            (1..model.nics).map(of).chain(trees).collect()
        },
        evidence: |case, evidence| {
            let nics = case.cluster.reachable().unwrap_or(0);
            if let Some((_, why)) = &case.in_use {
                return evidence.on(CERTAIN, why.clone());
            }
            if let Some(told) = &case.facts.devices {
                let count = told.value.len() as u32;
                if count >= nics && nics > 0 {
                    evidence.against(STRONG, format!("NCCL lists {count} NICs {}", Case::at(told)));
                }
            }
            let used = case.facts.nics_used.len() as u32;
            if used > 0 && used < nics {
                evidence.on(MEDIUM, format!("connections use {used} of {nics} NICs"));
            } else if used >= nics && nics > 1 {
                evidence.against(STRONG, format!("connections use {used} NICs"));
            }
            if let Some(told) = case.facts.env.get("NCCL_IB_HCA").filter(|told| listed(&told.value).is_none())
            {
                evidence.on(1.2, format!("NCCL_IB_HCA={} restricts the NICs {}", told.value, Case::at(told)));
            }
        },
        next: |case| {
            let mut next = vec![
                "run with NCCL_DEBUG=INFO and count the devices in `NET/IB : Using`".to_owned(),
                "unset NCCL_IB_HCA, or let it name every NIC".to_owned(),
            ];
            if case.facts.devices.is_some() {
                next.remove(0);
            }
            next.push("ibv_devinfo | grep -e hca_id -e state: every NIC must be PORT_ACTIVE".to_owned());
            next
        },
        simulate: |case| {
            let nics =
                case.in_use.as_ref().map(|(nics, _)| *nics).or_else(|| nearest_count(case)).unwrap_or(1);
            let mut settings = vec![format!("server.nics={nics}")];
            // NCCL's model takes a tree on two nodes with slow NICs, which has almost twice the bandwidth.
            let all =
                case.model.as_ref().map(|model| model.ceiling().0 * f64::from(nics) / f64::from(model.nics));
            let ring = case.plateau().zip(all).is_some_and(|((_, busbw), all)| busbw < 1.05 * all);
            if ring && matches!(case.test, Some(Test::Of(Kind::AllReduce))) {
                settings.push("workload.0.collective.algorithm=ring".to_owned());
            }
            settings
        },
    },
    Suspect {
        name: "gdr-or-cpu",
        title: |case| {
            let (gdr, cpu) = (gdr_off(case).is_some(), at_cpu(case).is_some());
            match (gdr, cpu) {
                (true, _) => "GDR off: data goes through host memory (GPUDirect RDMA)".to_owned(),
                (false, true) => "NIC at the CPU: no PCIe switch joins it with its GPU".to_owned(),
                (false, false) => {
                    "NIC at the CPU, without a PCIe switch to its GPU, or GDR off (GPUDirect RDMA)".to_owned()
                }
            }
        },
        prior: 0.14,
        applies: |case| case.networked(),
        shapes: |case| {
            let Some(base) = &case.base else { return Vec::new() };
            let nics = f64::from(base.nics);
            let mut all = Vec::new();
            if base.nic > 17.0 {
                all.push(shape(
                    case.limit(14.0 * nics, 16.8 * nics),
                    "14 to 17 GB/s per NIC through the host",
                ));
            }
            if base.nics > 1 {
                let most = 14.0_f64.min(base.nic * 0.8) * nics;
                all.push(shape(case.limit(2.5 * nics, most), "several NICs share the host's memory"));
            }
            if base.nic <= 17.0 {
                all.push(shape(case.share(0.35, 0.75), "the host's memory is slower than the NIC"));
            }
            all
        },
        evidence: |case, evidence| {
            if let Some(words) = gdr_off(case) {
                evidence.on(CERTAIN, words);
            } else if case.facts.gdr_links > 0 {
                evidence.against(STRONG, format!("{} connections use GDRDMA", case.facts.gdr_links));
            } else if let Some(told) = case.facts.gdr.as_ref().filter(|told| told.value) {
                evidence.against(MEDIUM, format!("GPUDirect RDMA is on {}", Case::at(told)));
            }
            if let Some(words) = at_cpu(case) {
                evidence.on(STRONG, words);
            } else if let Some(told) = &case.facts.path {
                evidence.against(WEAK, format!("NIC and GPU meet at {} {}", told.value, Case::at(told)));
            }
            for name in ["NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_DISABLE"] {
                if let Some(told) = case.facts.env.get(name) {
                    evidence.on(WEAK, format!("{name}={} {}", told.value, Case::at(told)));
                }
            }
            gpu_memory(case, evidence);
        },
        next: |case| {
            let mut next = vec![
                "lsmod | grep nvidia_peermem, or a kernel with DMA-BUF; then look for GDRDMA in NCCL's log"
                    .to_owned(),
                "nvidia-smi topo -m: PIX or PXB between each GPU and its NIC, not PHB, NODE or SYS"
                    .to_owned(),
            ];
            next.push(perftest(case, " --use_cuda=0"));
            next
        },
        simulate: |case| {
            let way = if gdr_off(case).is_some() { "gdr = false" } else { "through-cpu = true" };
            vec![format!("nic.pcie={{ rate = \"384Gbps\", {way} }}")]
        },
    },
    Suspect {
        name: "pcie",
        title: |case| {
            let slow = slow_pcie(case);
            match slow {
                Some((net, _)) => format!("PCIe: the link of {net} is slower than the NIC"),
                None => "PCIe, ACS or IOMMU: the path between GPU and NIC is slow".to_owned(),
            }
        },
        prior: 0.13,
        applies: |case| case.networked(),
        shapes: |case| {
            let Some(base) = &case.base else { return Vec::new() };
            let nics = f64::from(base.nics);
            let mut all = vec![shape(case.share(0.36, 0.62), share_words(case, "of the NICs in use"))];
            // Sixteen lanes of generation 3 and 4, and eight of 4 and 5.
            for (rate, words) in
                [(12.0, "12 GB/s: 16 lanes of PCIe 3"), (24.0, "24 GB/s: 16 lanes of PCIe 4")]
            {
                if rate < 0.8 * base.nic {
                    all.push(shape(case.limit(0.88 * rate * nics, 1.02 * rate * nics), words));
                }
            }
            all.push(shape(case.share(0.12, 0.36), "reads or a host path of long latency"));
            all
        },
        evidence: |case, evidence| {
            if let Some((_, words)) = slow_pcie(case) {
                evidence.on(STRONG, words);
            } else if !case.facts.nets.is_empty() {
                evidence.against(WEAK, "the topology has PCIe links as fast as the NICs");
            }
            if let (Some(sendrecv), Some(model)) = (case.sendrecv, &case.model) {
                let share = sendrecv / model.nic;
                if share < 0.7 {
                    // Eight chunks of 128 KiB are under way to a peer (NCCL).
                    let us = 8.0 * 131_072.0 / sendrecv / 1e3;
                    let words = format!(
                        "sendrecv on one NIC has {sendrecv:.1} of {:.0} GB/s: with 8 x 128 KiB in flight a chunk takes {us:.0} us, so the \
                         path through the host is slow",
                        model.nic
                    );
                    evidence.on(MEDIUM * WEAK, words);
                } else if share > 0.85 {
                    evidence.against(MEDIUM, format!("sendrecv on one NIC has {sendrecv:.1} GB/s"));
                }
            }
            gpu_memory(case, evidence);
            full_wire(case, evidence);
        },
        next: |case| {
            vec![
                perftest(case, " --use_cuda=0"),
                "lspci -vv | grep -i ACSCtl: every switch port must have SrcValid-; turn ACS off (setpci) and the IOMMU to passthrough"
                    .to_owned(),
                "lspci -vv -s NIC | grep LnkSta: speed and width as in LnkCap; PCI_WR_ORDERING=1 or NCCL_IB_PCI_RELAXED_ORDERING=1"
                    .to_owned(),
            ]
        },
        simulate: |case| {
            let gbps = case.cluster.gbps.unwrap_or(400.0);
            vec![format!("nic.pcie={{ rate = \"{:.0}Gbps\" }}", gbps / 2.0)]
        },
    },
    Suspect {
        name: "bond",
        title: |_| "bond with one QP: a queue pair uses one port".to_owned(),
        prior: 0.05,
        applies: |case| case.networked() && case.cluster.bond.is_some_and(|ports| ports > 1),
        shapes: |case| {
            let ports = f64::from(case.cluster.bond.unwrap_or(2).max(2));
            let one = 1.0 / ports;
            vec![
                shape(case.share(0.85 * one, 1.0 * one), "one port of each bond"),
                shape(case.share(1.0 * one, 1.4 * one), "few queue pairs on the ports of a bond"),
            ]
        },
        evidence: |case, evidence| {
            evidence.on(MEDIUM * WEAK, "the NICs are bonds");
            match case.facts.var("NCCL_IB_QPS_PER_CONNECTION").and_then(|n| n.parse::<u32>().ok()) {
                Some(qps) if qps > 1 => evidence.against(MEDIUM, format!("NCCL_IB_QPS_PER_CONNECTION={qps}")),
                _ => evidence.on(1.5, "NCCL_IB_QPS_PER_CONNECTION is 1 by default"),
            }
            let full = |least: u32, most: u32| {
                let of = case
                    .perftest
                    .iter()
                    .filter(|test| test.qps.is_some_and(|qps| (least..=most).contains(&qps)));
                let best = of.map(|test| test.gbps).reduce(f64::max)?;
                Some(best / case.cluster.gbps?)
            };
            if let Some(share) = full(2, u32::MAX).filter(|share| *share > 0.85) {
                evidence.on(
                    MEDIUM,
                    format!("perftest with several QPs fills {:.0} % of the bond", 100.0 * share),
                );
            }
            if let Some(share) = full(1, 1).filter(|share| *share < 0.7) {
                evidence.on(MEDIUM, format!("perftest with one QP gets {:.0} % of the bond", 100.0 * share));
            }
        },
        next: |case| {
            vec![
                "NCCL_IB_QPS_PER_CONNECTION=2 (or 4) with NCCL_IB_SPLIT_DATA_ON_QPS=1".to_owned(),
                perftest(case, " -q 1") + " against -q 8",
            ]
        },
        simulate: |_| vec!["server.ports-per-nic=2".to_owned(), "@half-rate".to_owned()],
    },
    Suspect {
        name: "few-channels",
        title: |case| match &case.facts.channels {
            Some(told) => format!("{} channels: too few for the NICs", told.value),
            None => "few channels".to_owned(),
        },
        prior: 0.015,
        applies: |case| case.test != Some(Test::SendRecv),
        shapes: |case| {
            let Some(model) = &case.model else { return Vec::new() };
            let of = |channels: u32| {
                let channels = f64::from(channels);
                let words = format!("{channels} channels of about 24 GB/s");
                if case.networked() {
                    return shape(case.limit(20.0 * channels, 25.0 * channels), words);
                }
                let limit = |range: &Range| Range {
                    least: range.least.min(18.0 * channels),
                    most: range.most.min(25.0 * channels),
                };
                shape(case.expected.iter().map(limit).collect(), words)
            };
            let enough = if case.networked() { 0.9 * model.network() } else { 300.0 };
            let told = case.facts.channels.as_ref().map(|told| told.value).filter(|channels| *channels > 0);
            let counts = told.map_or_else(|| vec![1, 2, 4, 8], |channels| vec![channels]);
            counts.into_iter().filter(|channels| f64::from(*channels) * 24.0 < enough).map(of).collect()
        },
        evidence: |case, evidence| {
            let network = case.model.as_ref().map_or(f64::MAX, |model| model.network());
            if let Some(told) = &case.facts.channels {
                let most = 24.0 * f64::from(told.value);
                if most < 0.9 * network {
                    evidence.on(
                        STRONG,
                        format!("{} channels carry about {most:.0} GB/s {}", told.value, Case::at(told)),
                    );
                } else {
                    evidence
                        .against(STRONG, format!("{} channels are enough {}", told.value, Case::at(told)));
                }
            }
            for name in ["NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_NTHREADS", "NCCL_BUFFSIZE"] {
                if let Some(told) = case.facts.env.get(name) {
                    evidence.on(MEDIUM, format!("{name}={} {}", told.value, Case::at(told)));
                }
            }
        },
        next: |_| {
            vec![
                "unset NCCL_MAX_NCHANNELS and NCCL_MAX_CTAS, or NCCL_MIN_NCHANNELS=16".to_owned(),
                "NCCL_DEBUG=INFO: `coll channels` should be 16 or more".to_owned(),
            ]
        },
        simulate: |case| {
            let channels = case.facts.channels.as_ref().map_or(2, |told| told.value);
            vec![format!("nccl.env={{ NCCL_MAX_NCHANNELS = \"{channels}\" }}")]
        },
    },
    Suspect {
        name: "collisions",
        title: |_| "ECMP collisions: flows share uplinks while others idle".to_owned(),
        prior: 0.11,
        applies: |case| case.networked(),
        shapes: |case| {
            vec![
                shape(case.share(0.42, 0.60), "about one half"),
                shape(case.share(0.26, 0.40), "about one third"),
                shape(case.share(0.60, 0.76), "some uplinks carry two flows").weighing(0.5),
            ]
        },
        evidence: |case, evidence| {
            match case.roce() {
                Some(true) => {
                    evidence.on(1.5, "RoCE: switches choose uplinks by a hash unless they are told otherwise")
                }
                Some(false) => evidence.against(MEDIUM, "InfiniBand: routes are planned or adaptive"),
                None => {}
            }
            match case.several_tors() {
                Some(true) => evidence.on(MEDIUM, "the nodes hang on several ToRs"),
                Some(false) => evidence.against(CERTAIN, "all nodes hang on one ToR: no uplink is in use"),
                None if case.cluster.nodes == Some(2) => {
                    evidence.against(WEAK, "two nodes often share a ToR")
                }
                None => {}
            }
            if let Some((size, jump)) = case.jump().filter(|(_, jump)| *jump > 4.0) {
                evidence.against(
                    STRONG,
                    format!("{} takes {jump:.0} times as long as half of it: collisions alone divide a rate, whatever the size", bytes(size)),
                );
            }
            match case.spread {
                Some(spread) if spread > 1.15 => {
                    evidence.on(MEDIUM, format!("repeated runs differ by a factor of {spread:.2}"));
                }
                Some(spread) if spread < 1.05 => {
                    evidence
                        .against(WEAK, format!("repeated runs agree within {:.0} %", 100.0 * (spread - 1.0)));
                }
                _ => {}
            }
            let split = case.facts.var("NCCL_IB_SPLIT_DATA_ON_QPS") == Some("1")
                && case.facts.var("NCCL_IB_QPS_PER_CONNECTION").is_some_and(|qps| qps != "1");
            if split {
                evidence.against(WEAK, "data is split over several queue pairs");
            }
            if case.cluster.nodes == Some(2) && case.base.as_ref().is_some_and(|base| base.nics == 1) {
                evidence.against(MEDIUM, "two nodes of one NIC each have no flows that could collide");
            }
            // A perftest is one flow, which cannot collide with itself.
            host_path(case, evidence);
        },
        next: |_| {
            vec![
                "run the same nodes below one ToR: full bandwidth there accuses the uplinks".to_owned(),
                "adaptive routing in the switches, with NCCL_IB_ADAPTIVE_ROUTING=1; else NCCL_IB_QPS_PER_CONNECTION=4 with NCCL_IB_SPLIT_DATA_ON_QPS=1"
                    .to_owned(),
                "tx bytes of all uplinks of a ToR: a few full ones beside idle ones are collisions".to_owned(),
            ]
        },
        simulate: |_| vec!["@uplinks".to_owned(), "scheme.ecmp={}".to_owned()],
    },
    Suspect {
        name: "lossy",
        title: |_| "lossy class: RoCE without flow control drops packets".to_owned(),
        prior: 0.06,
        applies: |case| case.networked(),
        shapes: |case| {
            let mut all = vec![shape(case.of_expected(0.001, 0.15), "bandwidth collapses")];
            // The collapse may begin at a size.
            for start in 1..case.points.len() {
                if case.points[start].1 > 0.7 * case.points[start - 1].1 {
                    continue;
                }
                let before = case.expected[..start.min(case.expected.len())].iter();
                let behind = case.expected[start.min(case.expected.len())..].iter();
                let before = before.map(|range| Range { least: 0.03 * range.least, most: range.most });
                let behind = behind.map(|range| Range { least: 0.001 * range.least, most: 0.2 * range.most });
                let words = format!("bandwidth collapses from {} on", bytes(case.points[start].0));
                all.push(shape(before.chain(behind).collect(), words));
            }
            all
        },
        evidence: |case, evidence| {
            match case.roce() {
                Some(true) => evidence.on(WEAK, "RoCE drops what no flow control protects"),
                Some(false) => evidence.against(STRONG, "InfiniBand does not drop packets when queues fill"),
                None => {}
            }
            if let Some(told) = &case.facts.retry_exceeded {
                evidence
                    .on(STRONG, format!("{} queue pairs ran out of retries {}", told.value, Case::at(told)));
            }
            jump(case, evidence, STRONG);
            let told = !case.facts.env.is_empty() || case.facts.devices.is_some();
            if case.roce() == Some(true) && told && case.facts.var("NCCL_IB_TC").is_none() {
                evidence.on(WEAK, "NCCL_IB_TC is unset: traffic class 0, which most switches do not protect");
            }
            counters(
                case,
                evidence,
                &["out_of_sequence", "packet_seq_err", "adp_retrans", "timeout_err", "discards"],
                MEDIUM,
            );
            if let Some(spread) = case.spread.filter(|spread| *spread > 1.5) {
                evidence.on(WEAK, format!("repeated runs differ by a factor of {spread:.1}"));
            }
        },
        next: |_| {
            vec![
                "NCCL_IB_TC=106 (or the class that your switches protect), with PFC and ECN for it on every port".to_owned(),
                "before and after a run: out_of_sequence, packet_seq_err and local_ack_timeout_err of each NIC (rdma statistic)".to_owned(),
                "drops per port and class of the switches".to_owned(),
            ]
        },
        simulate: |_| vec!["@uplinks".to_owned(), "switch.pfc=\"off\"".to_owned()],
    },
    Suspect {
        name: "rate-control",
        title: |_| "DCQCN too harsh: rates stay low after marks".to_owned(),
        prior: 0.06,
        applies: |case| case.networked(),
        shapes: |case| vec![shape(case.of_expected(0.62, 0.90), "10 to 40 % below at all large sizes")],
        evidence: |case, evidence| {
            match case.roce() {
                Some(true) => evidence.on(WEAK, "RoCE: DCQCN is on by default"),
                Some(false) => evidence.against(MEDIUM * WEAK, "InfiniBand: rate control is off by default"),
                None => {}
            }
            counters(case, evidence, &["cnp", "ecn_marked"], MEDIUM);
            if let Some(told) = &case.facts.retry_exceeded {
                evidence.against(MEDIUM, format!("retries {}: packets are lost", Case::at(told)));
            }
            if let Some(spread) = case.spread.filter(|spread| *spread < 1.05) {
                evidence.on(1.5, format!("repeated runs agree within {:.0} %", 100.0 * (spread - 1.0)));
            }
            host_path(case, evidence);
        },
        next: |_| {
            vec![
                "np_cnp_sent and rp_cnp_handled of each NIC, before and after a run".to_owned(),
                "rpg_time_reset, rpg_ai_rate and the switches' Kmin and Kmax: marks should begin above the bandwidth-delay product".to_owned(),
            ]
        },
        simulate: |_| {
            vec![
                "@uplinks".to_owned(),
                "scheme.ar={}".to_owned(),
                "switch.ecn={ kmin = \"20kB\", kmax = \"80kB\", pmax = 1.0 }".to_owned(),
            ]
        },
    },
    Suspect {
        name: "slow-node",
        title: |_| "one slow node or link: a ring goes at the pace of its slowest member".to_owned(),
        prior: 0.09,
        applies: |case| case.networked(),
        shapes: |case| vec![shape(case.share(0.08, 0.92), "the pace of the slowest NIC")],
        evidence: |case, evidence| {
            if case.cluster.nodes.is_some_and(|nodes| nodes > 2) {
                evidence.on(1.3, "the more nodes, the likelier one of them is slow");
            }
            host_path(case, evidence);
        },
        next: |_| {
            vec![
                "run the test on pairs of nodes, and give all logs to `ropewalk busbw`: elimination names the node or the link".to_owned(),
                "ibstat or mlxlink of every port: rate, width and symbol errors".to_owned(),
            ]
        },
        simulate: |_| vec!["@slow-link".to_owned()],
    },
    Suspect {
        name: "pauses",
        title: |_| "NIC pauses: a receiver cannot take its data, and pauses its link".to_owned(),
        prior: 0.03,
        applies: |case| case.networked(),
        shapes: |case| vec![shape(case.of_expected(0.02, 0.70), "the pace of the receiver")],
        evidence: |case, evidence| {
            counters(case, evidence, &["pause"], STRONG);
            counters(case, evidence, &["out_of_buffer"], WEAK);
            jump(case, evidence, MEDIUM);
            if case.roce() == Some(false) {
                evidence.against(MEDIUM, "InfiniBand has credits in place of pauses");
            }
        },
        next: |_| {
            vec![
                "rx_prio*_pause and tx_prio*_pause of every NIC (ethtool -S): a NIC that sends pauses is the slow receiver".to_owned(),
                "the slow receiver's PCIe link, and its memory: IOMMU, ATS, NUMA".to_owned(),
            ]
        },
        simulate: |_| vec!["nic.receive={ rate = \"100Gbps\", pause = true }".to_owned()],
    },
    Suspect {
        name: "protocol",
        title: |_| "protocol or algorithm border: NCCL changes its way at this size".to_owned(),
        prior: 0.08,
        applies: |case| {
            matches!(case.test, Some(Test::Of(Kind::AllReduce | Kind::AllGather | Kind::ReduceScatter)))
        },
        shapes: |case| {
            let Some(model) = &case.model else { return Vec::new() };
            let border = border(case);
            let of = |(i, (size, _)): (usize, &(u64, f64))| match border {
                Some(at) if *size >= at / 2 && *size <= at.saturating_mul(4) => model.rejected(*size),
                _ => case.expected[i],
            };
            vec![shape(
                case.points.iter().enumerate().map(of).collect(),
                "the other protocol near the border",
            )]
        },
        evidence: |case, evidence| {
            if let Some((size, at)) = dip(case) {
                match border(case) {
                    Some(border) if border / 4 <= size && size <= border.saturating_mul(4) => {
                        let words = format!(
                            "bandwidth dips at {} and recovers at {}, where NCCL's model changes",
                            bytes(size),
                            bytes(at)
                        );
                        evidence.on(MEDIUM, words);
                    }
                    _ => evidence.against(
                        WEAK,
                        format!("the dip at {} is not where NCCL's model changes", bytes(size)),
                    ),
                }
            }
            for name in ["NCCL_PROTO", "NCCL_ALGO"] {
                if let Some(told) = case.facts.env.get(name) {
                    evidence.on(WEAK, format!("{name}={} {}", told.value, Case::at(told)));
                }
            }
        },
        next: |_| {
            vec![
                "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING: the algorithm and the protocol of each size"
                    .to_owned(),
                "the same sizes with NCCL_PROTO=Simple, then LL128".to_owned(),
            ]
        },
        simulate: |_| vec!["nccl.env={ NCCL_PROTO = \"Simple\" }".to_owned()],
    },
    Suspect {
        name: "nvls-off",
        title: |_| "NVLS off: NVSwitches do not reduce".to_owned(),
        prior: 0.10,
        applies: |case| {
            case.cluster.nodes == Some(1)
                && case.cluster.model.is_some_and(|model| model.nvls > 0.0)
                && case.cluster.gpus.is_some_and(|gpus| gpus > 2)
                && case.test == Some(Test::Of(Kind::AllReduce))
        },
        shapes: |case| {
            let Some(model) = case.cluster.model else { return Vec::new() };
            let ring = |range: &Range| Range {
                least: range.least.min(0.85 * model.nvlink),
                most: range.most.min(1.02 * model.nvlink),
            };
            vec![shape(case.expected.iter().map(ring).collect(), "the ring's bandwidth over NVLink")]
        },
        evidence: |case, evidence| {
            match &case.facts.nvls_channels {
                Some(told) if told.value == 0 => {
                    evidence.on(STRONG, format!("0 nvls channels {}", Case::at(told)))
                }
                Some(told) => {
                    evidence.against(STRONG, format!("{} nvls channels {}", told.value, Case::at(told)))
                }
                None => {}
            }
            if let Some(told) = case.facts.env.get("NCCL_NVLS_ENABLE").filter(|told| told.value == "0") {
                evidence.on(STRONG, format!("NCCL_NVLS_ENABLE=0 {}", Case::at(told)));
            }
        },
        next: |_| {
            vec![
                "unset NCCL_NVLS_ENABLE and NCCL_ALGO; NCCL_DEBUG=INFO must show `nvls channels` above 0"
                    .to_owned(),
                "systemctl status nvidia-fabricmanager: NVLS needs it, and a driver with multicast"
                    .to_owned(),
            ]
        },
        simulate: |_| vec!["nccl.nvls=false".to_owned()],
    },
    Suspect {
        name: "long-paths",
        title: |_| "long paths: 4 MiB per channel are in flight, so latency limits bandwidth".to_owned(),
        prior: 0.01,
        applies: |case| case.networked(),
        shapes: |case| {
            let Some(base) = &case.base else { return Vec::new() };
            let channels = case.facts.channels.as_ref().map_or(2 * base.nics, |told| told.value).max(1);
            match case.cluster.round_trip_us {
                Some(us) if us > 0.0 => {
                    let window = f64::from(channels) * in_flight() / us / 1e3;
                    let words = format!("{channels} channels x 4 MiB / {us:.0} us = {window:.0} GB/s");
                    vec![shape(case.limit(0.6 * window, 1.1 * window), words)]
                }
                _ => vec![shape(case.share(0.15, 0.80), "4 MiB per channel over the round trip")],
            }
        },
        evidence: |case, evidence| {
            if case.cluster.sites.is_some_and(|sites| sites > 1) {
                evidence.on(CERTAIN, "the nodes stand at several sites");
            }
            if let Some(us) = case.cluster.round_trip_us {
                let weight = if us >= 100.0 { MEDIUM } else { 1.5 };
                evidence.on(
                    weight,
                    format!(
                        "4 MiB per channel in flight over {us:.0} us is {:.1} GB/s per channel",
                        in_flight() / us / 1e3
                    ),
                );
            }
        },
        next: |_| {
            vec![
                "NCCL_BUFFSIZE=16777216 (four times as much in flight), or more channels (NCCL_MIN_NCHANNELS=32)".to_owned(),
                "ib_write_lat between the sites: bandwidth should fall with 1/latency".to_owned(),
                "NCCL_ALGO=Tree, which crosses the long path once per direction".to_owned(),
            ]
        },
        simulate: |case| {
            let us = case.cluster.round_trip_us.unwrap_or(400.0) / 2.0;
            // Four links of the way there and back; no buffer has room for pauses over such links.
            vec![format!("@uplinks:{:.0}us", us / 4.0), "switch.pfc=\"off\"".to_owned()]
        },
    },
    Suspect {
        name: "sockets",
        title: |_| "TCP sockets in place of RDMA".to_owned(),
        prior: 0.05,
        applies: |case| case.networked(),
        shapes: |case| {
            let of = |(_, range): (usize, &Range)| Range {
                least: range.least.min(0.3),
                most: range.most.min(6.0),
            };
            let several = |(_, range): (usize, &Range)| Range {
                least: range.least.min(6.0),
                most: range.most.min(20.0),
            };
            vec![
                shape(case.expected.iter().enumerate().map(of).collect(), "one interface with TCP"),
                shape(case.expected.iter().enumerate().map(several).collect(), "several interfaces with TCP"),
            ]
        },
        evidence: |case, evidence| {
            if let Some(told) = &case.facts.socket {
                evidence.on(CERTAIN, format!("NCCL uses sockets {}", Case::at(told)));
            } else if let Some(told) = &case.facts.devices {
                evidence.against(STRONG, format!("NCCL uses RDMA devices {}", Case::at(told)));
            } else if case.facts.gdr_links > 0 || case.facts.plain_links.is_some() {
                evidence.against(STRONG, "connections use NET/IB");
            }
            if let Some(told) = case.facts.env.get("NCCL_IB_DISABLE").filter(|told| told.value == "1") {
                evidence.on(CERTAIN, format!("NCCL_IB_DISABLE=1 {}", Case::at(told)));
            }
        },
        next: |_| {
            vec![
                "unset NCCL_IB_DISABLE; NCCL_DEBUG=INFO must show `NET/IB : Using`, not `NET/Socket`"
                    .to_owned(),
                "in containers: --device /dev/infiniband and --ulimit memlock=-1".to_owned(),
            ]
        },
        simulate: |_| Vec::new(),
    },
    Suspect {
        name: "no-peer-access",
        title: |_| "GPUs of a server use host memory in place of NVLink".to_owned(),
        prior: 0.04,
        applies: |case| case.cluster.gpus.is_none_or(|gpus| gpus > 1),
        shapes: |case| {
            let of = |range: &Range| Range { least: range.least.min(3.0), most: range.most.min(30.0) };
            vec![shape(case.expected.iter().map(of).collect(), "PCIe and host memory")]
        },
        evidence: |case, evidence| {
            match &case.facts.shm {
                Some(told) => {
                    evidence.on(STRONG, format!("{} connections via SHM {}", told.value, Case::at(told)))
                }
                None if case.facts.gdr_links > 0 || case.facts.plain_links.is_some() => {
                    evidence.against(MEDIUM, "no connection via SHM");
                }
                None if case.networked() => {
                    evidence.against(WEAK, "with several nodes the network is the likelier place")
                }
                None => {}
            }
            for name in ["NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"] {
                if let Some(told) = case.facts.env.get(name) {
                    evidence.on(MEDIUM, format!("{name}={} {}", told.value, Case::at(told)));
                }
            }
        },
        next: |_| {
            vec![
                "nvidia-smi nvlink -s and nvidia-smi topo -m: NV links between all GPUs".to_owned(),
                "unset NCCL_P2P_DISABLE and NCCL_P2P_LEVEL".to_owned(),
            ]
        },
        simulate: |_| vec!["@uplinks".to_owned(), "server.nvlink=\"off\"".to_owned()],
    },
];

/// Bytes in flight per channel.
fn in_flight() -> f64 {
    scenario::candidates::in_flight().get() as f64
}

/// Sentences about GPUDirect RDMA that is off.
fn gdr_off(case: &Case<'_>) -> Option<String> {
    let facts = case.facts;
    if let Some(told) = facts.gdr.as_ref().filter(|told| !told.value) {
        return Some(format!("GDR 0: GPUDirect RDMA is off {}", Case::at(told)));
    }
    if let Some(told) = facts.plain_links.as_ref().filter(|_| facts.gdr_links == 0) {
        return Some(format!(
            "{} connections over the network, none with GDRDMA {}",
            told.value,
            Case::at(told)
        ));
    }
    let net = facts.nets.iter().find(|net| net.gdr == Some(false))?;
    Some(format!("{} has gdr=\"0\" ({})", net.name, net.at))
}

/// Sentences about a NIC at the CPU.
fn at_cpu(case: &Case<'_>) -> Option<String> {
    if let Some(told) = case.facts.path.as_ref().filter(|told| matches!(told.value.as_str(), "PHB" | "SYS")) {
        return Some(format!("NIC and GPU meet at {}: the CPU {}", told.value, Case::at(told)));
    }
    let nets = &case.facts.nets;
    let net = nets
        .first()
        .filter(|_| case.facts.topology_gpus.is_some() && nets.iter().all(|net| !net.near_gpu))?;
    Some(format!("no PCIe switch joins {} with a GPU ({})", net.name, net.at))
}

/// A PCIe link of the topology, or of the description, that is slower than its NIC.
fn slow_pcie(case: &Case<'_>) -> Option<(String, String)> {
    let slow = case.facts.nets.iter().find(|net| net.pcie.is_some_and(|pcie| pcie < 0.8 * net.gbps / 8.0));
    if let Some(net) = slow {
        let pcie = net.pcie.unwrap_or(0.0);
        let words =
            format!("PCIe carries {pcie:.0} GB/s to {} of {:.0} GB/s ({})", net.name, net.gbps / 8.0, net.at);
        return Some((net.name.clone(), words));
    }
    let (pcie, nic) = (case.cluster.pcie?, case.cluster.gbps? / 8.0);
    (pcie < 0.8 * nic).then(|| {
        ("the NICs".to_owned(), format!("PCIe carries {pcie:.0} GB/s, the NIC {nic:.0}, as described"))
    })
}

/// What perftest with GPU memory says.
fn gpu_memory(case: &Case<'_>, evidence: &mut Evidence) {
    match case.perftest_share(true) {
        Some((share, test)) if share < 0.75 => {
            let words = format!(
                "perftest with GPU memory gets {:.0} Gb/s, {:.0} % (line {})",
                test.gbps,
                100.0 * share,
                test.line
            );
            evidence.on(STRONG, words);
        }
        Some((share, _)) => evidence
            .against(MEDIUM, format!("perftest with GPU memory gets {:.0} % of the NIC", 100.0 * share)),
        None => {}
    }
}

/// What a full perftest with host memory says about causes beyond the wire.
fn full_wire(case: &Case<'_>, evidence: &mut Evidence) {
    if let Some((share, test)) = case.perftest_share(false).filter(|(share, _)| *share > 0.85) {
        let words =
            format!("perftest with host memory fills the NIC: {:.0} Gb/s, {:.0} %", test.gbps, 100.0 * share);
        evidence.on(WEAK, words);
    }
}

/// What a slow sendrecv beside a full perftest says against causes in the fabric.
fn host_path(case: &Case<'_>, evidence: &mut Evidence) {
    let Some((share, test)) = case.perftest_share(false).filter(|(share, _)| *share > 0.85) else { return };
    evidence.against(WEAK, format!("perftest fills a NIC: {:.0} Gb/s, {:.0} %", test.gbps, 100.0 * share));
    if let (Some(sendrecv), Some(model)) = (case.sendrecv, &case.model)
        && sendrecv < 0.7 * model.nic
    {
        evidence.against(MEDIUM, format!("sendrecv of one pair is slow as well: {sendrecv:.1} GB/s"));
    }
}

/// What a time that more than doubles with the size says.
fn jump(case: &Case<'_>, evidence: &mut Evidence, weight: f64) {
    let Some((size, jump)) = case.jump() else { return };
    if jump > 3.0 {
        evidence.on(weight, format!("twice the bytes take {jump:.0} times as long at {}", bytes(size)));
    }
}

/// What counters say.
fn counters(case: &Case<'_>, evidence: &mut Evidence, names: &[&str], weight: f64) {
    let of = case.facts.counters.iter().filter(|told| names.iter().any(|name| told.value.0.contains(name)));
    let mut all: Vec<_> = of.collect();
    all.sort_by_key(|told| std::cmp::Reverse(told.value.1));
    match all.first() {
        Some(told) if told.value.1 > 0 => {
            evidence.on(weight, format!("{} = {} {}", told.value.0, told.value.1, Case::at(told)))
        }
        Some(told) => evidence.against(weight, format!("{} = 0 {}", told.value.0, Case::at(told))),
        None => {}
    }
}

/// The size at which bandwidth is lower than at smaller and at larger sizes, and the size at which it has recovered.
fn dip(case: &Case<'_>) -> Option<(u64, u64)> {
    let points = &case.points;
    (1..points.len()).find_map(|i| {
        let before = points[..i].iter().map(|point| point.1).fold(0.0, f64::max);
        let recovered = points[i + 1..].iter().find(|point| point.1 > before)?;
        (points[i].1 < 0.93 * before).then_some((points[i].0, recovered.0))
    })
}

/// The size from which NCCL's choice differs from that of the size before it, near a dip, or the largest such size.
fn border(case: &Case<'_>) -> Option<u64> {
    let model = case.model.as_ref()?;
    let how: Vec<(u64, Option<String>)> =
        case.points.iter().map(|(bytes, _)| (*bytes, model.expected(*bytes).how.first().cloned())).collect();
    let borders: Vec<u64> =
        how.windows(2).filter(|pair| pair[0].1 != pair[1].1).map(|pair| pair[1].0).collect();
    match dip(case) {
        Some((at, _)) => borders.into_iter().min_by_key(|border| (*border).abs_diff(at)),
        None => borders.last().copied(),
    }
}

/// The number of NICs whose rate the plateau is nearest to, if it is near one.
fn nearest_count(case: &Case<'_>) -> Option<u32> {
    let (model, (_, plateau)) = (case.model.as_ref()?, case.plateau()?);
    let each = model.ceiling().0 / f64::from(model.nics);
    Some(((plateau / (0.97 * each)).round() as u32).clamp(1, model.nics.saturating_sub(1).max(1)))
}

/// The measured bandwidth as a share of that of so many NICs.
fn share_of_nics(case: &Case<'_>, nics: u32) -> String {
    let (Some(model), Some((_, busbw))) = (&case.model, case.plateau()) else { return String::new() };
    let all = model.ceiling().0 * f64::from(nics) / f64::from(model.nics);
    let plural = if nics == 1 { "" } else { "s" };
    format!("{busbw:.1} GB/s is {:.2} of {nics} NIC{plural}", busbw / all)
}

/// The measured bandwidth as a share of that of the NICs in use.
fn share_words(case: &Case<'_>, of: &str) -> String {
    let (Some(base), Some((_, busbw))) = (&case.base, case.plateau()) else { return String::new() };
    format!("{:.0} % {of}", 100.0 * busbw / base.ceiling().0)
}

fn number(n: u32) -> String {
    match n {
        1 => "one".to_owned(),
        _ => n.to_string(),
    }
}

/// A size with a binary unit.
pub(crate) fn bytes(n: u64) -> String {
    match n {
        n if n >= 1 << 30 && n % (1 << 30) == 0 => format!("{} GiB", n >> 30),
        n if n >= 1 << 20 && n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        n if n >= 1 << 10 && n % (1 << 10) == 0 => format!("{} KiB", n >> 10),
        n if n >= 1_000_000 => format!("{:.1} MB", n as f64 / 1e6),
        n => format!("{n} B"),
    }
}

/// A perftest line.
fn perftest(case: &Case<'_>, more: &str) -> String {
    let device = case
        .facts
        .devices
        .as_ref()
        .and_then(|told| told.value.first())
        .map_or("mlx5_0", |(name, _)| name.split(':').next().unwrap_or("mlx5_0"));
    format!("ib_write_bw -d {device} -F --report_gbits -s 1048576 -D 10{more} HOST")
}

/// Least probability with which a suspect is told. Our choice.
const LEAST: f64 = 0.02;

/// The suspects of a case, likeliest first, and the probability of an unknown cause.
pub(crate) fn accuse(case: &Case<'_>) -> (Vec<Accused>, f64) {
    let mut found: Vec<(f64, Accused)> = Vec::new();
    let scene = case.model.as_ref().and_then(Scene::of);
    for suspect in TABLE.iter().filter(|suspect| (suspect.applies)(case)) {
        let mut evidence = Evidence::default();
        (suspect.evidence)(case, &mut evidence);
        let shapes = (suspect.shapes)(case);
        // Each of several shapes had its chance.
        let total: f64 = shapes.iter().map(|shape| shape.weight).sum();
        let fit =
            |shape: &Shape| likelihood::of(&case.points, &shape.ranges, LARGE) + (shape.weight / total).ln();
        let best = shapes.iter().max_by(|a, b| fit(a).total_cmp(&fit(b)));
        // Without an expectation, evidence alone decides.
        let (ln, curve) = match best {
            Some(best) if !case.points.is_empty() && !best.ranges.is_empty() => {
                let ln = fit(best);
                if !best.words.is_empty() && ln > likelihood::of_anything(&case.points, LARGE) - 2.0 {
                    evidence.on.insert(0, best.words.clone());
                }
                let curve = case
                    .points
                    .iter()
                    .zip(&best.ranges)
                    .map(|((bytes, _), range)| (*bytes, range.least, range.most));
                (ln, curve.collect())
            }
            _ if case.model.is_some() => continue,
            _ if evidence.on.is_empty() => continue,
            _ => (0.0, Vec::new()),
        };
        let tokens = (suspect.simulate)(case);
        let accused = Accused {
            name: suspect.name,
            title: (suspect.title)(case),
            probability: 0.0,
            evidence_for: evidence.on,
            evidence_against: evidence.against,
            next: (suspect.next)(case),
            simulated_by: scene
                .as_ref()
                .filter(|_| !tokens.is_empty())
                .map(|scene| command(&scene.settings(&tokens, TOLD))),
            simulate: tokens,
            curve,
        };
        found.push((suspect.prior.ln() + ln + evidence.ln, accused));
    }
    let unknown =
        UNKNOWN.ln() + if case.model.is_some() { likelihood::of_anything(&case.points, LARGE) } else { 0.0 };
    let most = found.iter().map(|(ln, _)| *ln).fold(unknown, f64::max);
    let total: f64 = found.iter().map(|(ln, _)| (ln - most).exp()).sum::<f64>() + (unknown - most).exp();
    for (ln, accused) in &mut found {
        accused.probability = (*ln - most).exp() / total;
    }
    found.sort_by(|a, b| b.1.probability.total_cmp(&a.1.probability));
    let mut all: Vec<Accused> = found.into_iter().map(|(_, accused)| accused).collect();
    let told = all.iter().take_while(|accused| accused.probability >= LEAST).count();
    // Three suspects at least, so that a reader sees what was weighed.
    all.truncate(told.clamp(3, 6));
    (all, (unknown - most).exp() / total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;
    use crate::expect::{CALL, Model};
    use crate::log::{Facts, Point};

    /// Every suspect that names settings names ones that ropewalk runs.
    #[test]
    fn the_scenarios_of_all_suspects_are_right() {
        let mut names = std::collections::BTreeSet::new();
        for text in [
            "2 nodes, 8 h100, 8x400G, roce",
            "12 nodes, 8 a800, 1x200G, 4 racks",
            "16 nodes, 4 gb300, 4x800G, 4 per tor",
            "3 nodes, 8 gpus, 8x(2x200G), 2 sites, 400us",
            "1 node, 8 h100",
        ] {
            let (cluster, facts) = (Cluster::described(text).unwrap(), Facts::default());
            let test = Some(Test::Of(Kind::AllReduce));
            let point =
                Point { line: 1, bytes: 1 << 28, count: 1, us: 5e4, algbw: 5.0, busbw: 10.0, wrong: 0.0 };
            let model = Model::new(&cluster, &facts, test, CALL).unwrap();
            let case = Case::new(Some(model), (&cluster, &facts, &[]), test, &[point]);
            let scene = Scene::of(case.model.as_ref().unwrap()).unwrap();
            for suspect in TABLE.iter().filter(|suspect| (suspect.applies)(&case)) {
                let settings = scene.settings(&(suspect.simulate)(&case), 1 << 20);
                if let Err(error) = scenario::load("cluster-h100", &settings) {
                    panic!("{text}, {}: {error}", suspect.name);
                }
                names.insert(suspect.name);
            }
        }
        assert_eq!(names.len(), TABLE.len());
    }
}
