//! Large fabrics: for every pair of tiers a matrix of links, the tiers' totals, and the hottest links.
//!
//! A row is a switch and a column one of its links, so that the matrices of fat trees and Dragonflies are as dense as those of
//! leaf-spine fabrics. Values are characters, because a page may hold the values of a hundred thousand links.

use super::super::frame::{Frame, short};
use super::fabric::{COUNTS, said, tiers};
use super::{Room, series};
use results::Results;
use serde::Serialize;
use std::collections::BTreeMap;

/// Most links in the list of the hottest, by load and by queue. Our choice.
const HOTTEST: usize = 20;
/// Fewest and most positions of the time slider. Our choice.
const BINS: (usize, usize) = (12, 60);
/// Digits of values, whose order is that of their codes. All may stand in a JSON string and in a `<script>`.
const DIGITS: &[u8; 64] = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/// The shape of a large fabric; runs on the same fabric share it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Shape {
    /// Names of nodes.
    names: Vec<String>,
    grids: Vec<Grid>,
    /// Number of rows with the least load that are not shown.
    hidden: usize,
}

/// The links between two tiers, or within one.
#[derive(Debug, PartialEq, Serialize)]
struct Grid {
    /// Role of the rows.
    rows_role: String,
    /// Role of the nodes at the other ends.
    ends_role: String,
    /// True if a row's own links lead up, away from the hosts; false for the hosts of a switch.
    up: bool,
    /// True if both ends are in one tier.
    flat: bool,
    rows: Vec<u32>,
    /// Label of each column.
    columns: Vec<String>,
    /// Node at the other end of each cell, by rows; `None` without a link.
    ends: Vec<Option<u32>>,
    /// Rate of the links; `None` if they differ.
    gbps: Option<f64>,
}

/// The load of a run on its fabric.
#[derive(Debug, Serialize)]
pub(super) struct Loads {
    /// Index in the list of shapes.
    shape: usize,
    /// Digits of a value: 1 or 2.
    digits: usize,
    /// The largest queue, bytes, at which the values of queues end. They are proportional to the square root of the length.
    queue_top: f64,
    /// By grid: values of the links that lead to the row, then of those that lead away from it.
    grids: Vec<[Values; 2]>,
    /// Totals by grid and direction.
    totals: Vec<[Totals; 2]>,
    hottest: Vec<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    over_time: Option<OverTime>,
}

/// Values of a grid's cells by rows, in one direction.
#[derive(Debug, Serialize)]
struct Values {
    busy: String,
    queue: String,
}

/// Totals of the links of one grid in one direction.
#[derive(Debug, Default, Serialize)]
struct Totals {
    links: usize,
    /// Mean and largest share of the time in which a link was busy.
    mean: Option<f64>,
    most: Option<f64>,
    max_queue: Option<f64>,
    /// Marks, drops, losses and pauses above 0.
    counts: BTreeMap<&'static str, u64>,
}

/// One of the hottest links.
#[derive(Debug, Serialize)]
struct Link {
    /// Grid, direction (1 is away from the row) and cell.
    at: Place,
    gbps: Option<f64>,
    /// What failures did to it.
    #[serde(skip_serializing_if = "String::is_empty")]
    failures: String,
    busy: Option<f64>,
    max_queue: Option<f64>,
    counts: BTreeMap<&'static str, u64>,
}

/// The recorded links over time, the hottest if there is not room for all.
#[derive(Debug, Serialize)]
struct OverTime {
    width_us: f64,
    bins: usize,
    /// Number of recorded links, of which some may be left out.
    recorded: usize,
    /// The largest queue, bytes.
    queue_top: f64,
    at: Vec<Place>,
    /// One digit for each bin of each link.
    load: Vec<String>,
    queue: Vec<String>,
}

/// A share between 0 and 1 in `digits` digits.
fn written(share: f64, digits: usize) -> String {
    let most = 64_u32.pow(digits as u32) - 1;
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let code = (share * f64::from(most)).round() as u32;
    (0..digits).rev().map(|i| char::from(DIGITS[(code >> (6 * i)) as usize % 64])).collect()
}

/// One direction of a link: its row in `links.parquet`.
type Row = usize;

/// A cell: the node at its other end, and the rows of its links, towards the row and away from it.
#[derive(Clone, Copy, Debug)]
struct Cell {
    end: usize,
    rows: [Option<Row>; 2],
}

/// Nodes and links as the table has them.
struct Net<'a> {
    names: Vec<&'a str>,
    roles: Vec<&'a str>,
    tiers: Vec<u32>,
    ends: Vec<Option<(usize, usize)>>,
}

impl<'a> Net<'a> {
    fn of(table: Frame<'a>) -> Self {
        let (from, to, role) = (table.texts("from"), table.texts("to"), table.texts("role"));
        let mut number: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut names, mut roles) = (Vec::new(), Vec::new());
        for (name, role) in from.iter().zip(&role) {
            number.entry(name).or_insert_with(|| {
                names.push(*name);
                roles.push(*role);
                names.len() - 1
            });
        }
        let ends: Vec<Option<(usize, usize)>> =
            from.iter().zip(&to).map(|(a, b)| Some((*number.get(a)?, *number.get(b)?))).collect();
        let tiers = tiers(&roles, &ends);
        Net { names, roles, tiers, ends }
    }

    /// Datacentre, group or pod of a node, by its name: `pod3-edge1`.
    fn part(&self, node: usize) -> &'a str {
        self.names[node].split_once('-').map_or("", |(part, _)| part)
    }

    /// The rows of every grid with their cells, by tier.
    fn grids(&self) -> BTreeMap<Key<'a>, BTreeMap<usize, Vec<Cell>>> {
        let mut grids: BTreeMap<Key<'a>, BTreeMap<usize, Vec<Cell>>> = BTreeMap::new();
        let mut back: BTreeMap<(usize, usize), Vec<Row>> = BTreeMap::new();
        for (row, ends) in self.ends.iter().enumerate() {
            if let Some((a, b)) = *ends {
                back.entry((b, a)).or_default().push(row);
            }
        }
        let mut used: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for (row, ends) in self.ends.iter().enumerate() {
            let Some((a, b)) = *ends else { continue };
            let (low, high) = (self.tiers[a], self.tiers[b]);
            // The row is the lower node; for hosts, it is their switch; within a tier, both ends have rows.
            if low == 0 || (high > 0 && low > high) {
                continue;
            }
            let nth = used.entry((a, b)).or_default();
            let returned = back.get(&(a, b)).and_then(|rows| rows.get(*nth)).copied();
            *nth += 1;
            let near = low == high && self.part(a) == self.part(b);
            let key = (low.min(high), low.max(high), self.roles[a], self.roles[b], !near);
            grids
                .entry(key)
                .or_default()
                .entry(a)
                .or_default()
                .push(Cell { end: b, rows: [returned, Some(row)] });
        }
        for cells in grids.values_mut().flat_map(BTreeMap::values_mut) {
            cells.sort_by_key(|cell| (cell.end, cell.rows[1]));
        }
        grids
    }
}

/// Order of grids: lower and upper tier, roles of rows and other ends, and whether the ends are in different parts of the fabric.
type Key<'a> = (u32, u32, &'a str, &'a str, bool);

/// Measures of links.
struct Measures {
    busy: Vec<f64>,
    queue: Vec<f64>,
    /// Mean over the run, and rate without failures.
    gbps: Vec<f64>,
    nominal: Vec<f64>,
    failures: Vec<String>,
    counts: Vec<(&'static str, Vec<u64>)>,
}

impl Measures {
    fn of(table: Frame<'_>) -> Self {
        let finite = |name: &str| -> Vec<f64> {
            table.reals(name).into_iter().map(|x| if x.is_finite() { x } else { 0.0 }).collect()
        };
        Measures {
            busy: finite("busy_share").into_iter().map(|x| x.min(1.0)).collect(),
            queue: finite("max_queue_bytes"),
            gbps: table.reals("rate_gbps"),
            nominal: table.nominal_rates(),
            failures: table.texts("failures").into_iter().map(said).collect(),
            counts: COUNTS.map(|name| (name, table.counts(name))).into(),
        }
    }

    fn counts_of(&self, rows: &[Row]) -> BTreeMap<&'static str, u64> {
        let sum = |of: &[u64]| rows.iter().map(|&row| of[row]).fold(0, u64::saturating_add);
        self.counts.iter().map(|(name, of)| (*name, sum(of))).filter(|(_, n)| *n > 0).collect()
    }

    fn totals(&self, rows: &[Row]) -> Totals {
        let most = |of: &[f64]| rows.iter().map(|&row| of[row]).fold(0.0, f64::max);
        Totals {
            links: rows.len(),
            mean: short(rows.iter().map(|&row| self.busy[row]).sum::<f64>() / rows.len() as f64),
            most: short(most(&self.busy)),
            max_queue: short(most(&self.queue)),
            counts: self.counts_of(rows),
        }
    }
}

/// The matrices of a run. Their shape is added to `shapes` unless it is already there.
pub(super) fn of(run: &Results, room: Room, shapes: &mut Vec<Shape>) -> Option<Loads> {
    let table = Frame::new(run.table("links")?);
    let net = Net::of(table);
    let measures = Measures::of(table);
    let mut grids = net.grids();
    let totals = grids.values().map(|rows| [0, 1].map(|way| measures.totals(&links(rows, way)))).collect();
    let hidden = cut(&mut grids, &measures, room.links);
    let cells: usize = grids.values().flat_map(BTreeMap::values).map(Vec::len).sum();
    let digits = if cells * 8 <= room.link_cells { 2 } else { 1 };
    let queue_top = measures.queue.iter().copied().fold(1.0, f64::max);
    let shape = shape(&net, &grids, &measures, hidden);
    let values = |(rows, grid): (&BTreeMap<usize, Vec<Cell>>, &Grid)| {
        [0, 1].map(|way| values(rows, grid.columns.len(), way, (&measures, queue_top, digits)))
    };
    let places = places(&grids, &shape);
    let loads = Loads {
        shape: 0,
        digits,
        queue_top,
        grids: grids.values().zip(&shape.grids).map(values).collect(),
        totals,
        hottest: hottest(&measures, &places),
        over_time: over_time(run, &measures, &places, room.link_cells),
    };
    let known = shapes.iter().position(|other| *other == shape);
    let shape = known.unwrap_or_else(|| {
        shapes.push(shape);
        shapes.len() - 1
    });
    Some(Loads { shape, ..loads })
}

/// Rows of the table for all links of a grid in one direction.
fn links(rows: &BTreeMap<usize, Vec<Cell>>, way: usize) -> Vec<Row> {
    let mut all: Vec<Row> = rows.values().flatten().filter_map(|cell| cell.rows[way]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Leaves out the rows with the least load if there are more than `most` cells. Returns their number.
fn cut(grids: &mut BTreeMap<Key<'_>, BTreeMap<usize, Vec<Cell>>>, measures: &Measures, most: usize) -> usize {
    let all: usize = grids.values().flat_map(BTreeMap::values).map(Vec::len).sum();
    let mut hidden = 0;
    if all <= most {
        return 0;
    }
    for rows in grids.values_mut() {
        let load = |cells: &Vec<Cell>| {
            cells
                .iter()
                .flat_map(|cell| cell.rows)
                .flatten()
                .map(|row| measures.busy[row])
                .fold(0.0, f64::max)
        };
        let mut order: Vec<(usize, f64)> = rows.iter().map(|(node, cells)| (*node, load(cells))).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        // Every grid keeps the same share of its rows, and at least one.
        let keep = (rows.len() * most / all).max(1);
        for (node, _) in order.into_iter().skip(keep) {
            rows.remove(&node);
            hidden += 1;
        }
    }
    hidden
}

fn shape(
    net: &Net<'_>,
    grids: &BTreeMap<Key<'_>, BTreeMap<usize, Vec<Cell>>>,
    measures: &Measures,
    hidden: usize,
) -> Shape {
    let mut names: Vec<String> = Vec::new();
    let mut number: BTreeMap<usize, u32> = BTreeMap::new();
    let mut name = |node: usize| {
        *number.entry(node).or_insert_with(|| {
            names.push(net.names[node].to_owned());
            names.len() as u32 - 1
        })
    };
    let grids = grids
        .iter()
        .map(|((_, _, rows_role, ends_role, _), rows)| {
            let wide = rows.values().map(Vec::len).max().unwrap_or(0);
            let ends: Vec<Option<u32>> = rows
                .values()
                .flat_map(|cells| (0..wide).map(|c| cells.get(c).map(|cell| cell.end)))
                .map(|end| end.map(&mut name))
                .collect();
            let (first, last) = rows
                .values()
                .flatten()
                .filter_map(|cell| cell.rows[1])
                .map(|row| measures.nominal[row])
                .fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
            let tier = |node: Option<usize>| node.map_or(0, |node| net.tiers[node]);
            let row = rows.keys().next().copied();
            let end = rows.values().flatten().next().map(|cell| cell.end);
            Grid {
                rows_role: (*rows_role).to_owned(),
                ends_role: (*ends_role).to_owned(),
                up: tier(end) > 0,
                flat: tier(end) == tier(row),
                rows: rows.keys().map(|node| name(*node)).collect(),
                columns: (0..wide).map(|c| label(net, rows, c)).collect(),
                ends,
                gbps: if first.total_cmp(&last).is_eq() { short(first) } else { None },
            }
        })
        .collect();
    Shape { names, grids, hidden }
}

/// Label of a column: the name that all its ends share, or the part of the name behind the pod, else the number of the column.
fn label(net: &Net<'_>, rows: &BTreeMap<usize, Vec<Cell>>, column: usize) -> String {
    let ends: Vec<&str> =
        rows.values().filter_map(|cells| cells.get(column)).map(|cell| net.names[cell.end]).collect();
    let common = |of: fn(&str) -> &str| {
        let first = of(ends.first()?);
        ends.iter().all(|name| of(name) == first).then(|| first.to_owned())
    };
    let whole = common(|name| name);
    let short = || common(|name| name.split_once('-').map_or(name, |(_, rest)| rest));
    whole.or_else(short).unwrap_or_else(|| column.to_string())
}

fn values(
    rows: &BTreeMap<usize, Vec<Cell>>,
    wide: usize,
    way: usize,
    (measures, queue_top, digits): (&Measures, f64, usize),
) -> Values {
    let mut values = Values { busy: String::new(), queue: String::new() };
    for cells in rows.values() {
        for c in 0..wide {
            let row = cells.get(c).and_then(|cell| cell.rows[way]);
            let of = |of: &[f64]| row.map_or(0.0, |row| of[row]);
            values.busy.push_str(&written(of(&measures.busy), digits));
            values.queue.push_str(&written((of(&measures.queue) / queue_top).sqrt(), digits));
        }
    }
    values
}

/// Grid, direction and cell.
type Place = (usize, usize, usize);

/// Cells of each row of the table. A link within a tier stands in two cells, first in that of its own row.
type Places = BTreeMap<Row, Vec<Place>>;

fn places(grids: &BTreeMap<Key<'_>, BTreeMap<usize, Vec<Cell>>>, shape: &Shape) -> Places {
    let mut places = Places::new();
    for way in [1, 0] {
        for (g, (rows, grid)) in grids.values().zip(&shape.grids).enumerate() {
            for (r, cells) in rows.values().enumerate() {
                for (c, row) in cells.iter().enumerate().filter_map(|(c, cell)| Some((c, cell.rows[way]?))) {
                    places.entry(row).or_default().push((g, way, r * grid.columns.len() + c));
                }
            }
        }
    }
    places
}

/// The links with the highest load, and those with the longest queues.
fn hottest(measures: &Measures, places: &Places) -> Vec<Link> {
    let by = |of: &[f64]| {
        let mut rows: Vec<Row> = places.keys().copied().filter(|&row| of[row] > 0.0).collect();
        rows.sort_by(|a, b| of[*b].total_cmp(&of[*a]).then(a.cmp(b)));
        rows.truncate(HOTTEST);
        rows
    };
    let mut rows = by(&measures.busy);
    rows.extend(by(&measures.queue));
    rows.sort_unstable();
    rows.dedup();
    let link = |row: Row| Link {
        at: places[&row][0],
        gbps: short(measures.gbps[row]),
        failures: measures.failures[row].clone(),
        busy: short(measures.busy[row]),
        max_queue: short(measures.queue[row]),
        counts: measures.counts_of(&[row]),
    };
    rows.into_iter().map(link).collect()
}

/// The recorded links over time, with about `digits` digits at most.
fn over_time(run: &Results, measures: &Measures, places: &Places, digits: usize) -> Option<OverTime> {
    let table = Frame::new(run.table("series")?);
    let width = table.reals("width_us").first().copied().filter(|w| *w > 0.0)?;
    // The number of a link is its row in `links.parquet`.
    let mut tracks: Vec<(Row, std::ops::Range<usize>)> = series::tracks(table)
        .into_iter()
        .filter(|track| track.kind == "link")
        .map(|track| (track.id as Row, track.rows))
        .filter(|(row, _)| places.contains_key(row))
        .collect();
    let recorded = tracks.len();
    let length = tracks.iter().map(|(_, rows)| rows.len()).max()?;
    let at_most = digits / (2 * BINS.0);
    tracks.sort_by(|(a, _), (b, _)| measures.busy[*b].total_cmp(&measures.busy[*a]).then(a.cmp(b)));
    tracks.truncate(at_most);
    let most = (digits / (2 * tracks.len().max(1))).clamp(BINS.0, BINS.1);
    let merged = length.div_ceil(most).max(1);
    let (loads, queues) = (table.reals("utilisation"), table.reals("max_queue_bytes"));
    let rows = tracks.iter().flat_map(|(_, rows)| rows.clone());
    let queue_top = rows.map(|at| queues[at]).filter(|x| x.is_finite()).fold(1.0, f64::max);
    let parts = |rows: &std::ops::Range<usize>| -> Vec<std::ops::Range<usize>> {
        rows.clone().step_by(merged).map(|start| start..(start + merged).min(rows.end)).collect()
    };
    let load = |(_, rows): &(Row, std::ops::Range<usize>)| -> String {
        let mean = |part: std::ops::Range<usize>| loads[part.clone()].iter().sum::<f64>() / part.len() as f64;
        parts(rows).into_iter().map(|part| written(mean(part), 1)).collect()
    };
    let queue = |(_, rows): &(Row, std::ops::Range<usize>)| -> String {
        let longest = |part: std::ops::Range<usize>| queues[part].iter().copied().fold(0.0, f64::max);
        parts(rows).into_iter().map(|part| written((longest(part) / queue_top).sqrt(), 1)).collect()
    };
    Some(OverTime {
        width_us: width * merged as f64,
        bins: length.div_ceil(merged),
        recorded,
        queue_top,
        at: tracks.iter().map(|(row, _)| places[row][0]).collect(),
        load: tracks.iter().map(load).collect(),
        queue: tracks.iter().map(queue).collect(),
    })
}
