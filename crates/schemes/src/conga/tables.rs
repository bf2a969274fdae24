//! CONGA header fields written by leaf switches, and the two tables of path congestion (CONGA, section 3.3).

use model::{PortIndex, Time};

/// Most bits of a metric.
pub(super) const MOST_BITS: u8 = 6;
const LEVEL: u64 = (1 << MOST_BITS) - 1;
/// Bits of a port number on a packet. The paper's LBTag has 4 bits: its leaves have up to 12 uplinks.
const PORT_BITS: u32 = 10;
const PORT: u64 = (1 << PORT_BITS) - 1;
const CE: u32 = PORT_BITS;
const FEEDBACK: u32 = CE + MOST_BITS as u32;
const FEEDBACK_BITS: u32 = PORT_BITS + MOST_BITS as u32;
const HAS_FEEDBACK: u32 = FEEDBACK + FEEDBACK_BITS;

/// Feedback: one metric on its way back to the leaf whose uplink it describes (FB_LBTag, FB_Metric).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathFeedback {
    pub(super) port: PortIndex,
    pub(super) level: u8,
}

impl PathFeedback {
    fn bits(self) -> u64 {
        u64::from(self.port.0) & PORT | (u64::from(self.level) & LEVEL) << PORT_BITS
    }

    fn of(bits: u64) -> PathFeedback {
        PathFeedback { port: PortIndex((bits & PORT) as u16), level: (bits >> PORT_BITS & LEVEL) as u8 }
    }

    /// Tag of a signal with this feedback; `rack` is the rack of the leaf that sends it.
    pub(super) fn tag_from(self, rack: u16) -> u64 {
        self.bits() | u64::from(rack) << FEEDBACK_BITS
    }

    pub(super) fn read_from(tag: u64) -> (u16, PathFeedback) {
        ((tag >> FEEDBACK_BITS) as u16, PathFeedback::of(tag))
    }
}

/// CONGA header of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Uplink by which the packet left its rack (LBTag).
    pub(super) lb_tag: PortIndex,
    /// Highest congestion on the path so far (CE).
    pub(super) ce: u8,
    pub(super) feedback: Option<PathFeedback>,
}

impl Header {
    pub(super) fn tag(self) -> u64 {
        let feedback = self.feedback.map_or(0, |feedback| feedback.bits() << FEEDBACK | 1 << HAS_FEEDBACK);
        u64::from(self.lb_tag.0) & PORT | (u64::from(self.ce) & LEVEL) << CE | feedback
    }

    pub(super) fn read(tag: u64) -> Header {
        Header {
            lb_tag: PortIndex((tag & PORT) as u16),
            ce: (tag >> CE & LEVEL) as u8,
            feedback: (tag >> HAS_FEEDBACK & 1 == 1).then(|| PathFeedback::of(tag >> FEEDBACK)),
        }
    }

    /// The tag after a link of congestion `level`.
    #[inline]
    pub(super) fn raised(tag: u64, level: u8) -> u64 {
        let ce = (tag >> CE & LEVEL).max(u64::from(level) & LEVEL);
        tag & !(LEVEL << CE) | ce << CE
    }
}

/// A metric and the time of its last update.
#[derive(Clone, Copy, Debug)]
struct Metric {
    level: u8,
    at: Time,
}

impl Metric {
    /// True if the metric has not aged.
    #[inline]
    fn is_fresh(&self, now: Time, ageing: Time) -> bool {
        now.since(self.at) < ageing
    }

    /// Time before which the metric does not age; `now` if that is unknown.
    fn holds_until(&self, now: Time, ageing: Time) -> Time {
        match self.level {
            0 => Time::NEVER,
            _ if self.is_fresh(now, ageing) => Time(self.at.ps().saturating_add(ageing.ps())),
            _ => now,
        }
    }

    /// The metric after ageing.
    #[inline]
    fn aged(&self, now: Time, ageing: Time) -> u8 {
        if self.is_fresh(now, ageing) {
            return self.level;
        }
        let ages = now.since(self.at).ps() / ageing.ps().max(1);
        self.level.checked_shr(ages.min(8) as u32).unwrap_or(0)
    }
}

/// Congestion-To-Leaf: feedback of the far leaves, by rack and own uplink.
#[derive(Clone, Debug)]
pub(super) struct ToLeaf {
    ports: usize,
    ageing: Time,
    /// Row by row, one row per rack.
    metrics: Vec<Metric>,
}

impl ToLeaf {
    pub(super) fn new(racks: usize, ports: usize, ageing: Time) -> Self {
        ToLeaf { ports, ageing, metrics: vec![Metric { level: 0, at: Time::ZERO }; racks * ports] }
    }

    fn place(&self, rack: u16, port: PortIndex) -> Option<usize> {
        (port.index() < self.ports).then(|| usize::from(rack) * self.ports + port.index())
    }

    pub(super) fn update(&mut self, rack: u16, feedback: PathFeedback, now: Time) {
        if let Some(metric) = self.place(rack, feedback.port).and_then(|place| self.metrics.get_mut(place)) {
            *metric = Metric { level: feedback.level, at: now };
        }
    }

    /// Newest feedback about the path over an uplink to a rack, aged; 0 without feedback.
    #[inline]
    pub(super) fn metric(&self, rack: u16, port: PortIndex, now: Time) -> u8 {
        let metric = self.place(rack, port).and_then(|place| self.metrics.get(place));
        metric.map_or(0, |metric| metric.aged(now, self.ageing))
    }
}

/// Entry of Congestion-From-Leaf.
#[derive(Clone, Copy, Debug)]
struct Entry {
    lb_tag: PortIndex,
    metric: Metric,
    /// Metric in the last feedback about this path.
    sent: Option<u8>,
}

/// Congestion of the paths from one rack.
#[derive(Clone, Debug, Default)]
struct RackPaths {
    /// In the order of LBTags; without those that no packet carried yet.
    entries: Vec<Entry>,
    /// LBTag at which the next search for feedback begins.
    next: PortIndex,
    /// Time before which no metric differs from its last feedback; zero if that is unknown.
    settled_until: Time,
    /// Time before which no signal is sent.
    quiet_until: Time,
}

/// Congestion-From-Leaf: congestion that data met on its path, by the rack it comes from and that rack's uplink.
#[derive(Clone, Debug)]
pub(super) struct FromLeaf {
    ageing: Time,
    rows: Vec<RackPaths>,
}

impl FromLeaf {
    pub(super) fn new(racks: usize, ageing: Time) -> Self {
        FromLeaf { ageing, rows: vec![RackPaths::default(); racks] }
    }

    pub(super) fn record(&mut self, rack: u16, lb_tag: PortIndex, ce: u8, now: Time) {
        let Some(row) = self.rows.get_mut(usize::from(rack)) else { return };
        let metric = Metric { level: ce, at: now };
        let at = row.entries.iter().position(|entry| entry.lb_tag >= lb_tag).unwrap_or(row.entries.len());
        match row.entries.get_mut(at).filter(|entry| entry.lb_tag == lb_tag) {
            Some(entry) => {
                entry.metric = metric;
                if entry.sent == Some(ce) {
                    return;
                }
            }
            None => row.entries.insert(at, Entry { lb_tag, metric, sent: None }),
        }
        row.settled_until = Time::ZERO;
    }

    /// True if a signal may be sent to that rack now.
    pub(super) fn may_signal(&self, rack: u16, now: Time) -> bool {
        self.rows.get(usize::from(rack)).is_some_and(|row| row.quiet_until <= now)
    }

    /// Notes that feedback went to that rack; no signal before `until`.
    pub(super) fn note_sent(&mut self, rack: u16, until: Time) {
        if let Some(row) = self.rows.get_mut(usize::from(rack)) {
            row.quiet_until = until;
        }
    }

    /// Next feedback for that rack: in turn, a metric that changed since it was last sent, else one that is not old.
    pub(super) fn next_feedback(&mut self, rack: u16, now: Time) -> Option<PathFeedback> {
        let ageing = self.ageing;
        let row = self.rows.get_mut(usize::from(rack))?;
        let later = row.entries.iter().position(|entry| entry.lb_tag >= row.next);
        let (middle, settled) = (later.unwrap_or(row.entries.len()), now < row.settled_until);
        let (mut changed, mut fresh, mut until) = (None, None, Time::NEVER);
        'search: for part in [middle..row.entries.len(), 0..middle] {
            for (i, Entry { metric, sent, .. }) in part.clone().zip(&row.entries[part]) {
                if !settled && *sent != Some(metric.aged(now, ageing)) {
                    changed = Some(i);
                    break 'search;
                }
                if fresh.is_none() && metric.is_fresh(now, ageing) {
                    fresh = Some(i);
                    if settled {
                        break 'search;
                    }
                }
                until = until.min(metric.holds_until(now, ageing));
            }
        }
        if !settled && changed.is_none() {
            row.settled_until = until;
        }
        let place = changed.or(fresh)?;
        let entry = &mut row.entries[place];
        row.next = PortIndex(entry.lb_tag.0 + 1);
        let level = entry.metric.aged(now, ageing);
        entry.sent = Some(level);
        Some(PathFeedback { port: entry.lb_tag, level })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::annex::TAG_BITS;

    const AGEING: Time = Time::from_us(500);

    fn us(n: u64) -> Time {
        Time::from_us(n)
    }

    #[test]
    fn every_field_survives_packing() {
        let feedback = PathFeedback { port: PortIndex(1023), level: 63 };
        let header = Header { lb_tag: PortIndex(1022), ce: 62, feedback: Some(feedback) };
        assert!(header.tag() >> TAG_BITS == 0);
        assert_eq!(Header::read(header.tag()), header);
        assert_eq!(Header::read(0), Header { lb_tag: PortIndex(0), ce: 0, feedback: None });
        assert!(feedback.tag_from(u16::MAX) >> TAG_BITS == 0);
        assert_eq!(PathFeedback::read_from(feedback.tag_from(u16::MAX)), (u16::MAX, feedback));
    }

    #[test]
    fn links_only_raise_the_congestion_on_a_packet() {
        let header = Header {
            lb_tag: PortIndex(7),
            ce: 3,
            feedback: Some(PathFeedback { port: PortIndex(1), level: 5 }),
        };
        assert_eq!(Header::read(Header::raised(header.tag(), 2)), header);
        assert_eq!(Header::read(Header::raised(header.tag(), 6)), Header { ce: 6, ..header });
    }

    #[test]
    fn a_metric_without_updates_halves_until_the_path_looks_idle() {
        let mut table = ToLeaf::new(3, 4, AGEING);
        table.update(2, PathFeedback { port: PortIndex(1), level: 7 }, us(10));
        let read = |at| table.metric(2, PortIndex(1), us(at));
        assert_eq!([10, 509, 510, 1009, 1010, 1510, 900_000].map(read), [7, 7, 3, 3, 1, 0, 0]);
        assert_eq!(table.metric(1, PortIndex(1), us(10)), 0);
    }

    #[test]
    fn feedback_outside_the_table_is_ignored() {
        let mut table = ToLeaf::new(2, 4, AGEING);
        table.update(1, PathFeedback { port: PortIndex(4), level: 7 }, us(1));
        table.update(9, PathFeedback { port: PortIndex(0), level: 7 }, us(1));
        assert!((0..10).all(|rack| (0..5).all(|port| table.metric(rack, PortIndex(port), us(1)) == 0)));
    }

    #[test]
    fn changed_metrics_go_first_and_then_all_in_turn() {
        let mut table = FromLeaf::new(2, AGEING);
        assert_eq!(table.next_feedback(1, us(0)), None);
        for (port, ce) in [(3, 1), (5, 2), (6, 3)] {
            table.record(1, PortIndex(port), ce, us(1));
        }
        let tell = |table: &mut FromLeaf, at| table.next_feedback(1, us(at)).map(|s| (s.port.0, s.level));
        assert_eq!([2, 3, 4].map(|at| tell(&mut table, at)), [Some((3, 1)), Some((5, 2)), Some((6, 3))]);
        assert_eq!([5, 6].map(|at| tell(&mut table, at)), [Some((3, 1)), Some((5, 2))]);
        table.record(1, PortIndex(3), 7, us(7));
        assert_eq!(tell(&mut table, 8), Some((3, 7)), "a changed metric goes first");
        assert_eq!(table.next_feedback(0, us(8)), None, "no feedback for the other rack");
        // 600 us later the metrics have halved and are sent once more. After that they are too old to repeat.
        let later: Vec<_> = (610..614).map(|at| tell(&mut table, at)).collect();
        assert_eq!(later, [Some((5, 1)), Some((6, 1)), Some((3, 3)), None]);
    }
}
