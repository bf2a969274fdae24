//! The cost of a run.

use super::{Better, Unit};

section! {
    /// The cost of a run; the only part of the results that differs from one run to the next.
    pub struct Timing;

    /// Wall time in the engine.
    wall_s: f64 => { label: "wall time", unit: Unit::Seconds, better: Better::Less };

    /// CPU time in the engine, of all threads of this run.
    cpu_s: f64 => { label: "CPU time", unit: Unit::Seconds, better: Better::Less };

    /// CPU time to read, check and lay out the scenario, and to build the engine's state. `cpu_s` contains the latter, too.
    setup_s: f64 => { label: "setup time", unit: Unit::Seconds, better: Better::Less };

    /// Threads that the run was split over.
    threads: usize => {};

    /// The engine: `window` or `reference`.
    engine: String => { unit: Unit::Word };

    /// Link crossings of data and control packets per second of `cpu_s`.
    hops_per_cpu_s: f64 => { label: "speed", unit: Unit::PacketsPerSecond, better: Better::More };

    /// Most memory that the process held; runs side by side share it.
    peak_rss_mb: f64 => { label: "memory", unit: Unit::Megabytes, better: Better::Less };
}
