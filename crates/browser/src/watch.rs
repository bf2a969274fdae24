//! What is recorded for the page: everything on a small fabric, and a part that is spread evenly over a large one.

use crate::tape::Tape;
use model::record::RecordPlan;
use model::{LinkId, Plan, QpId, Time};

/// Most queue pairs and links with a time series (our choice): twice as many as fit side by side on a screen.
const MOST_QPS: usize = 256;
const MOST_LINKS: usize = 1024;
/// Most queue pairs whose events are recorded (our choice: a second takes 40,000 of each at 100 Gb/s).
const MOST_FOLLOWED: usize = 64;
/// Most events of one queue pair, counted separately for packets and all else (our choice).
const EVENTS: usize = 60_000;
/// Links of a fabric that is drawn packet by packet, and most frames of all its links (our choice: 40 B each).
const DRAWN_LINKS: usize = 512;
const FRAMES: u32 = 2_000_000;
/// Bins of every series (our choice: as many as pixels of a narrow chart).
const BINS: usize = 512;

/// Recordings of a plan's run.
pub fn recordings(plan: &Plan) -> RecordPlan {
    let links = plan.fabric.links();
    let all = |count: usize| (0..count as u32).map(LinkId);
    let between = |link: &LinkId| {
        let link = &links[link.index()];
        !plan.fabric.is_host(link.from) && !plan.fabric.is_host(link.to)
    };
    let tracked: Vec<LinkId> = match links.len() <= MOST_LINKS {
        true => all(links.len()).collect(),
        false => all(links.len()).filter(between).collect(),
    };
    let qps = plan.qps.len();
    let taps = if links.len() <= DRAWN_LINKS { all(links.len()).collect() } else { Vec::new() };
    let followed: Vec<QpId> = evenly(qps, MOST_FOLLOWED).map(|qp| QpId(qp as u32)).collect();
    let mut shown: Vec<QpId> = evenly(qps, MOST_QPS).map(|qp| QpId(qp as u32)).collect();
    // An event needs a queue pair with a series.
    shown.extend(&followed);
    shown.sort_unstable();
    shown.dedup();
    RecordPlan {
        qps: shown,
        links: evenly(tracked.len(), MOST_LINKS).map(|at| tracked[at]).collect(),
        switches: true,
        counters: true,
        queues: false,
        width: Time::from_us(1),
        bins: BINS,
        follow: followed,
        events: EVENTS,
        taps,
    }
}

/// A tape for the frames of a plan's run.
pub fn tape(plan: &Plan) -> Tape {
    let links = plan.fabric.links().len();
    Tape::new(links, FRAMES.checked_div(links as u32).unwrap_or(0))
}

/// At most `most` numbers from `0..len`, evenly spread.
fn evenly(len: usize, most: usize) -> impl Iterator<Item = usize> {
    let n = len.min(most);
    (0..n).map(move |i| i * len / n)
}
