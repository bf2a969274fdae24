//! The earliest events of a queue pair at a node. An engine may compute the ports of a node one after the other, so the
//! events do not come in order of time.

use crate::gentle::Gentle;
use crate::outcome::Event;
use model::{NodeId, QpId, Time};

/// Events kept beyond those asked for, until the latest are dropped together. Our choice.
const MORE: usize = 64;

/// The order of events in the results: events at one instant have the same order on every engine.
type Order = (QpId, Time, NodeId, crate::outcome::EventKind, u8, u32, u64);

pub(super) fn order(event: &Event) -> Order {
    (event.qp, event.at, event.node, event.what, event.kind as u8, event.psn.value(), event.value)
}

/// The earliest events, and the number of all.
#[derive(Debug, Default)]
pub(super) struct Earliest {
    kept: Vec<Event>,
    /// Events later than this one are no longer needed.
    last: Option<Order>,
    pub(super) seen: u64,
}

impl Earliest {
    /// Adds an event; at least the `most` earliest are kept.
    pub(super) fn add(&mut self, event: Event, most: usize) {
        self.seen += 1;
        if most == 0 || self.last.is_some_and(|last| order(&event) > last) {
            return;
        }
        self.kept.make_room();
        self.kept.push(event);
        if self.kept.len() > most + most / 4 + MORE {
            self.kept.sort_unstable_by_key(order);
            self.kept.truncate(most);
            self.last = self.kept.last().map(order);
        }
    }

    /// The events kept, in any order.
    pub(super) fn kept(&self) -> &[Event] {
        &self.kept
    }

    pub(super) fn capacity(&self) -> usize {
        self.kept.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::EventKind;
    use model::{Kind, Psn};

    fn event(at: u64) -> Event {
        let (qp, node, at) = (QpId(0), NodeId(0), Time(at));
        let what = EventKind::Lost;
        Event { qp, at, node, what, kind: Kind::Data, psn: Psn::new(0), value: 0, ready: at }
    }

    /// Two ports of a switch, one after the other: the second one's events are earlier.
    #[test]
    fn events_that_come_late_push_out_later_ones() {
        let mut earliest = Earliest::default();
        for at in (0..1000).map(|n| 2 * n + 1).chain((0..1000).map(|n| 2 * n)) {
            earliest.add(event(at), 10);
        }
        let mut kept: Vec<u64> = earliest.kept().iter().map(|event| event.at.ps()).collect();
        kept.sort_unstable();
        assert_eq!(kept[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert!(kept.len() <= 10 + 2 + MORE && earliest.seen == 2000);
        let mut none = Earliest::default();
        none.add(event(1), 0);
        assert!(none.kept().is_empty() && none.seen == 1);
    }
}
