//! The answer, in sentences made from the numbers.

use super::Group;
use super::headline::{Measure, slowest_group};
use super::question::same_work;
use results::stats::{mean, share};
use results::text::{count, number, percent};
use results::{Results, Summary};

/// The answer. The first sentence answers the question, and the others give reasons.
pub(super) fn answer(groups: &[Group<'_>]) -> Vec<String> {
    match groups {
        [] => Vec::new(),
        [group] => one(group),
        several => compared(several),
    }
}

/// The answer for a single group.
fn one(group: &Group<'_>) -> Vec<String> {
    let runs = &group.runs;
    let average = |measure: &dyn Fn(&Results) -> Option<f64>| {
        runs.iter().map(|run| measure(run)).collect::<Option<Vec<f64>>>().and_then(|v| mean(&v))
    };
    let (all, done) = (total(runs, |s| s.flows.count), total(runs, |s| s.flows.finished));
    let time = average(&|run| Some(run.summary.sim_time_us)).map_or_else(String::new, number);
    let several = runs.len() > 1;
    let of_seeds = if several { format!(" of {} seeds", runs.len()) } else { String::new() };
    let whole = group.complete();
    let flows = match (done == all, whole) {
        (true, true) if all == 1 => "The flow finished".to_owned(),
        (true, true) => format!("All {} flows{of_seeds} finished", count(all)),
        (false, true) => {
            format!(
                "{} of {} flows{of_seeds} finished; the others are background flows",
                count(done),
                count(all)
            )
        }
        _ => {
            let (run, was) = if several { ("The runs", "were") } else { ("The run", "was") };
            let how = match runs.iter().all(|run| run.summary.complete || run.summary.stopped()) {
                true => format!("{run} {was} stopped by [stop] after {time} µs, as configured:"),
                false if several => {
                    format!("Some runs are NOT complete: after {time} µs,")
                }
                false => format!("The run is NOT complete: after {time} µs,"),
            };
            format!("{how} {} of {} flows{of_seeds} had finished", count(done), count(all))
        }
    };
    let most = average(&|run| Some(run.summary.flows.slowdown?.max));
    let slow = match (most, average(&|run| Some(run.summary.flows.slowdown?.p50))) {
        (Some(most), _) if all == 1 => format!("; it took {} times its ideal", number(most)),
        (Some(most), Some(middle)) => {
            let means = if several { " (means over seeds)" } else { "" };
            format!(
                "; the slowest took {} times its ideal, the median {}{means}",
                number(most),
                number(middle)
            )
        }
        _ => String::new(),
    };
    let mut text = vec![format!("{flows}{slow}.")];
    if let Some(us) = average(&slowest_group) {
        text.push(format!("The slowest group finished after {} µs.", number(us)));
    }
    text.push(disorder(&group.runs));
    text
}

/// A count over all these runs.
fn total(runs: &[&Results], count: impl Fn(&Summary) -> u64) -> u64 {
    runs.iter().map(|run| count(&run.summary)).fold(0, u64::saturating_add)
}

/// Reordering and what came of it, in a sentence: shares are those of all runs' packets, counts are means over runs.
fn disorder(runs: &[&Results]) -> String {
    let n = |count: fn(&Summary) -> u64| total(runs, count);
    let count = |n: u64| match runs.len() {
        0 | 1 => count(n),
        several => number(n as f64 / several as f64),
    };
    let per_run = if runs.len() > 1 { " per run" } else { "" };
    let (sent, late) = (n(|s| s.packets.sent), n(|s| s.packets.out_of_order));
    let (again, spurious) = (n(|s| s.packets.retransmitted), n(|s| s.packets.spurious));
    let (nacks, blocked) = (n(|s| s.control.nack), n(|s| s.control.blocked));
    let dropped = n(|s| s.packets.dropped_buffer + s.packets.dropped_link + s.packets.dropped_scheme);
    let lost = if dropped > 0 {
        format!(
            "{} of the packets {} lost; ",
            percent(share(dropped, sent)),
            if dropped == 1 { "was" } else { "were" }
        )
    } else {
        String::new()
    };
    let order = if late > 0 {
        format!("{lost}{} of the packets arrived out of order", percent(share(late, sent)))
    } else if dropped == 0 {
        "Every packet arrived in order".to_owned()
    } else if n(|s| s.packets.accepted) == 0 {
        "No packet arrived".to_owned()
    } else {
        format!("{lost}the others arrived in order")
    };
    let feedback = match (nacks, blocked) {
        (0, _) => String::new(),
        (_, 0) => format!("; receivers sent {} NACKs{per_run}", count(nacks)),
        (_, b) if b == nacks => {
            format!("; receivers sent {} NACKs{per_run}, all of which switches blocked", count(nacks))
        }
        (_, b) => {
            format!(
                "; receivers sent {} NACKs{per_run}, of which switches blocked {}",
                count(nacks),
                count(b)
            )
        }
    };
    let resent = match (again, spurious) {
        (0, _) => "; there were no retransmissions".to_owned(),
        (_, 0) => {
            format!(
                "; {} of the packets were retransmissions, none of them spurious",
                percent(share(again, sent))
            )
        }
        (a, s) if a == s => format!(
            "; {} of the packets were retransmissions, all of them spurious",
            percent(share(again, sent))
        ),
        (a, s) => format!(
            "; {} of the packets were retransmissions, {} of these spurious",
            percent(share(again, sent)),
            percent(share(s, a))
        ),
    };
    format!("{order}{feedback}{resent}.")
}

/// The fastest group, its lead, and its reordering and retransmissions.
fn compared(groups: &[Group<'_>]) -> Vec<String> {
    let measures: [(&str, Measure); 2] =
        [("slowest group", slowest_group), ("P99 of the FCT", |r| Some(r.summary.flows.fct_us?.p99))];
    let shown = |us: f64| format!("{} µs", number(us));
    let value = |group: &Group<'_>, measure: Measure| {
        let all = group.runs.iter().map(|run| run.summary.complete.then(|| measure(run)).flatten());
        all.collect::<Option<Vec<f64>>>().and_then(|v| mean(&v))
    };
    let incomplete: Vec<&Group<'_>> = groups.iter().filter(|g| !g.complete()).collect();
    let mut text = Vec::new();
    let alike = same_work(groups);
    if !alike {
        text.push("These runs have different workloads, so none is called the fastest.".to_owned());
    }
    for (what, measure) in measures.into_iter().filter(|_| alike) {
        let mut order: Vec<(&Group<'_>, f64)> =
            groups.iter().filter_map(|group| Some((group, value(group, measure)?))).collect();
        if order.len() + incomplete.len() < groups.len() || order.len() < 2 {
            continue;
        }
        order.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (Some(&(first, best)), Some(&(last, worst))) = (order.first(), order.last()) else { continue };
        if worst <= best * 1.02 {
            text.push(format!("All are within 2 %: {what} between {} and {}.", shown(best), shown(worst)));
        } else {
            let times = worst / best;
            let lead = if times < 1.995 {
                format!("it takes {} % less time than", number(100.0 * (1.0 - best / worst)))
            } else {
                format!("it is {} times as fast as", number(times))
            };
            text.push(format!(
                "{} is fastest: {lead} {} ({what} {} against {}).",
                first.name,
                last.name,
                shown(best),
                shown(worst)
            ));
            if order.len() > 2 {
                let (next, value) = order[1];
                let by = match value / best {
                    times if times < 1.0005 => "the same".to_owned(),
                    times if times < 1.995 => format!("{} % more", number(100.0 * (times - 1.0))),
                    times => format!("{} times as long", number(times)),
                };
                text.push(format!("Next is {} with {} ({by}).", next.name, shown(value)));
            }
        }
        text.extend(
            (!first.runs.is_empty())
                .then(|| format!("Under {}: {}", first.name, lower(&disorder(&first.runs)))),
        );
        break;
    }
    let ended =
        |group: &&Group<'_>| group.runs.iter().all(|run| run.summary.complete || run.summary.stopped());
    let (stopped, failed): (Vec<&Group<'_>>, Vec<&Group<'_>>) = incomplete.into_iter().partition(ended);
    for (how, which) in [("Stopped by [stop], as configured", stopped), ("NOT complete", failed)] {
        if !which.is_empty() {
            let names: Vec<&str> = which.iter().map(|group| group.name.as_str()).collect();
            text.push(format!("{how}: {}.", names.join(", ")));
        }
    }
    text
}

/// A sentence with a lower-case first letter, to follow a colon.
fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().collect::<String>() + chars.as_str())
}
