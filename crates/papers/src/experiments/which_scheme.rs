//! Every scheme in every setting: one table that helps to choose a scheme.
//!
//! No paper has this table: each compares its own system with a few others on its own fabric. Here all schemes run on
//! one fabric. They share loss recovery and congestion control, unless a scheme has its own. The table also lists the
//! equipment that each scheme needs.
//!
//! A failure affects only some flows, so a single draw is not representative: settings with failures run with several
//! seeds.

use crate::experiment::{Case, Experiment, Runs, out_of_order_of_accepted};
use crate::row::Row;
use lab::Run;
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "which-scheme",
    source: "ours: the five systems and their rivals on one fabric",
    about: "every scheme on collectives, incast, web search traffic, slow and failed links, and the equipment that it needs",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

/// A scheme, and the equipment that it needs.
struct Entry {
    name: &'static str,
    sets: &'static [&'static str],
    /// Equipment that must change.
    changes: Changes,
    /// Description of the change.
    how: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Changes {
    Nothing,
    Switches,
    Nics,
}

const fn entry(
    name: &'static str,
    sets: &'static [&'static str],
    changes: Changes,
    how: &'static str,
) -> Entry {
    Entry { name, sets, changes, how }
}

/// Queues of a NIC made for spraying at 200 Gb/s: one bandwidth-delay product of the longest path (13.1 us), marks from 0.2 to
/// 0.8 of it, and trimmed packets, as Ultra Ethernet has them (section 3.6.17; `docs/nics/ultra-ethernet.md`).
const CUTS: &str = "switch={buffer=\"32MB\",pfc=\"off\",cut=\"on\",queue-cap=\"326kB\",queue-cap-to-hosts=\"489kB\",\
    classes=[{kinds=[\"ack\",\"nack\",\"cnp\",\"control\",\"trimmed\"]},{kinds=[\"data\"]}],\
    ecn={at-rate=[{rate=\"200Gbps\",kmin=\"65kB\",kmax=\"261kB\",pmax=1.0}]}}";
/// The same with DCP's headers, which share the link with data.
const HEADERS: &str = "switch={buffer=\"32MB\",pfc=\"off\",cut={frame=\"57B\"},queue-cap=\"326kB\",\
    classes=[{kinds=[\"trimmed\",\"control\",\"cnp\",\"nack\",\"signal\"],weight=1},{kinds=[\"data\",\"ack\"],weight=1}],\
    ecn={at-rate=[{rate=\"200Gbps\",kmin=\"65kB\",kmax=\"261kB\",pmax=1.0}]}}";
/// uet-htsim's timer: 15 us and the time of six full queues.
const TIMER: &str = "nic.timeout={fixed=\"93us\"}";

const SCHEMES: [Entry; 23] = {
    use Changes::{Nics, Nothing, Switches};
    [
        entry("ecmp", &["scheme.ecmp={}"], Nothing, "nothing"),
        entry("rps", &["scheme.rps={}"], Switches, "switches that draw a port per packet"),
        entry(
            "ar",
            &["scheme.ar={}"],
            Switches,
            "switches with adaptive routing per packet, a common feature",
        ),
        entry(
            "ars, sonic",
            &["scheme.ars={}"],
            Switches,
            "switches with ARS or DLB, a common feature; SAI's defaults, flowlets",
        ),
        entry(
            "ars, sonic, packets",
            &["scheme.ars={mode=\"packet-quality\"}"],
            Switches,
            "switches with ARS or DLB, a common feature; SAI's defaults, per packet",
        ),
        entry(
            "ars, spectrum",
            &["scheme.ars={profile=\"spectrum\"}"],
            Switches,
            "NVIDIA's Spectrum switches; grades are ours",
        ),
        entry("drill", &["scheme.drill={}"], Switches, "switches"),
        entry("flowlet", &["scheme.flowlet={}"], Switches, "switches with flowlet tables, a common feature"),
        entry("conga", &["scheme.conga={}"], Switches, "switches, ToRs that measure paths"),
        entry("conweave", &["scheme.conweave={}"], Switches, "ToRs that put packets in order"),
        entry("themis", &["scheme.themis={}"], Switches, "ToRs that read PSNs and block NACKs"),
        entry(
            "flowcut, full, by pauses",
            &["scheme.flowcut={deployment=\"full\",backpressure=\"class\"}"],
            Switches,
            "switches with tables of flows; a drain pauses the whole host by PFC",
        ),
        entry(
            "flowcut, full",
            &["scheme.flowcut={deployment=\"full\"}"],
            Nics,
            "switches with tables of flows, and NICs that obey XOFF and XON per flow",
        ),
        entry("flowcut, nic", &["scheme.flowcut={}"], Nics, "NICs that choose source ports by RTT"),
        entry(
            "flowcell",
            &["scheme.flowcell={}"],
            Nics,
            "NICs that change the source port after a fixed number of bytes",
        ),
        entry("reps", &["scheme.reps={}"], Nics, "NICs that keep the source ports of good ACKs"),
        entry(
            "dlbf",
            &["scheme.dlbf={}", "nic.transport.sr-sack={}"],
            Nics,
            "NICs that choose paths, and report which packets are missing",
        ),
        entry(
            "mp-rdma",
            &["scheme.mp-rdma={}"],
            Nics,
            "NICs with its own recovery, window and choice of paths",
        ),
        entry(
            "ethereal",
            &["scheme.ethereal={}"],
            Nothing,
            "a collective library that splits messages, and paths that it can choose",
        ),
        entry(
            "uec, nscc",
            &["scheme.entropy-mixed={}", "nic.transport.uec={}", "nic.congestion.nscc={}", CUTS, TIMER],
            Nics,
            "NICs of Ultra Ethernet, and switches that trim packets",
        ),
        entry(
            "uec, rccc and nscc",
            &[
                "scheme.entropy-mixed={}",
                "nic.transport.uec={}",
                "nic.congestion.rccc={nscc={}}",
                CUTS,
                TIMER,
            ],
            Nics,
            "NICs of Ultra Ethernet, and switches that trim packets",
        ),
        entry(
            "mrc",
            &["scheme.mrc={}", "nic.transport.mrc={}", "nic.congestion.nscc={}", CUTS, TIMER],
            Nics,
            "NICs of MRC, and switches that trim packets",
        ),
        entry(
            "dcp, nscc",
            &["scheme.ar={}", "nic.transport.dcp={}", "nic.congestion.nscc={}", HEADERS],
            Nics,
            "NICs of DCP, and switches that trim packets and route adaptively",
        ),
    ]
};

/// Seeds of the settings with failures. Our choice: the smallest number that has a median.
const SEEDS: [&str; 3] = ["seed=1", "seed=2", "seed=3"];

/// A setting: its name and its changes to the scenario, in full size and scaled down.
struct Setting {
    name: &'static str,
    /// True if the failures are drawn at random, so that the setting runs with all [`SEEDS`].
    drawn: bool,
    full: &'static [&'static str],
    quick: &'static [&'static str],
}

const SETTINGS: [Setting; 7] = [
    Setting {
        name: "permutation",
        drawn: false,
        full: &[],
        quick: &["workload.0.permutation.bytes=\"1MiB\""],
    },
    Setting {
        name: "all-to-all",
        drawn: false,
        full: &["workload=[{all-to-all={bytes=\"4MiB\",groups=\"all\",window=16}}]"],
        quick: &["workload=[{all-to-all={bytes=\"512KiB\",groups=\"all\",window=16}}]"],
    },
    Setting {
        name: "ring all-reduce",
        drawn: false,
        full: &["workload=[{all-reduce={bytes=\"16MiB\",groups=\"drawn\",group-size=32}}]"],
        quick: &["workload=[{all-reduce={bytes=\"2MiB\",groups=\"drawn\",group-size=32}}]"],
    },
    Setting {
        name: "incast, 64 to 1",
        drawn: false,
        full: &["workload=[{incast={senders=64,bytes=\"1MiB\"}}]"],
        quick: &["workload=[{incast={senders=64,bytes=\"128KiB\"}}]"],
    },
    Setting {
        name: "web search, load 0.6",
        drawn: false,
        full: &["workload=[{poisson={sizes=\"web-search\",load=0.6,duration=\"4ms\"}}]"],
        quick: &["workload=[{poisson={sizes=\"web-search\",load=0.6,duration=\"300us\"}}]"],
    },
    Setting {
        name: "permutation, slow links",
        drawn: true,
        full: &["failure=[{random=0.02,rate=0.1}]"],
        quick: &["failure=[{random=0.02,rate=0.1}]", "workload.0.permutation.bytes=\"1MiB\""],
    },
    Setting {
        name: "permutation, links die",
        drawn: true,
        full: &["failure=[{random=4,at=\"100us\"}]", "routing.detection=\"100us\""],
        quick: &[
            "failure=[{random=4,at=\"10us\"}]",
            "routing.detection=\"100us\"",
            "workload.0.permutation.bytes=\"1MiB\"",
        ],
    },
];

impl Setting {
    fn seeds(&self) -> &'static [&'static str] {
        if self.drawn { &SEEDS } else { &SEEDS[..1] }
    }
}

fn label(scheme: &Entry, setting: &Setting, seed: &str) -> String {
    match setting.drawn {
        true => format!("{}, {seed}: {}", setting.name, scheme.name),
        false => format!("{}: {}", setting.name, scheme.name),
    }
}

fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for setting in &SETTINGS {
        for (scheme, seed) in
            SCHEMES.iter().flat_map(|scheme| setting.seeds().iter().map(move |s| (scheme, s)))
        {
            let case = Case::new(label(scheme, setting, seed), "which-scheme", scheme.sets).and(*seed);
            let sets = if quick { setting.quick } else { setting.full };
            cases.push(sets.iter().fold(case, |case, set| case.and(*set)));
        }
    }
    cases
}

fn mean(run: &Run) -> Option<f64> {
    Some(run.summary.flows.slowdown?.mean)
}

fn tail(run: &Run) -> Option<f64> {
    Some(run.summary.flows.slowdown?.p99)
}

/// Time at which the last flow was acknowledged, us. A run may last longer: a receiver that grants credit goes on for a while.
fn done(run: &Run) -> Option<f64> {
    let last = run.outcome.messages.iter().map(|message| message.acked).max()?;
    run.summary.complete.then_some(last.as_us())
}

type Of = fn(&Run) -> Option<f64>;

/// Values of a scheme in a setting, one for each seed, in ascending order.
fn values(runs: &Runs, scheme: &Entry, setting: &Setting, what: Of) -> Vec<f64> {
    let of = |seed: &&str| runs.get(&label(scheme, setting, seed)).and_then(what);
    let mut values: Vec<f64> = setting.seeds().iter().filter_map(of).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The median.
fn median(values: &[f64]) -> Option<f64> {
    values.get(values.len() / 2).copied()
}

fn rows(runs: &Runs, _: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for setting in &SETTINGS {
        for (scheme, seed) in
            SCHEMES.iter().flat_map(|scheme| setting.seeds().iter().map(move |s| (scheme, s)))
        {
            let label = label(scheme, setting, seed);
            let of = |what: Of| runs.get(&label).and_then(what);
            let note = "no paper has this comparison";
            for (metric, unit, value) in [
                ("mean FCT slowdown", "x", of(mean)),
                ("P99 FCT slowdown", "x", of(tail)),
                ("last flow done", "us", of(done)),
                ("out of order", "% of accepted", of(out_of_order_of_accepted)),
            ] {
                rows.push(Row::ours(&label, metric, unit, value, note).tabled());
            }
        }
    }
    rows
}

/// Tables of schemes by settings. In tables of slowdowns a star marks the best schemes that need no change of NICs.
fn more(runs: &Runs) -> String {
    let mut text = String::new();
    for (title, what) in [
        (
            "P99 FCT slowdown (1 is a flow alone on an idle fabric; with failures, the median and the range of three seeds; \
             * marks the best scheme without changes to NICs, and those within 5 % of it):",
            tail as Of,
        ),
        ("mean FCT slowdown:", mean),
        ("packets out of order, % of the packets accepted:", out_of_order_of_accepted),
    ] {
        let header: Vec<String> = std::iter::once(String::new())
            .chain(SETTINGS.iter().map(|s| s.name.replacen(", ", "\n", 1)))
            .collect();
        let mut table = text::table(&header, 1);
        let alone = |scheme: &&Entry| scheme.changes != Changes::Nics;
        let middle = |scheme: &Entry, setting| median(&values(runs, scheme, setting, what));
        let ranks = !std::ptr::fn_addr_eq(what, out_of_order_of_accepted as Of);
        let best = SETTINGS.iter().map(|setting| {
            let all = SCHEMES.iter().filter(alone).filter_map(|scheme| middle(scheme, setting));
            all.fold(f64::INFINITY, f64::min)
        });
        let best: Vec<f64> = best.collect();
        for scheme in &SCHEMES {
            let cell = |(setting, best): (&Setting, &f64)| {
                let values = values(runs, scheme, setting, what);
                let Some(middle) = median(&values) else { return text::maybe(None) };
                let star = if ranks && alone(&scheme) && middle <= best * 1.05 { "*" } else { "" };
                let number = format!("{star}{}", text::number(middle));
                match values[..] {
                    [least, .., most] => {
                        format!("{number} ({}-{})", text::number(least), text::number(most))
                    }
                    _ => number,
                }
            };
            let cells = SETTINGS.iter().zip(&best).map(cell);
            table.add_row(std::iter::once(scheme.name.to_owned()).chain(cells));
        }
        text.push_str(&format!("{title}\n{table}\n\n"));
    }
    text.push_str("Equipment that each scheme needs:\n");
    for scheme in &SCHEMES {
        text.push_str(&format!("  {}: {}\n", scheme.name, scheme.how));
    }
    text
}
