//! Links that fail while a flow or a step is under way.

use crate::timeline::Line;
use model::failure::{Effect, when};
use model::{Fabric, LinkId, NodeId, Plan, Time};
use results::text::count;
use std::collections::BTreeMap;

/// Most spans of one failure with a line each; more share one. Our choice: two flaps are shown one by one.
const ONE_BY_ONE: usize = 3;

/// Links with the same failure, and when.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    /// Names of the links.
    links: String,
    effect: Effect,
    /// In order of time.
    spans: Spans,
}

/// Times of a failure, in order.
type Spans = Vec<(Time, Time)>;
/// Effects, each with the links that it hits.
type Hits = Vec<(Effect, Vec<LinkId>)>;

/// What failures do to links between `start` and `end`, in order of time. Links that `counts` refuses are left out.
pub(crate) fn failed(plan: &Plan, start: Time, end: Time, counts: impl Fn(LinkId) -> bool) -> Vec<Failed> {
    let fabric = &plan.fabric;
    let mut alike: BTreeMap<Spans, Hits> = BTreeMap::new();
    for link in (0..fabric.links().len() as u32).map(LinkId).filter(|link| counts(*link)) {
        let mut of_link: Vec<(Effect, Spans)> = Vec::new();
        for fault in plan.failures.faults_of(fabric, link) {
            if fault.at > end || fault.until <= start {
                continue;
            }
            let span = (fault.at, fault.until);
            match of_link.iter_mut().find(|(effect, _)| *effect == fault.effect) {
                Some((_, spans)) => spans.push(span),
                None => of_link.push((fault.effect, vec![span])),
            }
        }
        for (effect, spans) in of_link {
            let known = alike.entry(spans).or_default();
            match known.iter_mut().find(|(other, _)| *other == effect) {
                Some((_, links)) => links.push(link),
                None => known.push((effect, vec![link])),
            }
        }
    }
    let each = |(spans, kinds): (Spans, Hits)| {
        kinds.into_iter().map(move |(effect, links)| Failed {
            links: names(fabric, &links),
            effect,
            spans: spans.clone(),
        })
    };
    alike.into_iter().flat_map(each).collect()
}

impl Failed {
    /// A line for each of a few spans, or one for all of them, cut to the time from `start` to `end`.
    pub(crate) fn lines(&self, start: Time, end: Time) -> Vec<Line> {
        let Failed { links, effect, spans } = self;
        let line = |from: Time, until: Time, times: &str| Line {
            from_us: from.max(start).as_us(),
            to_us: until.min(end).as_us(),
            what: format!("on the fabric, {links}: {effect}{times}"),
        };
        match spans.as_slice() {
            [(from, _), .., (_, until)] if spans.len() > ONE_BY_ONE => {
                vec![line(*from, *until, &format!(" {} times", spans.len()))]
            }
            few => few.iter().map(|(from, until)| line(*from, *until, "")).collect(),
        }
    }

    /// The failure in a sentence without a full stop.
    pub(crate) fn sentence(&self) -> String {
        let mut links = self.links.clone();
        links[..1].make_ascii_uppercase();
        format!("{links}: {}{}", self.effect, when(&self.spans))
    }
}

/// Names links by the one or two nodes that all of them share; else their number.
fn names(fabric: &Fabric, links: &[LinkId]) -> String {
    let ends = |link: &LinkId| [fabric.links()[link.index()].from, fabric.links()[link.index()].to];
    let shared = |node: &NodeId| links.iter().all(|link| ends(link).contains(node));
    match (links, &*links.first().map(ends).into_iter().flatten().filter(shared).collect::<Vec<_>>()) {
        ([_], [from, to]) => format!("link {} -> {}", fabric.name(*from), fabric.name(*to)),
        (_, [a, b]) => format!("links between {} and {}", fabric.name(*a), fabric.name(*b)),
        (_, [one]) => format!("links of {}", fabric.name(*one)),
        _ => format!("{} links", count(links.len() as u64)),
    }
}
