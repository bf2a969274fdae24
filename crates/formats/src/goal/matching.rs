//! Which receive gets which message.

use super::{ANY, Kind, Operation, Schedule};
use std::collections::{BTreeMap, VecDeque};

/// An operation of a schedule: rank, and index in the rank's program.
pub type Place = (u32, u32);

/// Pairs of sends and receives.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// Send and receive, in the order of the receives.
    pub pairs: Vec<(Place, Place)>,
    /// Receives without a message.
    pub starving: Vec<Place>,
    /// Messages that are never received.
    pub unread: Vec<Place>,
    /// Pairs whose sizes differ.
    pub unequal: Vec<(Place, Place)>,
    /// Receives of any source or any tag for which messages of several sources or tags were left.
    pub ambiguous: Vec<Place>,
}

/// Sends to one receiver that have no receive yet, by source and tag, in the order of the file.
type Inbox = BTreeMap<(u32, u32), VecDeque<u32>>;

/// Pairs every receive with a send of the same source and tag; both are taken in the order of the file. Receives of any source
/// or tag come after all others of their rank, and take what stands nearest to the start of its sender's program.
pub fn matching(schedule: &Schedule) -> Matching {
    let mut inboxes: BTreeMap<u32, Inbox> = BTreeMap::new();
    for (&rank, program) in &schedule.programs {
        for (index, send) in (0..).zip(&program.operations).filter(|(_, o)| o.kind == Kind::Send) {
            let inbox = inboxes.entry(send.peer).or_default();
            inbox.entry((rank, send.tag)).or_default().push_back(index);
        }
    }
    let mut matching = Matching::default();
    let is_exact = |o: &Operation| o.peer != ANY && o.tag != ANY;
    for (&rank, program) in &schedule.programs {
        let inbox = inboxes.entry(rank).or_default();
        let receives = || (0u32..).zip(&program.operations).filter(|(_, o)| o.kind == Kind::Receive);
        let exact = receives().filter(|(_, o)| is_exact(o));
        for (index, receive) in exact.chain(receives().filter(|(_, o)| !is_exact(o))) {
            let place = (rank, index);
            let found = match is_exact(receive) {
                true => take(inbox, (receive.peer, receive.tag)).or_else(|| take(inbox, (receive.peer, ANY))),
                false => {
                    let (found, several) = take_any(inbox, receive);
                    if several {
                        matching.ambiguous.push(place);
                    }
                    found
                }
            };
            let Some(send) = found else {
                matching.starving.push(place);
                continue;
            };
            if schedule.programs[&send.0].operations[send.1 as usize].size != receive.size {
                matching.unequal.push((send, place));
            }
            matching.pairs.push((send, place));
        }
    }
    let left = |inbox: &Inbox| -> Vec<Place> {
        inbox.iter().flat_map(|(&(rank, _), sends)| sends.iter().map(move |&index| (rank, index))).collect()
    };
    matching.unread = inboxes.values().flat_map(left).collect();
    matching
}

/// Takes the first message of a source and tag.
fn take(inbox: &mut Inbox, key: (u32, u32)) -> Option<Place> {
    let sends = inbox.get_mut(&key)?;
    let index = sends.pop_front()?;
    if sends.is_empty() {
        inbox.remove(&key);
    }
    Some((key.0, index))
}

/// Takes a message for a receive of any source or tag. True if another source or tag would fit, too.
fn take_any(inbox: &mut Inbox, receive: &Operation) -> (Option<Place>, bool) {
    let fits = |&(source, tag): &(u32, u32)| {
        (receive.peer == ANY || receive.peer == source)
            && (receive.tag == ANY || tag == ANY || receive.tag == tag)
    };
    let all = || inbox.iter().filter(|(key, _)| fits(key));
    let several = all().nth(1).is_some();
    let first = all().min_by_key(|(key, sends)| (sends.front().copied(), key.0)).map(|(key, _)| *key);
    (first.and_then(|key| take(inbox, key)), several)
}
