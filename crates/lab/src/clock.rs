//! The only place that reads a real clock. Time measured here never affects results.

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Wall time and CPU time of the thread that started it.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    wall: Instant,
    cpu: Duration,
}

impl Stopwatch {
    /// Starts now, on this thread.
    pub fn start() -> Self {
        Stopwatch { wall: now(), cpu: thread_cpu() }
    }

    /// Seconds since the start.
    pub fn wall_s(&self) -> f64 {
        now().duration_since(self.wall).as_secs_f64()
    }

    /// CPU seconds of the calling thread since the start. Only the thread that started the stopwatch may call this.
    pub fn cpu_s(&self) -> f64 {
        thread_cpu().saturating_sub(self.cpu).as_secs_f64()
    }
}

/// CPU time of threads that have ended, summed. Clones add to the same sum.
#[derive(Clone, Debug, Default)]
pub struct CpuMeter(Arc<AtomicU64>);

impl CpuMeter {
    /// Adds all CPU time of the calling thread; the thread calls this last.
    pub fn add_this_thread(&self) {
        let ns = u64::try_from(thread_cpu().as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(ns, Ordering::Relaxed);
    }

    /// CPU seconds added so far.
    pub fn cpu_s(&self) -> f64 {
        Duration::from_nanos(self.0.load(Ordering::Relaxed)).as_secs_f64()
    }
}

#[expect(clippy::disallowed_methods, reason = "wall time is what this module is for")]
fn now() -> Instant {
    Instant::now()
}

fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Most memory that this process has held so far, in 10^6 bytes; 0 if the system does not report it.
pub fn peak_rss_mb() -> f64 {
    // Linux's getrusage also counts the process that started this one, from before it became ropewalk.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    if let Some(kib) = peak.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok()) {
        return kib * 1024.0 / 1e6;
    }
    // Elsewhere macOS counts in bytes, others in KiB.
    let unit = if cfg!(target_os = "macos") { 1.0 } else { 1024.0 };
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| usage.max_rss() as f64 * unit / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_and_memory_is_held() {
        let watch = Stopwatch::start();
        let sum: u64 = (0..1_000_000u64).map(std::hint::black_box).sum();
        assert!(sum > 0 && watch.wall_s() > 0.0 && watch.cpu_s() > 0.0);
        assert!(peak_rss_mb() > 0.1);
    }

    #[test]
    fn a_meter_adds_up_threads_that_have_ended() {
        let meter = CpuMeter::default();
        let work = || {
            let sum: u64 = (0..3_000_000u64).map(std::hint::black_box).sum();
            meter.add_this_thread();
            (sum, meter.cpu_s())
        };
        let (_, one) = std::thread::scope(|s| s.spawn(work).join()).unwrap();
        let (_, two) = std::thread::scope(|s| s.spawn(work).join()).unwrap();
        assert!(one > 0.0 && two > one, "{one} {two}");
    }
}
