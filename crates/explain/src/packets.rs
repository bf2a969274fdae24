//! What happened to a flow's packets, and which rate its sender was allowed.

use crate::cause::Cause;
use crate::history::History;
use crate::links::{Loads, Pauses};
use crate::lost::LostOn;
use crate::trace::Step;
use engine::outcome::EventKind;
use model::{Kind, LinkId, Time};
use results::Results;
use serde::Serialize;
use std::collections::BTreeMap;

/// Most links in the list. Our choice.
const LINKS: usize = 5;
/// Smallest share of the total wait that puts a link on the list. Our choice.
const WORTH_LISTING: f64 = 0.01;

/// Retransmissions of a flow by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resends {
    /// Total number.
    pub total: u64,
    /// Retransmissions of packets lost on a link.
    pub lost: u64,
    /// Retransmissions of packets dropped for lack of buffer.
    pub dropped: u64,
    /// Retransmissions of packets that a switch trimmed.
    pub cut: u64,
    /// Retransmissions of packets that the receiver discarded because they arrived ahead of the ePSN.
    pub discarded: u64,
    /// Retransmissions of packets that arrived twice, because the first copy was only late, or had arrived already.
    pub spurious: u64,
    /// Of these, retransmissions of packets that had arrived already.
    pub arrived: u64,
}

/// Counts of the NACKs, or the CNPs, of the flow's queue pair from its start to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Feedback {
    /// Sent by the receiver.
    pub sent: u64,
    /// Made by the scheme.
    pub made: u64,
    /// Blocked by the scheme.
    pub blocked: u64,
    /// Received by the sender.
    pub received: u64,
}

/// Number of rate cuts with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cuts {
    /// CNPs, NACKs or timeouts.
    pub by: Cause,
    /// Number of cuts.
    pub times: u64,
}

/// The rate that congestion control allowed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Rate of the sender's port.
    pub line_gbps: f64,
    /// Rate after the first packet; null if none was sent.
    pub first_gbps: Option<f64>,
    /// Lowest rate; null if no packet was sent.
    pub least_gbps: Option<f64>,
    /// Cuts by cause.
    pub cuts: Vec<Cuts>,
}

/// Transit times of the packets that were sent once and arrived once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Transit {
    /// Transit time of a full frame on an idle fabric.
    pub ideal_us: f64,
    /// Mean transit time.
    pub mean_us: f64,
    /// Longest transit time.
    pub most_us: f64,
    /// PSN of the packet with the longest transit time.
    pub most_psn: u64,
    /// Time at which that packet was sent.
    pub most_sent_us: f64,
}

/// An egress link of a switch that packets of the queue pair took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Switch.
    pub from: String,
    /// Neighbour at the other end.
    pub to: String,
    /// Packets of the queue pair that took the link.
    pub packets: u64,
    /// Mean queue that these packets met, as the time that the link needs to send it.
    pub mean_wait_us: f64,
    /// Longest queue that one of these packets met, as the time that the link needs to send it.
    pub most_wait_us: f64,
}

/// What happened to a flow's packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Packets {
    /// Packets put on the wire, retransmissions and copies included.
    pub sent: u64,
    /// Deliberate copies by the scheme.
    pub copies: u64,
    /// Retransmissions by reason.
    pub resent: Resends,
    /// Packets lost on links.
    pub lost: u64,
    /// The links that lost them, those with the most packets first.
    pub lost_on: Vec<LostOn>,
    /// Packets dropped for lack of buffer.
    pub dropped: u64,
    /// Packets that switches trimmed.
    pub cut: u64,
    /// Packets that arrived with a PSN above the ePSN.
    pub ahead: u64,
    /// Longest distance of an arriving packet from the ePSN, in packets.
    pub most_ahead: u64,
    /// NACKs of the flow's queue pair.
    pub nacks: Feedback,
    /// CNPs of the flow's queue pair.
    pub cnps: Feedback,
    /// Retransmission timeouts of the flow's queue pair.
    pub timeouts: u64,
    /// Number of pauses of the sender's port.
    pub pauses: u64,
    /// Rate that congestion control allowed.
    pub rate: Rate,
    /// Transit times; null if no packet was sent once and arrived once.
    pub transit: Option<Transit>,
    /// Why the sender's port and links on the way were paused in the run, the longest pause first.
    pub held_up: Vec<Pauses>,
    /// Links with the longest queues that packets of the flow's queue pair met, over the whole run.
    pub links: Vec<Link>,
}

/// Reason of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Lost,
    Dropped,
    Cut,
    Discarded,
    /// Spurious: an earlier copy was on its way.
    Late,
    /// Spurious: an earlier copy had arrived.
    Arrived,
    /// The run ended before the reason was known.
    Open,
}

impl Packets {
    pub(crate) fn of(history: &History<'_>, results: &Results) -> Self {
        let own = || history.during().filter(|s| s.kind == Kind::Data && history.own.contains(&s.seq));
        let count = |what: EventKind| own().filter(|s| s.what == what).count() as u64;
        let feedback = |kind: Kind| {
            let of = |what: EventKind| {
                history.during().filter(|s| s.what == what && s.kind == kind).count() as u64
            };
            Feedback {
                sent: of(EventKind::FeedbackSent),
                made: of(EventKind::Made),
                blocked: of(EventKind::Blocked),
                received: of(EventKind::FeedbackReceived),
            }
        };
        let reasons = reasons(history);
        let of = |reason: Reason| reasons.values().flatten().filter(|r| **r == reason).count() as u64;
        let resent = Resends {
            total: count(EventKind::Resent),
            lost: of(Reason::Lost),
            dropped: of(Reason::Dropped),
            cut: of(Reason::Cut),
            discarded: of(Reason::Discarded),
            spurious: of(Reason::Late) + of(Reason::Arrived),
            arrived: of(Reason::Arrived),
        };
        Packets {
            sent: count(EventKind::Sent) + resent.total,
            copies: own().filter(|s| s.copy).count() as u64,
            resent,
            lost: count(EventKind::Lost),
            lost_on: LostOn::all(history),
            dropped: count(EventKind::Dropped),
            cut: count(EventKind::Cut),
            ahead: history.during().filter(|s| is_ahead(history, s)).count() as u64,
            most_ahead: history.during().filter(|s| is_ahead(history, s)).map(|s| s.ahead).max().unwrap_or(0),
            nacks: feedback(Kind::Nack),
            cnps: feedback(Kind::Cnp),
            timeouts: history.during().filter(|s| s.what == EventKind::TimedOut).count() as u64,
            pauses: history.during().filter(|s| s.what == EventKind::Paused).count() as u64,
            rate: rate(history),
            transit: transit(history),
            held_up: held_up(history, results),
            links: links(history, results),
        }
    }
}

/// True if a packet of the flow arrived out of order, whether the receiver kept or discarded it.
pub(crate) fn is_ahead(history: &History<'_>, step: &Step) -> bool {
    let early = step.what == EventKind::Ahead || step.what == EventKind::Discarded && step.ahead > 0;
    early && history.own.contains(&step.seq)
}

/// Reasons of all retransmissions of each packet: first of needed retransmissions, then of spurious ones.
pub(crate) fn reasons(history: &History<'_>) -> BTreeMap<u64, Vec<Reason>> {
    #[derive(Default)]
    struct Fate {
        /// Times of retransmissions.
        resent: Vec<Time>,
        /// Arrival of the first copy that the receiver kept.
        arrived: Option<Time>,
        copies: usize,
        lost: usize,
        dropped: usize,
        cut: usize,
        discarded: usize,
        duplicate: usize,
    }
    let mut fates: BTreeMap<u64, Fate> = BTreeMap::new();
    // The last copy of a packet may arrive after the flow's end.
    for step in history.steps.iter().filter(|s| s.kind == Kind::Data && history.own.contains(&s.seq)) {
        let fate = fates.entry(step.seq).or_default();
        match step.what {
            EventKind::Resent if step.at <= history.end => fate.resent.push(step.at),
            EventKind::Arrived | EventKind::Ahead if !step.copy => {
                fate.arrived = fate.arrived.or(Some(step.at))
            }
            _ if step.copy => fate.copies += 1,
            EventKind::Lost => fate.lost += 1,
            EventKind::Dropped => fate.dropped += 1,
            EventKind::Cut => fate.cut += 1,
            EventKind::Discarded => fate.discarded += 1,
            EventKind::Duplicate => fate.duplicate += 1,
            _ => {}
        }
    }
    fates.retain(|_, fate| !fate.resent.is_empty());
    fates
        .into_iter()
        .map(|(seq, fate)| {
            // A duplicate may be a deliberate copy.
            let spurious = fate.duplicate.saturating_sub(fate.copies).min(fate.resent.len());
            let mut reasons = Vec::new();
            let needed = fate.resent.len() - spurious;
            for (reason, n) in [
                (Reason::Lost, fate.lost),
                (Reason::Dropped, fate.dropped),
                (Reason::Cut, fate.cut),
                (Reason::Discarded, fate.discarded),
            ] {
                let n = n.min(needed - reasons.len());
                reasons.resize(reasons.len() + n, reason);
            }
            reasons.resize(needed, Reason::Open);
            let had_arrived = |sent: &Time| fate.arrived.is_some_and(|arrived| arrived <= *sent);
            reasons.extend(fate.resent[needed..].iter().map(|sent| match had_arrived(sent) {
                true => Reason::Arrived,
                false => Reason::Late,
            }));
            (seq, reasons)
        })
        .collect()
}

fn rate(history: &History<'_>) -> Rate {
    let mut counted = BTreeMap::<Cause, u64>::new();
    for cut in &history.cuts {
        if (history.start..=history.end).contains(&history.steps[cut.seen].at) {
            cut.by.iter().for_each(|by| *counted.entry(*by).or_default() += 1);
        }
    }
    let (mut first, mut least): (Option<f64>, Option<f64>) = (None, None);
    for step in history.during() {
        if step.starts() && history.own.contains(&step.seq) {
            first = first.or(step.gbps);
        }
        if first.is_some()
            && let Some(gbps) = step.gbps
        {
            least = Some(least.map_or(gbps, |least| least.min(gbps)));
        }
    }
    Rate {
        line_gbps: history.line_rate().as_gbps(),
        first_gbps: first,
        least_gbps: least,
        cuts: counted.into_iter().map(|(by, times)| Cuts { by, times }).collect(),
    }
}

fn transit(history: &History<'_>) -> Option<Transit> {
    // By packet: how often it was sent and how often it arrived, and the last time of each.
    let mut of: BTreeMap<u64, ([u32; 2], [Time; 2])> = BTreeMap::new();
    for step in history.during().filter(|s| s.kind == Kind::Data && history.own.contains(&s.seq)) {
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
        ideal_us: history.crossing(history.wire().max_frame()).as_us(),
        mean_us: sum as f64 / took.len() as f64 / 1e6,
        most_us: most.as_us(),
        most_psn: u64::from(model::Psn::from_seq(psn).value()),
        most_sent_us: sent.as_us(),
    })
}

/// Most causes of pauses that are told. Our choice.
const CHAINS: usize = 3;

/// Why links that the queue pair's packets took, and its sender's port, were paused: one chain for each cause.
fn held_up(history: &History<'_>, results: &Results) -> Vec<Pauses> {
    let Some(loads) = Loads::of(history.plan, results) else { return Vec::new() };
    let uplink = LinkId(history.plan.qps[history.qp.index()].from.0);
    let mut links = vec![uplink];
    if let Some(table) = results.table("paths")
        && let (Some(qps), Some(ids)) = (table.counts("qp"), table.counts("link"))
    {
        let rows = (0..table.rows()).filter(|&row| qps.value(row) == history.flow.qp);
        links.extend(rows.map(|row| LinkId(ids.value(row) as u32)));
    }
    links.sort_by(|a, b| loads.paused_us(*b).total_cmp(&loads.paused_us(*a)).then(a.cmp(b)));
    let mut chains: Vec<Pauses> = Vec::new();
    for pauses in links.into_iter().filter_map(|link| Pauses::of(history.plan, &loads, link)) {
        // A longer chain to the same cause tells more.
        match chains.iter_mut().find(|known| known.cause == pauses.cause) {
            Some(known) if known.paused.len() < pauses.paused.len() => *known = pauses,
            Some(_) => {}
            None => chains.push(pauses),
        }
    }
    chains.truncate(CHAINS);
    chains
}

/// The links with the largest total wait of the queue pair's packets.
fn links(history: &History<'_>, results: &Results) -> Vec<Link> {
    let listed = || {
        let table = results.table("paths")?;
        let (qps, packets) = (table.counts("qp")?, table.counts("packets")?);
        let (from, to) = (table.texts("from")?, table.texts("to")?);
        let (ids, mean) = (table.counts("link")?, table.reals("mean_queue_bytes")?);
        let most = table.counts("max_queue_bytes")?;
        // The rate of the link in the time of the flow.
        let (plan, start, end) = (history.plan, history.start, history.end);
        let rate =
            |row: usize| plan.failures.mean_rate(&plan.fabric, LinkId(ids.value(row) as u32), start, end);
        let drain = |bytes: f64, row: usize| bytes * 8e6 / rate(row).max(1.0);
        let rows = (0..table.rows()).filter(|&row| qps.value(row) == history.flow.qp);
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
