//! The explanation of a step as text.

use crate::step::{Leg, Message, Piece, Spent, Step};
use crate::timeline::Line;
use crate::words::{time_table, timeline};
use results::text::{bytes, count, number, percent, wrapped};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Smallest share of the step that puts a piece into the sentence. Our choice.
const WORTH_SAYING: f64 = 0.05;
/// Most pieces in the sentence. Our choice.
const IN_SENTENCE: usize = 4;
/// Legs share a line up to the time of the step divided by this number. Our choice.
const LONG: u64 = 12;
/// Most names in a line for several legs; the others are summed. Our choice.
const NAMED: usize = 3;
/// A leg shorter than the step divided by this number shares a line with its neighbours. Our choice.
const SHORT: u64 = 200;
/// Most lines of the path: about half a screen. Our choice.
const LINES: usize = 24;

/// The name of an operation with its kind of parallelism, such as `dp all-reduce`.
fn named(dimension: &str, name: &str) -> String {
    match (dimension, name) {
        ("", "") => "messages".into(),
        ("", name) => name.into(),
        (dimension, name) => format!("{dimension} {name}"),
    }
}

/// Name of a piece in the table.
fn label(piece: &Piece) -> String {
    let of = named(&piece.dimension, &piece.name);
    match piece.spent {
        Spent::Compute => "computation".into(),
        Spent::Bubble if piece.dimension.is_empty() => "computation beyond that of the busiest GPU".into(),
        Spent::Bubble => "bubble: computation beyond that of the busiest GPU".into(),
        Spent::Messages => format!("{of}: messages, alone on the fabric"),
        Spent::Late => format!("{of}: messages, longer than alone"),
        Spent::Copies => format!("{of}: copies over NVLink, costs of steps"),
        Spent::Scheduled => "waiting for a start that the workload sets".into(),
    }
}

/// Name of a piece in the sentence.
fn phrase(piece: &Piece) -> String {
    let of = named(&piece.dimension, &piece.name);
    match piece.spent {
        Spent::Compute => "computation".into(),
        Spent::Bubble if piece.dimension.is_empty() => "computation beyond that of the busiest GPU".into(),
        Spent::Bubble => "the bubble".into(),
        Spent::Messages => format!("messages of {of}"),
        Spent::Late => format!("messages of {of} being slower than alone on the fabric"),
        Spent::Copies => format!("NVLink copies of {of}"),
        Spent::Scheduled => "waiting for a start that the workload sets".into(),
    }
}

/// The explanation in one sentence.
pub(crate) fn answer(step: &Step) -> String {
    let share = |ps: u64| ps as f64 / step.ps.max(1) as f64;
    let parts: Vec<String> = step
        .account
        .iter()
        .filter(|piece| share(piece.ps) >= WORTH_SAYING)
        .take(IN_SENTENCE)
        .map(|piece| format!("{} {}", percent(share(piece.ps)), phrase(piece)))
        .collect();
    let parts = match parts.as_slice() {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        parts => parts.concat(),
    };
    format!(
        "Step {} of {} took {} us. Its critical path is {parts}.",
        step.step,
        step.job,
        number(step.ps as f64 / 1e6)
    )
}

/// The whole text.
pub(crate) fn page(step: &Step) -> String {
    let rows: Vec<(String, f64, String)> =
        step.account.iter().map(|piece| (label(piece), piece.ps as f64 / 1e6, count(piece.times))).collect();
    let mut text = format!(
        "{}\n\n{}",
        wrapped(&step.answer),
        time_table(["where the step went", "us", "share", "times"], &rows, step.ps as f64 / 1e6)
    );
    for message in &step.messages {
        text.push('\n');
        text += &slow(message);
    }
    text.push('\n');
    text + &timeline(&step.lines, step.ps as f64 / 1e6, "what the step waited for")
}

/// Sentences about a message that made the path long.
fn slow(message: &Message) -> String {
    let mut text = format!(
        "The slowest message of {} from {} to {} is flow {}: it took {} us, alone on the fabric {} us.",
        named(&message.dimension, &message.name),
        message.from,
        message.to,
        message.flow,
        number(message.fct_us),
        number(message.ideal_fct_us)
    );
    let _ = write!(text, " Messages between these hosts cost the step up to {} us.", number(message.late_us));
    if let Some(link) = &message.link {
        let _ = write!(
            text,
            " The busiest of the {} links between the hosts is {} -> {}: busy {} of the run, the median link {}, with a queue of \
             up to {}",
            link.of_links,
            link.from,
            link.to,
            percent(link.busy_share),
            percent(link.median_busy_share),
            bytes(link.max_queue_bytes)
        );
        if link.lost > 0 {
            let _ = write!(text, " and {} lost packets", count(link.lost));
        }
        text.push('.');
        for failure in &link.failures {
            let _ = write!(text, " {failure}.");
        }
    }
    wrapped(&text) + "\n"
}

/// The path in some lines: legs that follow each other share a line if they are short.
pub(crate) fn lines(path: &[Leg]) -> Vec<Line> {
    let (Some(first), Some(last)) = (path.first(), path.last()) else { return Vec::new() };
    // The shortest leg with a line of its own, ps.
    let mut short = (last.to_ps - first.from_ps) / SHORT;
    loop {
        let groups = groups(path, short);
        if groups.len() <= LINES {
            return groups.into_iter().map(line).collect();
        }
        short = (short * 2).max(1);
    }
}

/// Legs of at least `short` ps alone, and the legs between two of them together, as long as [`LONG`] allows.
fn groups(path: &[Leg], short: u64) -> Vec<&[Leg]> {
    let is_short = |leg: &Leg| leg.to_ps - leg.from_ps < short;
    let all = path.iter().map(|leg| leg.to_ps - leg.from_ps).sum::<u64>();
    let mut begun = path.first().map_or(0, |leg| leg.from_ps);
    path.chunk_by(|a, b| {
        let joins = is_short(a) && is_short(b) && a.to_ps - begun < all / LONG;
        if !joins {
            begun = b.from_ps;
        }
        joins
    })
    .collect()
}

fn line(legs: &[Leg]) -> Line {
    let (from, to) = (legs.first().map_or(0, |leg| leg.from_ps), legs.last().map_or(0, |leg| leg.to_ps));
    let what = match legs {
        [leg] => one(leg),
        _ => several(legs),
    };
    Line { from_us: from as f64 / 1e6, to_us: to as f64 / 1e6, what }
}

/// One leg in words.
fn one(leg: &Leg) -> String {
    let mut text = match leg.kind.as_str() {
        "compute" => format!("rank {} computes {}", leg.rank, leg.name),
        "scheduled" => return format!("rank {} waits for a start that the workload sets", leg.rank),
        _ => format!("rank {} waits for {}", leg.rank, named(&leg.dimension, &leg.name)),
    };
    match (leg.micro_batch, leg.layer) {
        (_, Some(bucket)) if leg.dimension == "dp" => {
            let _ = write!(text, " {bucket}");
        }
        (Some(micro), _) => {
            let _ = write!(text, ", micro-batch {micro}");
        }
        (None, _) => {}
    }
    match leg.messages {
        0 => {}
        1 => text += ": one message",
        n => {
            let _ = write!(text, ": {} messages in a row", count(n));
        }
    }
    if let Some(flow) = leg.flow.filter(|_| leg.late_ps > 0) {
        let late = number(leg.late_ps as f64 / 1e6);
        let _ = write!(text, ", {late} us longer than alone (flow {flow})");
    }
    text
}

/// Several legs in words: their number, ranks, and times by what they are.
fn several(legs: &[Leg]) -> String {
    let mut by: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for leg in legs {
        *by.entry((&leg.dimension, &leg.name)).or_default() += leg.to_ps - leg.from_ps;
    }
    let mut by: Vec<_> = by.into_iter().collect();
    by.sort_by_key(|(_, ps)| std::cmp::Reverse(*ps));
    let mut parts: Vec<String> = by
        .iter()
        .take(NAMED)
        .map(|((dimension, name), ps)| format!("{} {}", named(dimension, name), number(*ps as f64 / 1e6)))
        .collect();
    let rest: u64 = by.iter().skip(NAMED).map(|(_, ps)| ps).sum();
    if rest > 0 {
        parts.push(format!("other {}", number(rest as f64 / 1e6)));
    }
    let ranks = || legs.iter().map(|leg| leg.rank);
    let (least, most) = (ranks().min().unwrap_or(0), ranks().max().unwrap_or(0));
    let of = if least == most { format!("rank {least}") } else { format!("ranks {least} to {most}") };
    format!("{of}, {} parts: {} us", count(legs.len() as u64), parts.join(", "))
}
