//! How much data of each run has room on the page.

/// Most runs in detail. Our choice: a chart can distinguish this many.
pub(super) const DETAILED: usize = 12;

/// Limits for the data of one run, so that a page stays below 2 MB, of which plotly takes 1.2 MB. Our choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Points of a distribution.
    pub points: usize,
    /// Numbers of all tracks over time.
    pub cells: usize,
    /// Events of queue pairs.
    pub events: usize,
    /// Links that are drawn, or cells of matrices.
    pub links: usize,
    /// Numbers of all links over time, or digits of matrices.
    pub link_cells: usize,
}

impl Room {
    /// The limits of each of `runs` runs, with `curves` distributions in total.
    pub(super) fn shared_by(runs: usize, curves: usize) -> Self {
        let runs = runs.clamp(1, DETAILED);
        // Every run also has data of fixed size, so many runs get smaller shares. Measured with 12 recorded runs of 1024 hosts.
        let shares = runs * runs.div_ceil(3);
        Room {
            points: (8_000 / (curves.max(1) * runs.div_ceil(3))).clamp(40, 600),
            cells: 24_000 / shares,
            events: 14_000 / shares,
            links: (24_000 / shares).max(600),
            link_cells: 96_000 / shares,
        }
    }
}
