//! Patterns of collectives.

use crate::acceptance::case::{Case, Found, Part, Seen, Traffic, Values, less, more};
use crate::seen::counts;
use crate::site::Site;
use crate::traffic::{Flow, job, jobs, names, quoted, ring};
use lab::Run;
use model::{HostId, Time};

/// The 36 variants: the description of #27315 states no values, so these are our choice.
const PAYLOADS: [u32; 2] = [1024, 4096];
const SIZES: [u64; 3] = [64_000, 512_000, 2_000_000];
const QPS: [u32; 3] = [1, 4, 16];
/// A mode's name, and its change of the site's scheme.
const MODES: [(&str, Option<&str>); 2] = [("own scheme", None), ("spray", Some("scheme.rps={}"))];

/// Patterns over one leaf and two.
pub(crate) const A9: Case = Case {
    id: "a9",
    plan: "RoCEv2 collectives (sonic-mgmt #27315)",
    about: "11 patterns on 8 ports of a leaf and on 16 of two, each in 36 variants: 2 MTUs, 3 sizes, 3 numbers of QPs, the site's \
            scheme and random spraying; the worst variant counts, bandwidth at 2 MB per rank; spraying is reported alone, and \
            BMWG's target is a pod's",
    metrics: &[
        less("unfinished", "messages").ours(0.0),
        less("loss", "packets").ours(0.0),
        less("timeouts", "").ours(0.0),
        more("busbw", "% of line rate").reference(90.0),
        more("busbw-sprayed", "% of line rate"),
        more("algbw", "GB/s"),
        less("jct", "us"),
        less("reordered", "% of packets"),
        less("pauses", "frames"),
        less("ce", "packets"),
        less("cnps", "packets"),
    ],
    parts: patterns,
    rows: worst,
};

/// Jobs for a size and for further keys of a workload.
type Jobs = Box<dyn Fn(u64, &str) -> Vec<String>>;

/// A pattern: its name, and its jobs.
struct Pattern {
    name: &'static str,
    jobs: Jobs,
    /// It is one collective, whose size over its time is its algorithm bandwidth.
    collective: bool,
}

fn pattern(name: &'static str, jobs: impl Fn(u64, &str) -> Vec<String> + 'static) -> Pattern {
    Pattern { name, jobs: Box::new(jobs), collective: false }
}

fn collective(name: &'static str, job: impl Fn(u64, &str) -> String + 'static) -> Pattern {
    Pattern { collective: true, ..pattern(name, move |bytes, keys| vec![job(bytes, keys)]) }
}

/// A job of an all-to-all.
fn exchange(name: &str, hosts: &str, bytes: u64, keys: &str) -> String {
    format!("{{ name = {name:?}{keys}, all-to-all = {{ bytes = \"{bytes}B\", groups = [{hosts}] }} }}")
}

fn patterns(site: &Site) -> Result<Vec<Part>, String> {
    let leaf = site.leaf();
    if leaf.len() < 2 {
        return Err("a leaf has one host".to_owned());
    }
    let mut parts = Vec::new();
    let mut on = |place: &str, patterns: Result<Vec<Pattern>, String>| match patterns {
        Ok(patterns) => parts.extend(patterns.iter().flat_map(|pattern| variants(place, pattern))),
        Err(why) => parts.push(Part::not(place, &why)),
    };
    on("leaf", Ok(basic(site, leaf)));
    on(
        "two leaves",
        site.two_leaves().map(|(a, b)| {
            let both: Vec<HostId> = a.iter().zip(b).flat_map(|(a, b)| [*a, *b]).collect();
            [basic(site, &both), together(site, &both)].into_iter().flatten().collect()
        }),
    );
    if site.scenario.server.is_some() {
        parts.push(Part::not("halving-doubling", "ranks of servers are not ports"));
    }
    Ok(parts)
}

/// Ring, halving-doubling, all-to-all and incast.
fn basic(site: &Site, hosts: &[HostId]) -> Vec<Pattern> {
    let all = names(site, hosts);
    let (rings, exchanges) = (all.clone(), all);
    let (senders, receivers) = hosts.split_at(hosts.len() / 2);
    let flows: Vec<(HostId, HostId)> =
        senders.iter().flat_map(|from| receivers.iter().step_by(2).map(|to| (*from, *to))).collect();
    let fans: Vec<(String, String)> =
        flows.iter().map(|(from, to)| (quoted(&site.host(*from)), quoted(&site.host(*to)))).collect();
    let mut list = vec![
        collective("ring", move |bytes, keys| ring("ring", &rings, bytes, keys)),
        collective("all-to-all", move |bytes, keys| exchange("all-to-all", &exchanges, bytes, keys)),
        pattern("M to N", move |bytes, keys| {
            let flow = |(from, to): &(String, String)| {
                format!("{{ from = {from}, to = {to}, bytes = \"{}B\" }}", bytes.div_ceil(4))
            };
            let flows: Vec<String> = fans.iter().map(flow).collect();
            vec![format!("{{ name = \"fans\"{keys}, flows = {{ list = [{}] }} }}", flows.join(", "))]
        }),
    ];
    if site.scenario.server.is_none() && hosts.len().is_power_of_two() {
        // Without servers a rank has the number of its host.
        let ranks: Vec<String> = hosts.iter().map(|host| host.0.to_string()).collect();
        let ranks = ranks.join(", ");
        list.insert(1, collective("halving-doubling", move |bytes, keys| {
            format!(
                "{{ name = \"halving-doubling\"{keys}, collective = {{ kind = \"all-reduce\", algorithm = \"halving-doubling\", \
                 bytes = \"{bytes}B\", groups = [[{ranks}]] }} }}"
            )
        }));
    }
    list
}

/// Several jobs, background and phases.
fn together(site: &Site, hosts: &[HostId]) -> Vec<Pattern> {
    let half = |number: usize| -> Vec<HostId> { hosts.iter().skip(number).step_by(2).copied().collect() };
    // Hosts of two leaves alternate, so pairs of pairs give each job both leaves.
    let quarter = |number: usize| -> Vec<HostId> {
        hosts.chunks(2).skip(number).step_by(2).flatten().copied().collect()
    };
    let (first, second) = (names(site, &quarter(0)), names(site, &quarter(1)));
    let (all, phased) = (names(site, hosts), names(site, hosts));
    let flows: Vec<Flow> =
        half(0).into_iter().zip(half(1)).map(|(a, b)| Flow::new(a, b, 1_000_000).times(1_000)).collect();
    let noise = job(site, "noise", ", background = true", &flows);
    vec![
        pattern("two jobs", move |bytes, keys| {
            vec![ring("one", &first, bytes, keys), exchange("other", &second, bytes, keys)]
        }),
        pattern("background", move |bytes, keys| vec![ring("ring", &all, bytes, keys), noise.clone()]),
        pattern("phases", move |bytes, keys| {
            // The exchange begins while the ring goes on.
            let keyed = format!("{keys}, start = \"5us\"");
            vec![ring("ring", &phased, bytes, keys), exchange("exchange", &phased, bytes, &keyed)]
        }),
    ]
}

/// A size in labels.
fn kilobytes(bytes: u64) -> String {
    format!("{} kB", bytes / 1_000)
}

/// The 36 variants of a pattern.
fn variants(place: &str, pattern: &Pattern) -> Vec<Part> {
    let mut parts = Vec::new();
    for payload in PAYLOADS {
        for bytes in SIZES {
            for qps in QPS {
                for (mode, scheme) in MODES {
                    let keys = format!(", qp = {{ in-turn = {qps} }}");
                    let mut sets =
                        vec![jobs(&(pattern.jobs)(bytes, &keys)), format!("wire.payload={payload}B")];
                    sets.extend(scheme.map(str::to_owned));
                    let (size, number) = (kilobytes(bytes), if qps == 1 { "QP" } else { "QPs" });
                    let label = format!(
                        "{place}, {}, {mode}, {size}, {qps} {number}, {payload} B packets",
                        pattern.name
                    );
                    let size = pattern.collective.then_some(bytes);
                    let see = move |run: &Run| Ok(with_bandwidth(run, size));
                    parts.push(Part::Run(Traffic { label, sets, see: Box::new(see) }));
                }
            }
        }
    }
    parts
}

/// Counts, and the payload of the busiest host over its line rate: the bus bandwidth of rings and exchanges. Of a collective also its
/// size over its time, both as nccl-tests count them.
fn with_bandwidth(run: &Run, size: Option<u64>) -> Values {
    let plan = &run.checked.plan;
    let mut moved = vec![[0u64; 2]; plan.fabric.hosts()];
    let (mut start, mut end) = (Time::NEVER, Time::ZERO);
    for (message, record) in plan.messages.iter().zip(&run.outcome.messages) {
        if plan.jobs[usize::from(message.job)].background {
            continue;
        }
        let qp = &plan.qps[message.qp.index()];
        moved[qp.from.index()][0] += message.bytes;
        moved[qp.to.index()][1] += message.bytes;
        (start, end) = (start.min(record.start), end.max(record.received));
    }
    let mut values = counts(run);
    if end != Time::NEVER && end > start {
        let seconds = end.as_secs() - start.as_secs();
        let wire = &plan.wire;
        let payload = f64::from(wire.payload) / f64::from(wire.payload + wire.header + wire.gap);
        let share = |(host, both): (usize, &[u64; 2])| {
            let rate = plan.fabric.uplink(HostId(host as u32)).rate.bps() as f64 / 8.0 * payload;
            both[0].max(both[1]) as f64 / seconds / rate
        };
        values.extend(size.map(|size| ("algbw", size as f64 / 1e9 / seconds)));
        values.insert("jct", end.as_us() - start.as_us());
        values.insert("busbw", 100.0 * moved.iter().enumerate().map(share).fold(0.0, f64::max));
    }
    values
}

/// The worst variant of all under the site's own scheme, and for each pattern the worst bandwidth at the largest size.
fn worst(all: &[Seen]) -> Vec<Found> {
    let own: Vec<&Seen> = all.iter().filter(|seen| seen.label.contains(MODES[0].0)).collect();
    let mut found = Vec::new();
    for key in ["unfinished", "loss", "timeouts"] {
        if let Some((seen, value)) = most(key, &own, 1.0) {
            let label = if value > 0.0 { &seen.label } else { "all patterns" };
            found.push(Found { traffic: label.to_owned(), ..Found::of(seen, key, value) });
        }
    }
    let mut patterns: Vec<String> = Vec::new();
    let of_pattern = |seen: &Seen| seen.label.split(", ").take(2).collect::<Vec<_>>().join(", ");
    for seen in all.iter().filter(|seen| seen.values.is_ok()) {
        let name = of_pattern(seen);
        if !patterns.contains(&name) {
            patterns.push(name);
        }
    }
    let size = format!(" {},", kilobytes(SIZES[SIZES.len() - 1]));
    let [own_scheme, sprayed] = MODES.map(|(mode, _)| mode);
    let bandwidths =
        [("busbw", "busbw", own_scheme), ("busbw-sprayed", "busbw", sprayed), ("algbw", "algbw", own_scheme)];
    for (metric, key, mode) in bandwidths {
        for name in &patterns {
            let of = |seen: &&Seen| {
                of_pattern(seen) == *name && seen.label.contains(mode) && seen.label.contains(&size)
            };
            let mine: Vec<&Seen> = all.iter().filter(of).collect();
            if let Some((seen, value)) = most(key, &mine, -1.0) {
                found.push(Found { traffic: name.clone(), metric, value, command: seen.command.clone() });
            }
        }
    }
    let largest: Vec<&Seen> = own.into_iter().filter(|seen| seen.label.contains(&size)).collect();
    for key in ["jct", "reordered", "pauses", "ce", "cnps"] {
        found.extend(most(key, &largest, 1.0).map(|(seen, value)| {
            let traffic = seen.label.replace(&format!(" {own_scheme},"), "");
            Found { traffic, ..Found::of(seen, key, value) }
        }));
    }
    found
}

/// The part whose value has the most of this sign.
fn most<'a>(key: &str, of: &[&'a Seen], sign: f64) -> Option<(&'a Seen, f64)> {
    let known = of.iter().filter_map(|seen| Some((*seen, seen.get(key)?)));
    known.max_by(|(_, a), (_, b)| (sign * a).total_cmp(&(sign * b)))
}
