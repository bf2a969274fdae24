//! The only place that looks at a real clock: how long a run took, not what it did.

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
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

    /// CPU seconds of the calling thread since the start; the same thread must ask that started it.
    pub fn cpu_s(&self) -> f64 {
        thread_cpu().saturating_sub(self.cpu).as_secs_f64()
    }
}

#[expect(clippy::disallowed_methods, reason = "wall time is what this module is for")]
fn now() -> Instant {
    Instant::now()
}

fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Most memory that this process has held so far, in 10^6 bytes; 0 where the system does not tell.
pub fn peak_rss_mb() -> f64 {
    // Linux counts in KiB, macOS in bytes.
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
}
