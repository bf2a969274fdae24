//! Incast, and shares of its senders.

use crate::acceptance::case::{Case, Part, Traffic, Values, each, less, more};
use crate::seen::{counts, only};
use crate::site::Site;
use crate::traffic::{Flow, job, jobs, without_control, without_marks};
use lab::Run;
use model::{Rate, Time};

/// Time for which flows run alone, and the end of the run. Our choice.
const JOIN: Time = Time::from_us(500);
const END: Time = Time::from_us(4_000);
/// Time over which rates are averaged. Our choice.
const WINDOW: Time = Time::from_us(200);
/// Distance from the fair rate, as BMWG has it.
const NEAR: f64 = 0.1;

/// Incast, and flows that join others.
pub(crate) const A11: Case = Case {
    id: "a11",
    plan: "BMWG 2, incast and convergence",
    about: "incasts of 1 MB from 2 to 64 hosts, beside the time at line rate; M flows, and M more after 0.5 ms: the time until all are \
            within 10 % of the fair rate over 0.2 ms",
    metrics: &[
        less("unfinished", "messages").ours(0.0),
        less("loss", "packets").reference(0.0),
        less("jct-ratio", ""),
        less("fair-after", "us"),
    ],
    parts: incasts,
    rows: each,
};

fn incasts(site: &Site) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    for n in [2, 4, 8, 16, 32, 64] {
        let (receiver, senders) = site.incast(n)?;
        if senders.len() < n {
            break;
        }
        let flows: Vec<Flow> = senders.iter().map(|from| Flow::new(*from, receiver, 1_000_000)).collect();
        let ideal = n as f64 * 1e6 / site.payload(site.rate(receiver), Time::from_us(1)) as f64;
        let see = move |run: &Run| {
            let mut values = only(counts(run), &["unfinished", "loss"]);
            let ends = run.outcome.messages.iter().map(|record| record.received);
            values.insert("jct-ratio", ends.max().unwrap_or_default().as_us() / ideal);
            Ok(values)
        };
        let sets = vec![jobs(&[job(site, "incast", "", &flows)])];
        parts.push(Part::Run(Traffic { label: format!("{n}:1"), sets, see: Box::new(see) }));
    }
    for flows in [4, 16] {
        parts.push(joined(site, flows)?);
    }
    Ok(parts)
}

/// `flows` flows to one host, joined by as many.
fn joined(site: &Site, flows: usize) -> Result<Part, String> {
    let (receiver, senders) = site.incast(2 * flows)?;
    let rate = site.rate(receiver);
    let flow = |(i, start): (usize, Time)| Flow {
        start,
        ..Flow::new(senders[i % senders.len()], receiver, site.payload(rate, END))
    };
    let first = (0..flows).map(|i| (i, Time::ZERO));
    let second = (flows..2 * flows).map(|i| (i, JOIN));
    let all: Vec<Flow> = first.chain(second).map(flow).collect();
    let sets = vec![
        jobs(&[job(site, "flows", ", qp = \"per-message\"", &all)]),
        format!("stop={{ after = \"{END}\" }}"),
        "record={ flows = \"all\", links = 0, width = \"10us\", bins = 1024 }".to_owned(),
    ];
    let see = move |run: &Run| Ok(convergence(run, rate));
    Ok(Part::Run(Traffic { label: format!("{flows} flows, then {}", 2 * flows), sets, see: Box::new(see) }))
}

/// Time from the second half's start until all are near the fair rate; infinite if they never are.
fn convergence(run: &Run, rate: Rate) -> Values {
    let recording = &run.outcome.recording;
    let width = recording.width.ps().max(1);
    let window = WINDOW.ps().div_ceil(width) as usize;
    let fair = rate.bps() as f64 / 8.0 / recording.qps.len().max(1) as f64;
    let seconds = (window as u64 * width) as f64 / 1e12;
    let near = |first: usize| {
        recording.qps.iter().all(|(_, bins)| {
            let bytes: u64 = bins[first..first + window].iter().map(|bin| bin.bytes).sum();
            (bytes as f64 / seconds / fair - 1.0).abs() <= NEAR
        })
    };
    let begin = JOIN.ps().div_ceil(width) as usize;
    let found = (begin..(recording.bins + 1).saturating_sub(window)).find(|first| near(*first));
    let after =
        found.map_or(f64::INFINITY, |first| ((first + window) as u64 * width) as f64 / 1e6 - JOIN.as_us());
    Values::from([("fair-after", after)])
}

/// Each sender of an incast gets its share.
pub(crate) const A14: Case = Case {
    id: "a14",
    plan: "Congestion test (Habana)",
    about: "up to 8:1 on a leaf, 8 MB from each, under PFC alone, as the plan's NICs have no rate control (our reading); 9 of 75 GB/s per sender are 96 % of its share",
    metrics: &[
        less("unfinished", "messages").plan(0.0),
        less("loss", "packets").plan(0.0),
        more("least-share", "% of 1/N").plan(96.0),
        less("pauses", "frames"),
    ],
    parts: |site| {
        let (receiver, senders) = site.rack_incast()?;
        let bytes = 8_000_000;
        let flows: Vec<Flow> = senders.iter().map(|from| Flow::new(*from, receiver, bytes)).collect();
        let fair = site.payload(site.rate(receiver), Time::from_us(1)) as f64 / senders.len() as f64;
        let see = move |run: &Run| Ok(shares(run, bytes as f64 / fair));
        let label = format!("{}:1", senders.len());
        let mut sets = without_marks(site);
        sets.extend([without_control(), jobs(&[job(site, "incast", "", &flows)])]);
        Ok(vec![Part::Run(Traffic { label, sets, see: Box::new(see) })])
    },
    rows: each,
};

/// The least share of a sender whose bytes take `fair` us at its share of line rate.
fn shares(run: &Run, fair: f64) -> Values {
    let last = run.outcome.messages.iter().map(|record| record.received).max().unwrap_or_default();
    let mut values = only(counts(run), &["unfinished", "loss", "pauses"]);
    values.insert("least-share", 100.0 * fair / last.as_us().max(1e-9));
    values
}
