//! `verb = "read"`: messages that their receivers ask for.
//!
//! A READ is two messages of the plan: the request, on a queue pair of its own from the receiver of the data to its owner, and the
//! data, which starts when the request has arrived. What starts the message starts the request, and what waits for its end waits for the
//! arrival of the data. The results show both as one flow.

use super::laid::{DraftMessage, DraftWhole, Event, Graph, Item};
use super::split::Added;
use crate::footprint::{Exists, MemoryBudget};
use finding::{Finding, code};
use model::{Fabric, HostId, NodeId, Time};
use std::collections::BTreeMap;

/// Bytes that a request carries: an RDMA extended transport header (RETH; InfiniBand Architecture).
pub(crate) const REQUEST: u64 = 16;

/// Turns the messages that a job has added into READs. Each queue pair has at most `limit` of them under way.
pub(crate) fn apply(
    graph: &mut Graph,
    added: Added,
    limit: Option<u8>,
    fabric: &Fabric,
    memory: &mut MemoryBudget,
    path: &str,
) -> Result<(), Finding> {
    let (first, end) = (added.message as u32, graph.messages.len() as u32);
    let reads = u64::from(end - first);
    memory.add_messages(reads, reads, path.to_owned(), Exists::Now)?;
    memory.add_triggers(2 * reads, path.to_owned())?;
    let is_read = |m: u32| (first..end).contains(&m);
    let node = |host: HostId| fabric.node_of(host);
    // The host that sees an event, and the host that starts an item.
    let at = |graph: &Graph, event: Event| -> NodeId {
        match event {
            Event::Received(m) => node(graph.messages[m as usize].to),
            Event::Acked(m) => node(graph.messages[m as usize].from),
            Event::Done(t) => graph.tasks[t as usize].node,
        }
    };
    let starts = |graph: &Graph, item: Item| -> NodeId {
        match item {
            Item::Message(m) => node(graph.messages[m as usize].from),
            Item::Task(t) => graph.tasks[t as usize].node,
        }
    };
    let mut next: BTreeMap<(HostId, HostId, u32, u16, u32), Vec<u32>> = BTreeMap::new();
    for m in first..end {
        let request = graph.messages.len() as u32;
        let response = &mut graph.messages[m as usize];
        let DraftMessage { from, to, lane, line, fresh_qp, .. } = *response;
        next.entry((from, to, lane, line, if fresh_qp { m + 1 } else { 0 })).or_default().push(m);
        let asks = DraftMessage { from: to, to: from, bytes: REQUEST, asks: true, ..*response };
        response.start = Time::ZERO;
        graph.messages.push(asks);
        graph.wholes.push(DraftWhole { subflows: m..m + 1, request: Some(request) });
    }
    let request = |m: u32| end + (m - first);
    for i in added.cause..graph.causes.len() {
        let (cause, effect) = graph.causes[i];
        let cause = match cause {
            Event::Acked(m) if is_read(m) => Event::Received(m),
            cause => cause,
        };
        let effect = match effect {
            Item::Message(m) if is_read(m) => Item::Message(request(m)),
            effect => effect,
        };
        if at(graph, cause) != starts(graph, effect) {
            let text = "cannot be \"read\" here: hosts would have to tell one another when data is ready, which is not modelled";
            return Err(code::UNSUITED.at("verb", text));
        }
        graph.causes[i] = (cause, effect);
    }
    graph.causes.extend((first..end).map(|m| (Event::Received(request(m)), Item::Message(m))));
    for queue in next.values() {
        let later = queue.iter().skip(limit.map_or(queue.len(), usize::from));
        let pairs = queue.iter().zip(later);
        graph.causes.extend(pairs.map(|(m, later)| (Event::Received(*m), Item::Message(request(*later)))));
    }
    Ok(())
}
