//! What became of a flow's packets, and of the rate that its sender was allowed.

use crate::kept::Kept;
use crate::life::Life;
use crate::trace::Step;
use engine::outcome::EventKind;
use model::{Kind, Time};
use results::Results;
use serde::Serialize;
use std::collections::BTreeMap;

/// Links that are listed. Our choice.
const LINKS: usize = 5;
/// Links with less than this share of all that was waited are not. Our choice.
const WORTH_LISTING: f64 = 0.01;

/// Retransmissions of a flow by what made them necessary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resends {
    /// All of them.
    pub total: u64,
    /// The packet had been lost on a link.
    pub lost: u64,
    /// It had been dropped for lack of buffer.
    pub dropped: u64,
    /// Its receiver had thrown it away, as it came ahead of ePSN.
    pub discarded: u64,
    /// It was only late: it arrived, and then once more.
    pub spurious: u64,
}

/// NACKs or CNPs of its queue pair while it lasted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Told {
    /// By the receiver.
    pub sent: u64,
    /// By the scheme.
    pub made: u64,
    /// Ended by the scheme.
    pub blocked: u64,
    /// At the sender.
    pub received: u64,
}

/// What cut the rate, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cuts {
    /// CNPs, NACKs or timeouts.
    pub by: Kept,
    /// How often.
    pub times: u64,
}

/// The rate that congestion control allowed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Of the sender's port.
    pub line_gbps: f64,
    /// When its first packet had been sent; null if none was.
    pub first_gbps: Option<f64>,
    /// The lowest.
    pub least_gbps: Option<f64>,
    /// What cut it.
    pub cuts: Vec<Cuts>,
}

/// How long packets were under way that were sent once and arrived once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Transit {
    /// A full frame on an idle fabric.
    pub ideal_us: f64,
    /// Mean.
    pub mean_us: f64,
    /// The longest.
    pub most_us: f64,
    /// PSN of that packet.
    pub most_psn: u64,
    /// When it was sent.
    pub most_sent_us: f64,
}

/// A link from a switch that packets of the queue pair took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Switch.
    pub from: String,
    /// Its neighbour.
    pub to: String,
    /// Packets of the queue pair that went this way.
    pub packets: u64,
    /// What waited there when they came, as the time that the link takes to send it: mean.
    pub mean_wait_us: f64,
    /// The same, at most.
    pub most_wait_us: f64,
}

/// What became of a flow's packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Packets {
    /// Put on the wire, retransmissions and copies included.
    pub sent: u64,
    /// Copies that its scheme made on purpose.
    pub copies: u64,
    /// Sent again.
    pub resent: Resends,
    /// Lost on links.
    pub lost: u64,
    /// Dropped for lack of buffer.
    pub dropped: u64,
    /// Arrived with a PSN above ePSN.
    pub ahead: u64,
    /// Most packets between ePSN and one that arrived.
    pub most_ahead: u64,
    /// NACKs of its queue pair.
    pub nacks: Told,
    /// CNPs of its queue pair.
    pub cnps: Told,
    /// Retransmission timers of its queue pair that fired.
    pub timeouts: u64,
    /// Times that the port of its sender was paused.
    pub pauses: u64,
    /// What it was allowed.
    pub rate: Rate,
    /// How long its packets were under way; null if none was sent once and arrived once.
    pub transit: Option<Transit>,
    /// Where packets of its queue pair found most before them, over the whole run.
    pub links: Vec<Link>,
}

/// Why a packet was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Lost,
    Dropped,
    Discarded,
    Spurious,
    /// It is not known by the end of the run.
    Open,
}

impl Packets {
    pub(crate) fn of(life: &Life<'_>, results: &Results) -> Self {
        let own = || life.during().filter(|s| s.kind == Kind::Data && life.own.contains(&s.seq));
        let count = |what: EventKind| own().filter(|s| s.what == what).count() as u64;
        let told = |kind: Kind| {
            let of =
                |what: EventKind| life.during().filter(|s| s.what == what && s.kind == kind).count() as u64;
            Told {
                sent: of(EventKind::FeedbackSent),
                made: of(EventKind::Made),
                blocked: of(EventKind::Blocked),
                received: of(EventKind::FeedbackReceived),
            }
        };
        let reasons = reasons(life);
        let of = |reason: Reason| reasons.values().flatten().filter(|r| **r == reason).count() as u64;
        let resent = Resends {
            total: count(EventKind::Resent),
            lost: of(Reason::Lost),
            dropped: of(Reason::Dropped),
            discarded: of(Reason::Discarded),
            spurious: of(Reason::Spurious),
        };
        Packets {
            sent: count(EventKind::Sent) + resent.total,
            copies: own().filter(|s| s.copy).count() as u64,
            resent,
            lost: count(EventKind::Lost),
            dropped: count(EventKind::Dropped),
            ahead: life.during().filter(|s| is_ahead(life, s)).count() as u64,
            most_ahead: life.during().filter(|s| is_ahead(life, s)).map(|s| s.ahead).max().unwrap_or(0),
            nacks: told(Kind::Nack),
            cnps: told(Kind::Cnp),
            timeouts: life.during().filter(|s| s.what == EventKind::TimedOut).count() as u64,
            pauses: life.during().filter(|s| s.what == EventKind::Paused).count() as u64,
            rate: rate(life),
            transit: transit(life),
            links: links(life, results),
        }
    }
}

/// A packet of the flow has arrived out of order: kept, or thrown away.
pub(crate) fn is_ahead(life: &Life<'_>, step: &Step) -> bool {
    let early = step.what == EventKind::Ahead || step.what == EventKind::Discarded && step.ahead > 0;
    early && life.own.contains(&step.seq)
}

/// Why each packet was sent again, each time: what was needed first, and what came twice last.
pub(crate) fn reasons(life: &Life<'_>) -> BTreeMap<u64, Vec<Reason>> {
    #[derive(Default)]
    struct Fate {
        resent: usize,
        copies: usize,
        lost: usize,
        dropped: usize,
        discarded: usize,
        duplicate: usize,
    }
    let mut fates: BTreeMap<u64, Fate> = BTreeMap::new();
    // What became of a copy may be known only after the flow's end.
    for step in life.steps.iter().filter(|s| s.kind == Kind::Data && life.own.contains(&s.seq)) {
        let fate = fates.entry(step.seq).or_default();
        match step.what {
            EventKind::Resent if step.at <= life.end => fate.resent += 1,
            _ if step.copy => fate.copies += 1,
            EventKind::Lost => fate.lost += 1,
            EventKind::Dropped => fate.dropped += 1,
            EventKind::Discarded => fate.discarded += 1,
            EventKind::Duplicate => fate.duplicate += 1,
            _ => {}
        }
    }
    fates.retain(|_, fate| fate.resent > 0);
    fates
        .into_iter()
        .map(|(seq, fate)| {
            // A duplicate may be that of a copy made on purpose.
            let spurious = fate.duplicate.saturating_sub(fate.copies).min(fate.resent);
            let mut reasons = Vec::new();
            let needed = fate.resent - spurious;
            for (reason, n) in [
                (Reason::Lost, fate.lost),
                (Reason::Dropped, fate.dropped),
                (Reason::Discarded, fate.discarded),
            ] {
                let n = n.min(needed - reasons.len());
                reasons.resize(reasons.len() + n, reason);
            }
            reasons.resize(needed, Reason::Open);
            reasons.resize(fate.resent, Reason::Spurious);
            (seq, reasons)
        })
        .collect()
}

fn rate(life: &Life<'_>) -> Rate {
    let mut counted = BTreeMap::<Kept, u64>::new();
    for cut in &life.cuts {
        if (life.start..=life.end).contains(&life.steps[cut.seen].at) {
            cut.by.iter().for_each(|by| *counted.entry(*by).or_default() += 1);
        }
    }
    let (mut first, mut least): (Option<f64>, Option<f64>) = (None, None);
    for step in life.during() {
        if step.starts() && life.own.contains(&step.seq) {
            first = first.or(step.gbps);
        }
        if first.is_some()
            && let Some(gbps) = step.gbps
        {
            least = Some(least.map_or(gbps, |least| least.min(gbps)));
        }
    }
    Rate {
        line_gbps: life.line_rate().as_gbps(),
        first_gbps: first,
        least_gbps: least,
        cuts: counted.into_iter().map(|(by, times)| Cuts { by, times }).collect(),
    }
}

fn transit(life: &Life<'_>) -> Option<Transit> {
    // By packet: sent, arrived, and how often each.
    let mut of: BTreeMap<u64, ([u32; 2], [Time; 2])> = BTreeMap::new();
    for step in life.during().filter(|s| s.kind == Kind::Data && life.own.contains(&s.seq)) {
        let end = match step.what {
            EventKind::Sent | EventKind::Resent => 0,
            EventKind::Arrived | EventKind::Ahead | EventKind::Discarded | EventKind::Duplicate => 1,
            _ => continue,
        };
        let (times, at) = of.entry(step.seq).or_default();
        times[end] += 1;
        at[end] = step.at;
    }
    let once = of.iter().filter(|(_, (times, _))| *times == [1, 1]);
    let took: Vec<(u64, Time, Time)> = once.map(|(seq, (_, at))| (*seq, at[0], at[1].since(at[0]))).collect();
    let (psn, sent, most) = took.iter().rev().max_by_key(|(.., time)| *time).copied()?;
    let sum: u64 = took.iter().map(|(.., time)| time.ps()).sum();
    Some(Transit {
        ideal_us: life.crossing(life.wire().max_frame()).as_us(),
        mean_us: sum as f64 / took.len() as f64 / 1e6,
        most_us: most.as_us(),
        most_psn: u64::from(model::Psn::from_seq(psn).value()),
        most_sent_us: sent.as_us(),
    })
}

/// Where its packets found most before them, all of them together.
fn links(life: &Life<'_>, results: &Results) -> Vec<Link> {
    let listed = || {
        let table = results.table("paths")?;
        let (qps, packets) = (table.counts("qp")?, table.counts("packets")?);
        let (from, to) = (table.texts("from")?, table.texts("to")?);
        let (rate, mean) = (table.reals("rate_gbps")?, table.reals("mean_queue_bytes")?);
        let most = table.counts("max_queue_bytes")?;
        let drain = |bytes: f64, row: usize| bytes * 8e-3 / rate.value(row).max(1e-9);
        let rows = (0..table.rows()).filter(|&row| qps.value(row) == life.flow.qp);
        let link = |row: usize| Link {
            from: from.value(row).to_owned(),
            to: to.value(row).to_owned(),
            packets: packets.value(row),
            mean_wait_us: drain(mean.value(row), row),
            most_wait_us: drain(most.value(row) as f64, row),
        };
        Some(rows.map(link).filter(|link| link.mean_wait_us > 0.0).collect::<Vec<_>>())
    };
    let mut links = listed().unwrap_or_default();
    let waited = |link: &Link| link.mean_wait_us * link.packets as f64;
    let all: f64 = links.iter().map(waited).sum();
    links.retain(|link| waited(link) >= all * WORTH_LISTING);
    links.sort_by(|a, b| waited(b).total_cmp(&waited(a)));
    links.truncate(LINKS);
    links
}
