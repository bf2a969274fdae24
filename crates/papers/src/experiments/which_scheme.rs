//! Every scheme on every case: one table that says which to pick.
//!
//! No paper has it: each compares its own system with a few others on its own fabric. Here all stand on one fabric, with one
//! kind of recovery and control in NICs where the scheme does not bring its own; and each says what must change for it.
//!
//! A failure hits some flows and not others, so one draw of it says little: those cases are run at several seeds.

use crate::experiment::{Case, Experiment, Runs, out_of_order_of_accepted};
use crate::row::Row;
use lab::Run;
use results::text;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "which-scheme",
    source: "ours: the five systems and their rivals on one fabric",
    about: "every scheme on collectives, incast, web search traffic, slow and dead links; and what must change for it",
    cases,
    rows,
    curves: |_| Vec::new(),
    more,
    picture: |_| crate::picture::Picture::default(),
};

/// A scheme, and what it takes.
struct Entry {
    name: &'static str,
    sets: &'static [&'static str],
    /// What must change: nothing, switches, or NICs.
    changes: Changes,
    /// How.
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

const SCHEMES: [Entry; 15] = {
    use Changes::{Nics, Nothing, Switches};
    [
        entry("ecmp", &["scheme.ecmp={}"], Nothing, "nothing"),
        entry("rps", &["scheme.rps={}"], Switches, "switches that draw a port per packet"),
        entry("ar", &["scheme.ar={}"], Switches, "switches with adaptive routing per packet, as many have"),
        entry("drill", &["scheme.drill={}"], Switches, "switches"),
        entry("flowlet", &["scheme.flowlet={}"], Switches, "switches with flowlet tables, as many have"),
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
            "NICs that change the source port every so many bytes",
        ),
        entry("reps", &["scheme.reps={}"], Nics, "NICs that keep the source ports of good ACKs"),
        entry(
            "dlbf",
            &["scheme.dlbf={}", "nic.transport.sr-sack={}"],
            Nics,
            "NICs that choose paths, and name what is missing",
        ),
        entry("mp-rdma", &["scheme.mp-rdma={}"], Nics, "NICs of its own: recovery, window, paths"),
    ]
};

/// Seeds of the cases with failures; our choice: as few as have a median.
const SEEDS: [&str; 3] = ["seed=1", "seed=2", "seed=3"];

/// A case: what it is called, and what it changes; `quick` has less of it.
struct Setting {
    name: &'static str,
    /// What fails is drawn: it is run at all [`SEEDS`].
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

/// When the last flow was done, microseconds.
fn done(run: &Run) -> Option<f64> {
    run.summary.complete.then_some(run.summary.sim_time_us)
}

type Of = fn(&Run) -> Option<f64>;

/// Values of a scheme in a setting, one for each seed, in ascending order.
fn values(results: &Runs, scheme: &Entry, setting: &Setting, what: Of) -> Vec<f64> {
    let of = |seed: &&str| results.get(&label(scheme, setting, seed)).and_then(what);
    let mut values: Vec<f64> = setting.seeds().iter().filter_map(of).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The one in the middle.
fn median(values: &[f64]) -> Option<f64> {
    values.get(values.len() / 2).copied()
}

fn rows(results: &Runs, _: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for setting in &SETTINGS {
        for (scheme, seed) in
            SCHEMES.iter().flat_map(|scheme| setting.seeds().iter().map(move |s| (scheme, s)))
        {
            let label = label(scheme, setting, seed);
            let of = |what: Of| results.get(&label).and_then(what);
            let note = "no paper has it";
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

/// Schemes by cases: the P99 slowdown, and which is best.
fn more(results: &Runs) -> String {
    let mut text = String::new();
    for (title, what) in [
        (
            "P99 FCT slowdown (1 is a flow alone on an idle fabric; where links fail the median of three seeds, and their range; \
             * the best of those that leave NICs alone, and what is within 5 % of it):",
            tail as Of,
        ),
        ("mean FCT slowdown:", mean),
        ("packets that came out of order, % of those accepted:", out_of_order_of_accepted),
    ] {
        let header: Vec<String> = std::iter::once(String::new())
            .chain(SETTINGS.iter().map(|s| s.name.replacen(", ", "\n", 1)))
            .collect();
        let mut table = text::table(&header, 1);
        let alone = |scheme: &&Entry| scheme.changes != Changes::Nics;
        let middle = |scheme: &Entry, setting| median(&values(results, scheme, setting, what));
        let ranks = !std::ptr::fn_addr_eq(what, out_of_order_of_accepted as Of);
        let best = SETTINGS.iter().map(|setting| {
            let all = SCHEMES.iter().filter(alone).filter_map(|scheme| middle(scheme, setting));
            all.fold(f64::INFINITY, f64::min)
        });
        let best: Vec<f64> = best.collect();
        for scheme in &SCHEMES {
            let cell = |(setting, best): (&Setting, &f64)| {
                let values = values(results, scheme, setting, what);
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
    text.push_str("What must change for each:\n");
    for scheme in &SCHEMES {
        text.push_str(&format!("  {}: {}\n", scheme.name, scheme.how));
    }
    text
}
