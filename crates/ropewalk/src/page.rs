//! The text about one run.

use engine::outcome::Ending;
use lab::execute::Run;
use model::{Bytes, LinkId};
use papers::memory;
use results::Metric;
use results::metrics::Shown;
use results::stats::Spread;
use results::summary::{ByDistance, Distance, Flows, Steps};
use results::text::{WIDTH, bytes, count, maybe, number, percent, table};
use scenario::failure::Failure;
use std::fmt::Write;

/// Width of the left column.
const LABEL: usize = 18;
/// Most failures that are named. Our choice.
const FAILURES: usize = 4;

/// The text, with a line break at its end.
pub fn of(run: &Run) -> String {
    let mut page = Page(String::new());
    page.what(run);
    if let Some(serving) = &run.summary.serving {
        crate::serving::of_run(serving).iter().for_each(|(label, parts)| page.line(label, parts));
    }
    page.flows(run);
    page.packets(run);
    page.fabric(run);
    page.scheme(run);
    page.fast(run);
    page.speed(run);
    page.0
}

/// The difference of a fast run from the same run with everything sent.
pub fn audited(fast: &Run, whole: &Run) -> String {
    let (estimated, exact) = (fast.summary.sim_time_us, whole.summary.sim_time_us);
    let bound = fast.summary.fast.as_ref().map_or(0.0, |fast| fast.error_us);
    let times = whole.summary.timing.cpu_s / fast.summary.timing.cpu_s.max(1e-9);
    let mut page = Page(String::new());
    page.line(
        "audit",
        &[
            format!(
                "everything sent: {} us in {} s CPU, {} times as long",
                number(exact),
                number(whole.summary.timing.cpu_s),
                number(times)
            ),
            format!(
                "error {:+.4} %, bound {:.4} %",
                (estimated / exact - 1.0) * 100.0,
                bound / exact * 100.0
            ),
        ],
    );
    page.0
}

struct Page(String);

impl Page {
    /// Adds a line. A text that is too long continues on the next line, indented.
    fn line(&mut self, label: &str, parts: &[String]) {
        let mut text = String::new();
        let mut width = LABEL;
        for part in parts.iter().filter(|part| !part.is_empty()) {
            if !text.is_empty() {
                let wrap = width + 3 + part.chars().count() > WIDTH;
                text.push_str(&if wrap { format!("\n{:LABEL$}", "") } else { "   ".into() });
                width = if wrap { LABEL } else { width + 3 };
            }
            width += part.chars().count();
            text.push_str(part);
        }
        let gap = if label.chars().count() < LABEL { "" } else { "   " };
        let _ = writeln!(self.0, "{label:<LABEL$}{gap}{text}");
    }

    fn what(&mut self, run: &Run) {
        let (s, fabric) = (&run.summary, &run.checked.plan.fabric);
        let switches = fabric.switch_count();
        let size = format!("{} hosts, {switches} switches", fabric.hosts());
        let title = format!("{}: {}", s.scenario, s.scheme);
        self.line(&title, &[String::new(), size, format!("seed {}", s.seed), format!("digest {}", s.digest)]);
        let how = match &run.outcome.ending {
            Ending::Finished if s.complete => "complete",
            Ending::Finished if !run.outcome.broke_lossless.is_empty() => {
                "NOT complete: a lossless fabric dropped packets"
            }
            Ending::Finished if run.unserved().is_some() => "NOT complete: requests did not finish",
            Ending::Finished => "NOT complete: the books do not balance",
            Ending::Stopped => "stopped by [stop] after",
            Ending::Interrupted => "INTERRUPTED",
            Ending::Stalled(_) => "STALLED",
            Ending::RetryExceeded(_) => "ENDED: a queue pair had no retries left",
            Ending::Memory(_) => "stopped: memory",
        };
        let flows = if s.flows.count == 1 { "flow" } else { "flows" };
        let flows = format!("{} of {} {flows} finished", count(s.flows.finished), count(s.flows.count));
        self.line("end", &[how.into(), flows, format!("{} us simulated", number(s.sim_time_us))]);
        if let Some(by) = &s.ended_by {
            let lost =
                by.link.as_ref().map_or_else(String::new, |link| format!("last packet lost on {link}"));
            let flow = format!("flow {} ({} -> {}) at {:.3} us", by.flow, by.from, by.to, by.at_us);
            self.line("ended by", &[flow, lost]);
        }
        for moved in s.failovers.iter().take(FAILURES) {
            let way =
                format!("flow {} from {} to {} at {:.3} us", moved.flow, moved.from, moved.to, moved.at_us);
            self.line(
                "moved",
                &[way, moved.back_us.map_or_else(String::new, |at| format!("back at {at:.3} us"))],
            );
        }
        let failures = failures(&run.checked.scenario.failure);
        if !failures.is_empty() {
            self.line("failures", &failures);
        }
        for lost in s.failures.iter().take(FAILURES) {
            let of = |n: u64, what: &str| if n > 0 { format!("{} {what}", count(n)) } else { String::new() };
            self.line(
                &format!("lost to failure {}", lost.failure),
                &[
                    of(lost.lost, if lost.lost == 1 { "data packet" } else { "data packets" }),
                    format!("from {} us until {} us", number(lost.first_us), number(lost.last_us)),
                    of(lost.black_hole, "into dead links"),
                    of(lost.in_loops, "in loops"),
                ],
            );
        }
    }

    fn flows(&mut self, run: &Run) {
        let s = &run.summary;
        let spread = |spread: Option<Spread>, unit: &str| {
            spread.map_or_else(Vec::new, |x| {
                [("p50", x.p50), ("p99", x.p99), ("max", x.max)]
                    .map(|(name, v)| format!("{name} {}{unit}", number(v)))
                    .to_vec()
            })
        };
        for (class, flows) in &s.classes {
            let of = |what: &str| if s.classes.len() > 1 { format!("{what} {class}") } else { what.into() };
            self.line(&of("FCT"), &spread(flows.fct_us, " us"));
            self.line(&of("slowdown"), &spread(flows.slowdown, ""));
            if let Some(ByDistance { near, far, unfairness }) = &flows.by_distance {
                let part = |what: &str, part: &Distance| {
                    let slowdown = maybe(part.slowdown.map(|slowdown| slowdown.mean));
                    format!("{what} {slowdown} ({} flows)", count(part.count))
                };
                let ratio = format!("ratio {}", maybe(*unfairness));
                self.line(&of("by distance"), &[part("mean slowdown near", near), part("far", far), ratio]);
            }
            self.sizes(&of("by size"), flows);
        }
        let (mean, min) = (maybe(s.goodput_gbps.mean), maybe(s.goodput_gbps.min));
        let sending = s.sending_rate_fraction.mean.map_or_else(|| "-".into(), percent);
        self.line(
            "goodput",
            &[format!("mean {mean} Gb/s   min {min} Gb/s"), format!("sending at {sending} of line rate")],
        );
        for (name, job) in s.jobs.iter().filter(|(_, job)| job.groups.count > 1) {
            let t = &job.groups.completion_us;
            let (slowest, fastest) = (maybe(t.slowest), maybe(t.fastest));
            let text = format!("{} groups: slowest {slowest} us   fastest {fastest} us", job.groups.count);
            self.line(&format!("job {name}"), &[text]);
        }
        for (entry, job) in run.checked.scenario.workload.iter().zip(&run.checked.plan.jobs) {
            if let (Some(checkpoint), Some(told)) = (&entry.checkpoint, s.jobs.get(&job.name)) {
                let us = maybe(told.groups.completion_us.slowest);
                let what = match checkpoint.times {
                    1 => "checkpoint".to_owned(),
                    times => format!("last of {times} checkpoints"),
                };
                let text = format!("{what} written {us} us after the start, with its copies and replies");
                self.line(&format!("job {}", job.name), &[text]);
            }
            if let Some(costs) = entry.experts.as_ref().and_then(|experts| experts.routing.fitted()) {
                self.line("assumed", &[format!("{}: {costs}", job.name)]);
            }
        }
        for (name, steps) in s.jobs.iter().filter_map(|(name, job)| Some((name, job.steps.as_ref()?))) {
            self.steps(run, name, steps);
        }
    }

    /// Where the time of a job's steps goes, and the bandwidth of its collectives.
    fn steps(&mut self, run: &Run, name: &str, steps: &Steps) {
        let share = |us: f64| percent(us / steps.time_us.max(f64::MIN_POSITIVE));
        let mut parts = vec![format!("{} us", number(steps.time_us))];
        parts.extend(steps.tokens_per_second.map(|tokens| format!("{} tokens/s", number(tokens))));
        if steps.compute_us > 0.0 {
            let exposed = steps.exposed.iter().map(|(kind, exposed)| format!("{kind} {}", share(exposed.us)));
            let exposed: Vec<String> = exposed.collect();
            parts.push(format!("compute {}", share(steps.compute_us)));
            parts.push(format!(
                "exposed {}",
                if exposed.is_empty() { "0 %".into() } else { exposed.join(", ") }
            ));
            // Only a pipeline has a bubble.
            let idle = if has_pipeline(run, name) { "bubble" } else { "idle" };
            parts.push(format!("{idle} {}", share(steps.bubble_us)));
        }
        let of = if steps.count > 1 {
            format!("step of {name} (mean of {})", steps.count)
        } else {
            format!("step of {name}")
        };
        self.line(&of, &[parts.join("   ")]);
        if steps.compute_us > 0.0 {
            let text = format!(
                "exposed-astra {}: all of the step but compute, as ASTRA-sim counts",
                share(steps.exposed_astra_us)
            );
            self.line("", &[text]);
        }
        for (collective, bus) in &steps.bus {
            let (median, least) = (maybe(bus.median_gbs), maybe(bus.least_gbs));
            self.line("", &[on_bus(collective, bus.count, &median, &least)]);
        }
    }

    /// Adds a row for each size of flows if there are several sizes.
    fn sizes(&mut self, label: &str, flows: &Flows) {
        if flows.by_size.is_empty() {
            return;
        }
        let header = ["up to", "flows", "FCT us\nmean", "FCT us\np50", "FCT us\np99"];
        let header = header.into_iter().chain(["slowdown\nmean", "slowdown\np50", "slowdown\np99"]);
        let mut rows = table(&header.map(str::to_owned).collect::<Vec<_>>(), 0);
        for bucket in &flows.by_size {
            let of = |spread: Option<Spread>| {
                [spread.map(|s| s.mean), spread.map(|s| s.p50), spread.map(|s| s.p99)].map(maybe)
            };
            let flows = match bucket.count - bucket.finished {
                0 => count(bucket.count),
                _ => format!("{} of {}", count(bucket.finished), count(bucket.count)),
            };
            let cells = [Bytes(bucket.up_to_bytes).to_string(), flows].into_iter();
            rows.add_row(cells.chain(of(bucket.fct_us)).chain(of(bucket.slowdown)));
        }
        for (i, row) in rows.to_string().lines().enumerate() {
            self.line(if i == 0 { label } else { "" }, &[row.trim_end().to_owned()]);
        }
    }

    fn packets(&mut self, run: &Run) {
        let summary = &run.summary;
        let by_key = |key: &str| summary.number(key);
        // The counts of a section that pages also show. Times are left out.
        let counts = |section: &str, share: bool| -> Vec<String> {
            let of_section = |metric: &&Metric| metric.key.starts_with(section) && metric.unit.is_count();
            let part = |metric: &Metric| {
                let text = format!("{} {}", metric.label, count(metric.read(summary)? as u64));
                let share = metric.share(by_key).filter(|_| share);
                Some(share.map_or_else(|| text.clone(), |share| format!("{text} ({})", percent(share))))
            };
            Metric::shown_in(Shown::Page).filter(of_section).filter_map(part).collect()
        };
        let sent = vec![count(summary.packets.sent)];
        self.line("packets sent", &[sent, counts("packets.", true)].concat());
        self.line("control", &counts("control.", false));
    }

    fn fabric(&mut self, run: &Run) {
        let (plan, outcome) = (&run.checked.plan, &run.outcome);
        let marks: u64 = outcome.links.iter().map(|l| l.marks).sum();
        let mut parts = vec![format!("marks {}", count(marks))];
        if let Some((i, link)) =
            outcome.links.iter().enumerate().max_by_key(|(i, l)| (l.max_queue, usize::MAX - i))
        {
            let l = &plan.fabric.links()[LinkId(i as u32).index()];
            let (from, to) = (plan.fabric.name(l.from), plan.fabric.name(l.to));
            parts.push(format!("longest queue {} ({from} -> {to})", bytes(link.max_queue)));
        }
        if let Some((i, most)) =
            outcome.max_buffer.iter().enumerate().max_by_key(|(i, b)| (b.get(), usize::MAX - i))
        {
            let node = plan.fabric.switch(i);
            parts.push(format!("fullest buffer {} ({})", bytes(most.get()), plan.fabric.name(node)));
        }
        self.line("fabric", &parts);
    }

    fn scheme(&mut self, run: &Run) {
        let mut parts: Vec<String> = run
            .summary
            .counters
            .iter()
            .map(|(name, n)| format!("{} {}", name.replace('_', " "), count(*n)))
            .collect();
        if let Some(need) = memory::of_plan(&run.checked.plan, &run.checked.scenario.scheme) {
            parts.push(format!(
                "switch memory {} by Eq. 4 (largest ToR, ring by the paper's formula or as set)",
                bytes(need)
            ));
        }
        if !parts.is_empty() {
            // The counters include those of schemes that only some switches or classes have.
            let roles = run.checked.scenario.switch_role.values().filter_map(|role| role.scheme.as_ref());
            let scheme = run.summary.scheme.replace('+', " + ");
            let names: Vec<&str> =
                std::iter::once(&*scheme).chain(roles.map(|scheme| scheme.name())).collect();
            self.line(&names.join(" + "), &parts);
        }
    }

    /// What a fast run left out, and the error of its end.
    fn fast(&mut self, run: &Run) {
        let Some(fast) = &run.summary.fast else { return };
        if let Some(reason) = &fast.reason {
            return self.line("fast", &["1.0 times: everything was sent".into(), reason.clone()]);
        }
        let sent = format!(
            "{} of the packets sent ({} of {})",
            percent(fast.share()),
            count(fast.sent),
            count(fast.sent + fast.left_out)
        );
        if fast.alone > 0 {
            let alone = format!("{} messages met nobody, and take their closed form", count(fast.alone));
            let rest = "times are exact; flows, links and counts are those of what was sent".into();
            return self.line("fast", &[sent, alone, rest]);
        }
        if fast.cuts > 0 {
            let cuts = if fast.cuts == 1 { "one cut".into() } else { format!("{} cuts", count(fast.cuts)) };
            return self.line(
                "fast",
                &[
                    sent,
                    format!("{cuts} of what repeats exactly"),
                    "times are exact, and there are no series".into(),
                ],
            );
        }
        self.line(
            "fast",
            &[
                sent,
                format!(
                    "{} of {} exchanges, in {} situations{}",
                    count(fast.exchanges_sent),
                    count(fast.exchanges),
                    count(fast.situations),
                    match fast.remembered {
                        0 => String::new(),
                        known => format!(", {} of them from the memo", count(known)),
                    }
                ),
            ],
        );
        if run.outcome.ending != Ending::Finished {
            return self.line("error", &["unknown: the run did not end".into()]);
        }
        let end = run.summary.sim_time_us;
        self.line(
            "error",
            &[
                format!("end {} us +- {:.3} %", number(end), fast.error_us / end.max(1e-9) * 100.0),
                format!("{} audits, the worst {:.3} %", count(fast.audits), fast.worst_audit * 100.0),
                "computation and copies are exact".into(),
            ],
        );
        if fast.cells.0 < fast.cells.1 {
            self.line(
                "",
                &[format!("tables and steps tell {} of {} cells of replicas", fast.cells.0, fast.cells.1)],
            );
        }
    }

    fn speed(&mut self, run: &Run) {
        let (t, hops) = (&run.summary.timing, &run.summary.packet_hops);
        self.line(
            "speed",
            &[
                format!(
                    "{} M hops in {} s CPU",
                    number((hops.data + hops.control) as f64 / 1e6),
                    number(t.cpu_s)
                ),
                format!("{} M hops/s", number(t.hops_per_cpu_s / 1e6)),
                match t.threads {
                    1 => String::new(),
                    threads => format!("{threads} threads: {} s", number(t.wall_s)),
                },
                format!("setup {} s", number(t.setup_s)),
                format!("memory {} MB", number(t.peak_rss_mb)),
            ],
        );
    }
}

/// True if the job is a training with pipeline parallelism.
fn has_pipeline(run: &Run, job: &str) -> bool {
    let plan = &run.checked.plan;
    plan.operations.iter().any(|o| o.dimension == "pp" && plan.jobs[usize::from(o.job)].name == job)
}

/// The failures of a scenario in words, of many the first.
pub fn failures(all: &[Failure]) -> Vec<String> {
    let mut said: Vec<String> = all.iter().take(FAILURES).map(Failure::to_string).collect();
    let more = all.len().saturating_sub(FAILURES);
    said.extend((more > 0).then(|| format!("and {more} more")));
    said
}

/// The bandwidth of a collective that ran so many times.
fn on_bus(collective: &str, times: u64, median: &str, least: &str) -> String {
    match times {
        1 => format!("{collective}: once, {median} GB/s on the bus"),
        n => format!("{collective}: {} times, {median} GB/s on the bus, least {least}", count(n)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collective_runs_once_or_several_times() {
        assert_eq!(on_bus("all-to-all", 1, "46.1", "46.1"), "all-to-all: once, 46.1 GB/s on the bus");
        assert_eq!(
            on_bus("tp all-gather", 20_480, "385", "384"),
            "tp all-gather: 20,480 times, 385 GB/s on the bus, least 384"
        );
    }
}
