//! The answer, in sentences made from the numbers.

use super::Group;
use super::headline::{Measure, slowest_group};
use super::question::same_work;
use results::stats::{margin, mean, share};
use results::summary::Steps;
use results::text::{count, number, percent};
use results::{Results, Summary};

/// The answer. The first sentence answers the question, and the others give reasons. The lead of the fastest group is over the
/// group named `baseline`, or over the slowest one if there is no such group.
pub(crate) fn answer(groups: &[Group<'_>], baseline: &str) -> Vec<String> {
    match groups {
        [] => Vec::new(),
        [group] => one(group),
        several => compared(several, baseline),
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
    let ended = runs.iter().all(|run| run.summary.ending == "finished");
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
        // All flows finished, and something else went wrong.
        (_, false) if ended => {
            let dropped = runs.iter().any(|run| run.summary.packets.dropped_buffer > 0);
            let why = match dropped {
                true => "a lossless fabric dropped packets for lack of buffer",
                false => "the books of packets do not balance",
            };
            let run = if several { "Some runs are" } else { "The run is" };
            format!(
                "{run} NOT complete, because {why}; {} of {} flows{of_seeds} finished",
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
                false => match &runs[0].summary.ended_by {
                    Some(by) => format!(
                        "The run is NOT complete: after {time} µs, {} had no retries left to reach {};",
                        by.from, by.to
                    ),
                    None => format!("The run is NOT complete: after {time} µs,"),
                },
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
    let mut text = trainings(runs);
    text.push(format!("{flows}{slow}."));
    if let Some(us) = average(&slowest_group) {
        text.push(format!("The slowest group finished after {} µs.", number(us)));
    }
    text.push(disorder(&group.runs));
    text
}

/// Most jobs with steps that have sentences. Our choice.
const JOBS: usize = 3;

/// What jobs with steps would see, see [`training`].
fn trainings(runs: &[&Results]) -> Vec<String> {
    let Some(first) = runs.first() else { return Vec::new() };
    let jobs = first.summary.jobs.iter().filter_map(|(name, job)| Some((name, job.steps.as_ref()?)));
    jobs.take(JOBS).flat_map(|(name, steps)| training(runs, name, steps)).collect()
}

/// What a job with steps would see: time of a step, tokens per second, exposed communication and why, and the bandwidth of its
/// collectives; means over runs. Empty for jobs without computation.
fn training(runs: &[&Results], name: &str, of: &Steps) -> Vec<String> {
    let steps = |key: &str| {
        let key = format!("jobs.{name}.steps.{key}");
        let all = runs.iter().map(|run| run.summary.number(&key)).collect::<Option<Vec<f64>>>();
        all.and_then(|all| mean(&all))
    };
    let (Some(time), Some(compute)) = (steps("time_us"), steps("compute_us").filter(|us| *us > 0.0)) else {
        return Vec::new();
    };
    let shown =
        |us: f64| if us < 1e5 { format!("{} µs", number(us)) } else { format!("{} ms", number(us / 1e3)) };
    let mut text = format!("A step of {name} takes {}", shown(time));
    if let Some(tokens) = steps("tokens_per_second") {
        text += &format!(", {} tokens per second", number(tokens));
    }
    text += &format!("; GPUs compute for {} of it", percent(compute / time));
    let exposed = steps("exposed_us").unwrap_or(0.0);
    let kinds = of.exposed.keys().filter_map(|kind| Some((kind, steps(&format!("exposed.{kind}.us"))?)));
    let mut kinds: Vec<(&String, f64)> = kinds.filter(|(_, us)| *us > 0.0).collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
    let kinds: Vec<String> =
        kinds.iter().take(3).map(|(kind, us)| format!("{kind} {}", percent(us / time))).collect();
    text += &match kinds.as_slice() {
        [] => ", and wait for no communication.".to_owned(),
        kinds => {
            format!(" and wait for communication for {} ({}).", percent(exposed / time), kinds.join(", "))
        }
    };
    let median =
        |name: &String| Some(format!("{name} {} GB/s", number(steps(&format!("bus.{name}.median_gbs"))?)));
    let bus: Vec<String> = of.bus.keys().filter_map(median).collect();
    let bus = (!bus.is_empty()).then(|| format!("Bandwidth on the bus, median: {}.", bus.join(", ")));
    std::iter::once(text).chain(bus).collect()
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
    let dropped = n(|s| s.packets.dropped);
    let cut = n(|s| s.packets.cut.as_ref().map_or(0, |cut| cut.packets));
    let went = |n: u64, how: &str| match n {
        0 => String::new(),
        1 => format!("{} of the packets was {how}; ", percent(share(n, sent))),
        _ => format!("{} of the packets were {how}; ", percent(share(n, sent))),
    };
    let lost = went(dropped, "lost") + &went(cut, "cut by switches");
    let order = if late > 0 {
        format!("{lost}{} of the packets arrived out of order", percent(share(late, sent)))
    } else if dropped + cut == 0 {
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

/// A group with the times of its runs, in us.
struct Timed<'a> {
    group: &'a Group<'a>,
    times: Vec<f64>,
    mean: f64,
}

impl<'a> Timed<'a> {
    /// `None` if a run is not complete or has no such time.
    fn by(measure: Measure, group: &'a Group<'a>) -> Option<Self> {
        let all = group.runs.iter().map(|run| run.summary.complete.then(|| measure(run)).flatten());
        let times = all.collect::<Option<Vec<f64>>>()?;
        Some(Timed { group, mean: mean(&times)?, times })
    }
}

/// The time of a training step, if the run has exactly one job with steps, us.
fn step(run: &Results) -> Option<f64> {
    let numbers = run.summary.numbers();
    let mut steps = numbers.iter().filter(|(metric, _)| metric.key.ends_with(".steps.time_us"));
    steps.next().filter(|_| steps.next().is_none())?.1.as_f64()
}

/// The times by which runs are ranked, the first that all runs have.
const MEASURES: [(&str, Measure); 4] = [
    ("P99 of the TTFT", |r| Some(r.summary.serving.as_ref()?.ttft_us?.p99)),
    ("step", step),
    ("slowest group", slowest_group),
    ("P99 of the FCT", |r| Some(r.summary.flows.fct_us?.p99)),
];

/// The time that ranks these groups; `None` if they have different work, or none is complete in all.
pub(crate) fn measure(groups: &[Group<'_>]) -> Option<(&'static str, Measure)> {
    let fits =
        |(_, measure): &&(&str, Measure)| groups.iter().all(|group| Timed::by(*measure, group).is_some());
    (groups.len() > 1 && same_work(groups)).then(|| MEASURES.iter().find(fits).copied())?
}

/// The fastest group, its lead over the baseline or else over the slowest group, and its reordering and retransmissions.
fn compared(groups: &[Group<'_>], baseline: &str) -> Vec<String> {
    let incomplete: Vec<&Group<'_>> = groups.iter().filter(|g| !g.complete()).collect();
    let mut text = Vec::new();
    let alike = same_work(groups);
    if !alike {
        text.push("These runs have different workloads, so none is called the fastest.".to_owned());
    }
    for (what, measure) in MEASURES.into_iter().filter(|_| alike) {
        let mut order: Vec<Timed<'_>> = groups.iter().filter_map(|group| Timed::by(measure, group)).collect();
        if order.len() + incomplete.len() < groups.len() || order.len() < 2 {
            continue;
        }
        order.sort_by(|a, b| a.mean.total_cmp(&b.mean));
        text.extend(ranked(what, &order, baseline));
        if let Some(Timed { group, .. }) = order.first().filter(|first| !first.group.runs.is_empty()) {
            text.push(format!("Under {}: {}", group.name, lower(&disorder(&group.runs))));
        }
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

/// Sentences about groups in the order of their times, at least two.
fn ranked(what: &str, order: &[Timed<'_>], baseline: &str) -> Vec<String> {
    let shown = |us: f64| match us {
        us if us < 1e5 => format!("{} µs", number(us)),
        us => format!("{} ms", number(us / 1e3)),
    };
    let [first, next, ..] = order else { return Vec::new() };
    let last = order.last().unwrap_or(next);
    if last.mean <= first.mean * 1.02 {
        let (least, most) = (shown(first.mean), shown(last.mean));
        return vec![match least == most {
            true => format!("All are within 2 %: {what} {least}."),
            false => format!("All are within 2 %: {what} between {least} and {most}."),
        }];
    }
    let name = &first.group.name;
    let based = order.iter().find(|timed| timed.group.name == baseline);
    let other = based.unwrap_or(last);
    let mut text = vec![if other.group.name == *name {
        format!("{name}, the baseline, is fastest: {what} {}.", shown(first.mean))
    } else {
        let lead = match other.mean / first.mean {
            times if times < 1.0005 => "it takes as long as".to_owned(),
            times if times < 1.995 => {
                format!("it takes {} % less time than", number(100.0 * (1.0 - first.mean / other.mean)))
            }
            times => format!("it is {} times as fast as", number(times)),
        };
        let (best, against) = (shown(first.mean), shown(other.mean));
        format!("{name} is fastest: {lead} {} ({what} {best} against {against}).", other.group.name)
    }];
    if other.group.name != next.group.name {
        let by = match next.mean / first.mean {
            times if times < 1.0005 => "the same".to_owned(),
            times if times < 1.995 => format!("{} % more", number(100.0 * (times - 1.0))),
            times => format!("{} times as long", number(times)),
        };
        text.push(format!("Next is {} with {} ({by}).", next.group.name, shown(next.mean)));
    }
    // With several seeds, a lead within their spread is no lead.
    if let (Some(a), Some(b)) = (margin(&first.times), margin(&next.times))
        && first.mean + a >= next.mean - b
    {
        let (seeds, other) = (first.times.len(), &next.group.name);
        text.push(format!(
            "{seeds} seeds do not tell {name} from {other}: the 95 % intervals of their means overlap."
        ));
    }
    text
}

/// A sentence with a lower-case first letter, to follow a colon.
fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().collect::<String>() + chars.as_str())
}
