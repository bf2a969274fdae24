//! Failures under a collective.

use crate::acceptance::case::{Case, Found, Part, Seen, Traffic, each, less};
use crate::seen::{completion, counts};
use crate::site::Site;
use crate::traffic::{jobs, names, quoted, ring};
use lab::Run;
use model::{HostId, Time};
use std::collections::BTreeSet;

/// Buffer of the all-reduce, bytes. Our choice in place of 1 GB: the failure's cost does not grow with it.
const BYTES: u64 = 16_000_000;
/// Runs without a failure, each with a seed of its own.
const STEADY: u64 = 5;

/// An uplink and a spine fail.
pub(crate) const A15: Case = Case {
    id: "a15",
    plan: "BMWG 6.2, failures under an all-reduce",
    about: "a ring all-reduce of 16 MB across two leaves; an uplink, then a spine, fails in its middle for good; the times without a \
            failure are those of 5 seeds, and a failure within their longest has zero impact",
    metrics: &[
        less("unfinished", "messages").ours(0.0),
        less("loss-time", "us"),
        less("overhead", "%"),
        less("beyond-steady", "%").reference(0.0),
    ],
    parts: failing,
    rows: overhead,
};

fn failing(site: &Site) -> Result<Vec<Part>, String> {
    let (a, b) = site.two_leaves()?;
    let hosts: Vec<HostId> = a.iter().zip(b).flat_map(|(a, b)| [*a, *b]).collect();
    let ring = ring("ring", &names(site, &hosts), BYTES, "");
    let part = |label: &str, more: Vec<String>| {
        let see = |run: &Run| {
            let mut values = counts(run);
            values.extend(completion(run, "ring").map(|us| ("us", us)));
            let first = run.outcome.losses.iter().map(|loss| loss.first).min();
            let last = run.outcome.losses.iter().map(|loss| loss.last).max();
            let span = first.zip(last).map_or(0.0, |(first, last)| last.as_us() - first.as_us());
            values.insert("loss-time", span);
            Ok(values)
        };
        let sets = [vec![jobs(std::slice::from_ref(&ring))], more].concat();
        Part::Run(Traffic { label: label.to_owned(), sets, see: Box::new(see) })
    };
    let mut parts: Vec<Part> =
        (1..=STEADY).map(|seed| part(&format!("steady {seed}"), vec![format!("seed={seed}")])).collect();
    // Half of the time at line rate.
    let line = site.payload(site.rate(hosts[0]), Time::from_us(1)).max(1);
    let at = Time::from_us(BYTES / line);
    let fabric = &site.plan.fabric;
    let uplinks = site.uplinks();
    let above: BTreeSet<_> = uplinks.iter().map(|(_, link)| link.to).collect();
    match uplinks.first() {
        Some((_, link)) if uplinks.len() > 1 => {
            let ends = [fabric.name(link.from), fabric.name(link.to)].map(quoted).join(", ");
            let uplink = format!("failure=[{{ links = [[{ends}]], random = 1, at = \"{at}\" }}]");
            parts.push(part("an uplink fails", vec![uplink]));
            if above.len() > 1 {
                let spine = quoted(fabric.name(link.to));
                parts.push(part(
                    "a spine fails",
                    vec![format!("failure=[{{ switch = {spine}, at = \"{at}\" }}]")],
                ));
            } else {
                parts.push(Part::not("a spine fails", "the leaf has one spine above it"));
            }
        }
        _ => parts.push(Part::not("an uplink fails", "the leaf has one uplink at most")),
    }
    Ok(parts)
}

fn overhead(all: &[Seen]) -> Vec<Found> {
    let (steady, failed) = all.split_at(all.len().min(STEADY as usize));
    let mut times: Vec<f64> = steady.iter().filter_map(|seen| seen.get("us")).collect();
    times.sort_by(f64::total_cmp);
    let (Some(longest), Some(middle)) = (times.last(), times.get(times.len() / 2)) else { return each(all) };
    let of = |seen: &Seen| {
        let mut found = Vec::new();
        for key in ["unfinished", "loss-time"] {
            found.extend(seen.get(key).map(|value| Found::of(seen, key, value)));
        }
        if let Some(us) = seen.get("us") {
            found.push(Found::of(seen, "overhead", 100.0 * (us / middle - 1.0)));
            found.push(Found::of(seen, "beyond-steady", 100.0 * (us / longest - 1.0).max(0.0)));
        }
        found
    };
    failed.iter().flat_map(of).collect()
}
