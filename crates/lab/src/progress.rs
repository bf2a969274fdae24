//! The progress of runs, and the flag that stops them.

use crate::clock::{CpuMeter, Stopwatch};
use crate::headroom::Headroom;
use model::{Plan, Time};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Parts that a run is divided into.
const PARTS: u64 = 1000;

/// The progress of one or several runs, and the flag that stops them.
pub struct Progress<'a> {
    stop: &'a AtomicBool,
    runs: AtomicU64,
    parts: AtomicU64,
    finished: AtomicU64,
    since: Stopwatch,
    /// Seconds from the start to the last report.
    last: Mutex<f64>,
    reporter: Option<Reporter<'a>>,
}

/// Receives the finished fraction (0 to 1) and a line about it.
pub struct Reporter<'a> {
    /// Least time between two reports, in seconds.
    pub every_s: f64,
    /// Shows a report.
    pub show: Box<dyn Fn(f64, String) + Send + Sync + 'a>,
}

impl<'a> Progress<'a> {
    /// The progress of `runs` runs, which `stop` ends early and `reporter` shows.
    pub fn new(runs: usize, stop: &'a AtomicBool, reporter: Option<Reporter<'a>>) -> Self {
        Progress {
            stop,
            runs: AtomicU64::new(runs as u64),
            parts: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            since: Stopwatch::start(),
            last: Mutex::new(0.0),
            reporter,
        }
    }

    /// The progress of one run that shows nothing.
    pub fn silent(stop: &'a AtomicBool) -> Self {
        Self::new(1, stop, None)
    }

    /// Counts `runs` more than were known at the beginning.
    pub fn expect(&self, runs: usize) {
        self.runs.fetch_add(runs as u64, Ordering::Relaxed);
    }

    fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// True if the user asked to stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Watches one run of this plan.
    pub fn watch(&self, plan: &Plan) -> Watch<'_> {
        let packets = plan.messages.iter().map(|m| plan.wire.packets(m.bytes)).sum();
        // Background flows are accepted too and have no end: then only finished flows measure the progress.
        let packets = if plan.jobs.iter().any(|job| job.background) { 0 } else { packets };
        Watch {
            all: self,
            packets,
            flows: plan.messages.iter().filter(|m| !plan.jobs[usize::from(m.job)].background).count() as u64,
            end: plan.stop_after,
            parts: 0,
            since: Stopwatch::start(),
            built_s: 0.0,
            others: CpuMeter::default(),
            headroom: Headroom::new(plan),
        }
    }

    /// Reports that one more thing is done, if things rather than runs were counted.
    pub fn one_done(&self, things: &str) {
        self.parts.fetch_add(PARTS, Ordering::Relaxed);
        self.finished.fetch_add(1, Ordering::Relaxed);
        self.tell_how_many(things);
    }

    /// Reports that one run among several, or the only one, has done a part of its things. `told` is what it has reported so far.
    pub(crate) fn part_done(&self, told: &mut u64, done: u64, all: u64, things: &str) {
        let parts = (u128::from(PARTS) * u128::from(done)).checked_div(all.into()).unwrap_or(0) as u64;
        self.parts.fetch_add(parts.saturating_sub(*told), Ordering::Relaxed);
        *told = parts.max(*told);
        if self.runs() > 1 {
            return self.tell_how_many("runs");
        }
        self.tell(|fraction, seconds| format!("{done} of {all} {things}  {}", eta(fraction, seconds)));
    }

    /// Reports that a run has ended, of which `told` is reported.
    pub(crate) fn run_done(&self, told: u64) {
        self.parts.fetch_add(PARTS.saturating_sub(told), Ordering::Relaxed);
        self.finished.fetch_add(1, Ordering::Relaxed);
        if self.runs() > 1 {
            self.tell_how_many("runs");
        }
    }

    /// Reports how many things are done, and the time left.
    fn tell_how_many(&self, things: &str) {
        self.tell(|fraction, seconds| {
            let finished = self.finished.load(Ordering::Relaxed);
            format!("{finished} of {} {things}  {}", self.runs(), eta(fraction, seconds))
        });
    }

    /// Reports `message(fraction, seconds so far)` if the last report is long enough ago.
    fn tell(&self, message: impl Fn(f64, f64) -> String) {
        let Some(reporter) = &self.reporter else { return };
        let now = self.since.wall_s();
        let Ok(mut last) = self.last.try_lock() else { return };
        if now - *last < reporter.every_s {
            return;
        }
        *last = now;
        let parts = self.parts.load(Ordering::Relaxed);
        let fraction = parts as f64 / (self.runs().max(1) * PARTS) as f64;
        (reporter.show)(fraction, message(fraction, now));
    }
}

/// Watches one run among those of a [`Progress`].
pub struct Watch<'a> {
    all: &'a Progress<'a>,
    /// Data packets to be accepted; 0 if they do not measure the progress.
    packets: u64,
    /// Foreground messages.
    flows: u64,
    end: Option<Time>,
    parts: u64,
    since: Stopwatch,
    /// CPU seconds that the engine took to build its state.
    pub(crate) built_s: f64,
    /// CPU time of the run's threads without the thread that began it.
    others: CpuMeter,
    pub(crate) headroom: Headroom,
}

impl Watch<'_> {
    /// CPU seconds of the threads that the engine started for the run; complete once they have ended.
    pub fn others_cpu_s(&self) -> f64 {
        self.others.cpu_s()
    }

    fn advance(&mut self, to: u64) {
        self.all.parts.fetch_add(to.saturating_sub(self.parts), Ordering::Relaxed);
        self.parts = self.parts.max(to);
    }
}

impl engine::Observer for Watch<'_> {
    fn on_start(&mut self) {
        self.built_s = self.since.cpu_s();
    }

    fn on_progress(&mut self, p: engine::Progress) -> bool {
        let part = |done: u64, of: u64| (done as u128 * PARTS as u128).checked_div(of.into()).unwrap_or(0);
        let flows = part(p.finished, self.flows);
        let time = self.end.map_or(0, |end| part(p.now.ps(), end.ps()));
        let furthest = part(p.accepted, self.packets).max(flows).max(time);
        // The last part is for `drop`.
        self.advance(furthest.min(u128::from(PARTS - 1)) as u64);
        if self.all.runs() > 1 {
            self.all.tell_how_many("runs");
            return !self.all.stopped();
        }
        self.all.tell(|fraction, seconds| {
            let left = eta(fraction, seconds);
            let speed = p.hops as f64 / seconds / 1e6;
            let (time, flows) = (p.now.as_us(), self.flows);
            format!("{time:.0} us simulated  {}/{flows} flows  {speed:.1} M hops/s  {left}", p.finished)
        });
        !self.all.stopped()
    }

    fn room(&mut self) -> u64 {
        self.headroom.left()
    }

    fn at_thread_end(&self) -> Box<dyn Fn() + Send + Sync> {
        let meter = self.others.clone();
        Box::new(move || meter.add_this_thread())
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.advance(PARTS);
        self.all.finished.fetch_add(1, Ordering::Relaxed);
        if self.all.runs() > 1 {
            // Short runs end before their first report.
            self.all.tell_how_many("runs");
        }
    }
}

fn eta(fraction: f64, seconds: f64) -> String {
    if fraction <= 0.0 {
        return String::new();
    }
    let left = seconds * (1.0 - fraction) / fraction;
    match left {
        _ if left < 90.0 => format!("{left:.0} s left"),
        _ if left < 5400.0 => format!("{:.0} min left", left / 60.0),
        _ => format!("{:.1} h left", left / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Observer;

    #[test]
    fn a_raised_flag_stops_the_run_and_finished_runs_are_counted() {
        let stop = AtomicBool::new(false);
        let all = Progress::new(2, &stop, None);
        let step = engine::Progress {
            now: model::Time::from_us(1),
            finished: 0,
            messages: 1,
            accepted: 4,
            hops: 30,
        };
        {
            // 9 packets of 1438 B carry 12,500 B.
            let sets = ["workload=[{incast={bytes='12500B',senders=['host4'],receiver='host0'}}]".to_owned()];
            let mut watch = all.watch(&crate::load("quickstart", &sets).unwrap().checked.plan);
            assert!(watch.on_progress(step));
            assert_eq!(all.parts.load(Ordering::Relaxed), 444);
            stop.store(true, Ordering::Relaxed);
            assert!(!watch.on_progress(step));
            std::thread::scope(|s| s.spawn(watch.at_thread_end()).join()).unwrap();
            assert!(watch.others_cpu_s() > 0.0);
        }
        assert_eq!(all.parts.load(Ordering::Relaxed), PARTS);
        assert_eq!(all.finished.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn runs_that_are_added_later_count_in_the_share_that_is_done() {
        let (stop, shown) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let show = Box::new(|fraction, text| shown.lock().unwrap().push((fraction, text)));
        let all = Progress::new(1, &stop, Some(Reporter { every_s: 0.0, show }));
        all.one_done("runs");
        all.expect(3);
        all.one_done("runs");
        drop(all);
        let shown = shown.into_inner().unwrap();
        assert_eq!(shown.iter().map(|(fraction, _)| *fraction).collect::<Vec<f64>>(), [1.0, 0.5]);
        assert!(shown[1].1.starts_with("2 of 4 runs"), "{}", shown[1].1);
    }

    #[test]
    fn the_time_left_has_a_fitting_unit() {
        assert_eq!(eta(0.5, 10.0), "10 s left");
        assert_eq!(eta(0.1, 60.0), "9 min left");
        assert_eq!(eta(0.0, 60.0), "");
    }
}
