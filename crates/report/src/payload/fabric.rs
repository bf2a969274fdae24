//! Nodes, links and their load, for the whole run and over time. Larger fabrics are matrices ([`super::matrix`]).

use super::super::frame::{Frame, short};
use super::{Room, series};
use results::Results;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most hosts of a fabric that is drawn. Our choice, by the resolution of a screen.
const HOSTS_DRAWN: usize = 64;
/// Most links of a fabric that is drawn, each direction counted. Our choice: a fat tree of 54 hosts has 324, and servers with a
/// NIC for each of 8 GPUs soon have more than an eye can follow.
const LINKS_DRAWN: usize = 400;
/// Counts of links.
pub(super) const COUNTS: [&str; 4] = ["marks", "drops", "lost", "pauses"];
/// Fewest and most positions of the time slider. Our choice.
const BINS: (usize, usize) = (12, 120);

/// The shape of a fabric; runs on the same fabric share it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Shape {
    /// Names of nodes.
    name: Vec<String>,
    role: Vec<String>,
    /// Number of links to the nearest host; 0 for a host.
    tier: Vec<u32>,
    /// Datacentre, group or pod; may be empty.
    part: Vec<String>,
    /// Sending node of each directed link that is drawn.
    from: Vec<u32>,
    to: Vec<u32>,
    /// Rate of each link without failures.
    gbps: Vec<Option<f64>>,
    /// Number of directed links with the least load that are not drawn.
    hidden: usize,
}

/// The load of a run on its fabric: a number for each link of its shape.
#[derive(Debug, Serialize)]
pub(super) struct Loads {
    /// Index in the list of shapes.
    shape: usize,
    /// Share of the simulated time in which the wire was busy.
    busy: Vec<Option<f64>>,
    /// Longest queue of data, bytes.
    max_queue: Vec<Option<f64>>,
    /// Share of the simulated time in which its sender was paused; empty if none was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paused: Vec<Option<f64>>,
    /// Marks, drops, losses and pauses, unless all are 0.
    counts: BTreeMap<&'static str, Vec<u64>>,
    /// Links with failures: mean rate, Gb/s, and what happened to the link.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    failing: BTreeMap<usize, (Option<f64>, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    over_time: Option<OverTime>,
}

/// The recorded links over time.
#[derive(Debug, Serialize)]
struct OverTime {
    width_us: f64,
    bins: usize,
    /// Indices of links in the shape.
    link: Vec<usize>,
    /// For each link and bin, the load in thousandths of what the link could send.
    load: Vec<Vec<u32>>,
    /// Longest queue in the bin, in units of 100 B.
    queue: Vec<Vec<u32>>,
}

/// True if the run's fabric is too large for a drawing.
pub(super) fn is_large(run: &Results) -> bool {
    let Some(table) = run.table("links").map(Frame::new) else { return false };
    let ends = table.texts("from").into_iter().zip(table.texts("role"));
    let hosts: BTreeSet<&str> = ends.filter(|(_, role)| *role == "host").map(|(name, _)| name).collect();
    hosts.len() > HOSTS_DRAWN || table.rows() > LINKS_DRAWN
}

/// The fabric of a run. Its shape is added to `shapes` unless it is already there.
pub(super) fn of(run: &Results, room: Room, shapes: &mut Vec<Shape>) -> Option<Loads> {
    let table = Frame::new(run.table("links")?);
    if table.rows() == 0 {
        return None;
    }
    let drawing = Drawing::of(table, room.links);
    let drawn = |column: &str| -> Vec<f64> {
        let all = table.reals(column);
        drawing.rows.iter().map(|&row| all[row]).collect()
    };
    let mut counts = BTreeMap::new();
    for column in COUNTS {
        let all = table.counts(column);
        let of: Vec<u64> = drawing.rows.iter().map(|&row| all[row]).collect();
        if of.iter().any(|n| *n > 0) {
            counts.insert(column, of);
        }
    }
    let (rates, failures) = (table.reals("rate_gbps"), table.texts("failures"));
    let end = run.summary.sim_time_us.max(1e-6);
    let mut paused: Vec<Option<f64>> = drawn("paused_us").into_iter().map(|us| short(us / end)).collect();
    if paused.iter().flatten().all(|share| *share <= 0.0) {
        paused.clear();
    }
    let failing = drawing.rows.iter().enumerate().filter(|(_, row)| !failures[**row].is_empty());
    let loads = Loads {
        shape: 0,
        failing: failing.map(|(link, &row)| (link, (short(rates[row]), said(failures[row])))).collect(),
        busy: drawn("busy_share").into_iter().map(|x| short(x.min(1.0))).collect(),
        max_queue: drawn("max_queue_bytes").into_iter().map(short).collect(),
        paused,
        counts,
        over_time: over_time(run, &drawing, room.link_cells),
    };
    let known = shapes.iter().position(|shape| *shape == drawing.shape);
    let shape = known.unwrap_or_else(|| {
        shapes.push(drawing.shape);
        shapes.len() - 1
    });
    Some(Loads { shape, ..loads })
}

/// Failures of a link, with the page's unit.
pub(super) fn said(failures: &str) -> String {
    failures.replace(" us", " µs")
}

/// A shape, and the row of `links.parquet` of each of its links.
struct Drawing {
    shape: Shape,
    rows: Vec<usize>,
}

impl Drawing {
    fn of(table: Frame<'_>, most: usize) -> Self {
        let (from, to, role) = (table.texts("from"), table.texts("to"), table.texts("role"));
        let rate = table.nominal_rates();
        let mut number: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut names, mut roles): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        for row in 0..table.rows() {
            number.entry(from[row]).or_insert_with(|| {
                names.push(from[row]);
                roles.push(role[row]);
                names.len() - 1
            });
        }
        let ends: Vec<Option<(usize, usize)>> =
            from.iter().zip(&to).map(|(a, b)| Some((*number.get(a)?, *number.get(b)?))).collect();
        let tiers = tiers(&roles, &ends);
        let mut shape = Shape::empty();
        for (i, name) in names.iter().enumerate() {
            shape.add(name, roles[i], tiers[i]);
        }
        shape.find_parts(&ends.iter().flatten().copied().collect::<Vec<_>>());
        let mut rows: Vec<usize> = (0..table.rows()).filter(|&row| ends[row].is_some()).collect();
        if rows.len() > most {
            let busy = table.reals("busy_share");
            rows.sort_by(|&a, &b| busy[b].total_cmp(&busy[a]).then(a.cmp(&b)));
            shape.hidden = rows.split_off(most).len();
            rows.sort_unstable();
        }
        for &row in &rows {
            if let Some((a, b)) = ends[row] {
                shape.from.push(a as u32);
                shape.to.push(b as u32);
                shape.gbps.push(short(rate[row]));
            }
        }
        Drawing { shape, rows }
    }
}

impl Shape {
    fn empty() -> Self {
        Shape {
            name: Vec::new(),
            role: Vec::new(),
            tier: Vec::new(),
            part: Vec::new(),
            from: Vec::new(),
            to: Vec::new(),
            gbps: Vec::new(),
            hidden: 0,
        }
    }

    fn add(&mut self, name: &str, role: &str, tier: u32) {
        self.name.push(name.to_owned());
        self.role.push(role.to_owned());
        self.tier.push(tier);
        // Names of switches begin with their datacentre, group or pod: `pod3-edge1`.
        let part = name.split_once('-').filter(|_| role != "host").map_or("", |(part, _)| part);
        self.part.push(part.to_owned());
    }

    /// Assigns each host to the part of its switch.
    fn find_parts(&mut self, links: &[(usize, usize)]) {
        for &(a, b) in links.iter().filter(|(a, _)| self.tier[*a] == 0) {
            self.part[a] = self.part[b].clone();
        }
    }
}

/// Number of links to the nearest host, for each node.
pub(super) fn tiers(roles: &[&str], ends: &[Option<(usize, usize)>]) -> Vec<u32> {
    let mut beside: Vec<Vec<usize>> = vec![Vec::new(); roles.len()];
    for (a, b) in ends.iter().flatten() {
        beside[*a].push(*b);
        beside[*b].push(*a);
    }
    let mut tiers: Vec<Option<u32>> = roles.iter().map(|role| (*role == "host").then_some(0)).collect();
    let mut queue: VecDeque<usize> = (0..roles.len()).filter(|&i| tiers[i].is_some()).collect();
    while let Some(node) = queue.pop_front() {
        let next = tiers[node].map(|tier| tier + 1);
        for &other in &beside[node] {
            if tiers[other].is_none() {
                tiers[other] = next;
                queue.push_back(other);
            }
        }
    }
    tiers.into_iter().map(|tier| tier.unwrap_or(1)).collect()
}

/// The recorded links over time, with about `cells` numbers at most.
fn over_time(run: &Results, drawing: &Drawing, cells: usize) -> Option<OverTime> {
    let table = Frame::new(run.table("series")?);
    let tracks: BTreeMap<usize, std::ops::Range<usize>> = series::tracks(table)
        .into_iter()
        .filter(|track| track.kind == "link")
        .map(|track| (track.id as usize, track.rows))
        .collect();
    let width = table.reals("width_us").first().copied().filter(|w| *w > 0.0)?;
    let length = tracks.values().map(ExactSizeIterator::len).max()?;
    // The number of a link is its row in `links.parquet`.
    let drawn: Vec<(usize, usize)> =
        drawing.rows.iter().copied().enumerate().filter(|(_, row)| tracks.contains_key(row)).collect();
    let most = (cells / (2 * drawn.len().max(1))).clamp(BINS.0, BINS.1);
    let merged = length.div_ceil(most).max(1);
    let bins = length.div_ceil(merged);
    let (loads, queues) = (table.reals("utilisation"), table.reals("max_queue_bytes"));
    let mut all = OverTime {
        width_us: width * merged as f64,
        bins,
        link: Vec::new(),
        load: Vec::new(),
        queue: Vec::new(),
    };
    for (link, row) in drawn {
        let (mut load, mut queue) = (vec![0.0_f64; bins], vec![0.0_f64; bins]);
        for (i, at) in tracks[&row].clone().enumerate() {
            // The last bin may combine fewer bins.
            let of = merged.min(length - i / merged * merged) as f64;
            load[i / merged] += 1000.0 * loads[at] / of;
            queue[i / merged] = queue[i / merged].max(queues[at] / 100.0);
        }
        all.link.push(link);
        // A frame counts in the bin in which it starts, so a full link may exceed its rate in a bin.
        all.load.push(load.into_iter().map(|x| x.round().min(1000.0) as u32).collect());
        all.queue.push(queue.into_iter().map(|x| x.round() as u32).collect());
    }
    (!all.link.is_empty()).then_some(all)
}
