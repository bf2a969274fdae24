//! Which replies answer which flow.
//!
//! Requests carry the responder's queue pair number, and replies that of the requester. No packet carries both, so the pair is
//! learnt from a reply: the flow has the same UDP source port (Linux derives it alike at both ends of a connection) and has a
//! packet under way that the reply can answer, and its replies are not known yet. Several replies narrow the choice down. A
//! choice that stays open means that the replies pass unaltered.

use crate::counters::Counters;
use crate::frame::Roce;
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::Psn;
use wire::bth::Qpn;

/// A stream of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// Address of the end that sends the requests.
    pub requester: IpAddr,
    /// Address of the end that answers them.
    pub responder: IpAddr,
    /// Queue pair of the responder.
    pub qp: Qpn,
}

impl Flow {
    /// The flow of a request.
    pub(crate) fn of(request: &Roce) -> Self {
        Flow { requester: request.source, responder: request.destination, qp: request.qp }
    }
}

/// One end of a flow.
pub(crate) trait End {
    /// UDP source port of its packets.
    fn port(&self) -> u16;

    /// True if a reply with this PSN can answer it.
    fn may_answer(&self, psn: Psn) -> bool;

    /// Requester's queue pair, once it is known.
    fn paired(&mut self) -> &mut Option<Qpn>;
}

/// Replies by responder, requester and the requester's queue pair.
type Name = (IpAddr, IpAddr, Qpn);

/// The pairs of one NIC in one direction.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    replies: BTreeMap<Name, Answers>,
}

#[derive(Debug)]
enum Answers {
    One(Flow),
    OneOf(Vec<Flow>),
}

/// Most flows of a NIC in each direction. Our choice: more than a host of the lab has; further flows pass unaltered.
pub(crate) const MOST_FLOWS: usize = 4096;
/// Most streams of replies that are noted: two for each flow that a NIC has room for.
const MOST: usize = 2 * MOST_FLOWS;

impl Pairing {
    /// The flow that a reply answers, if it is known already.
    pub(crate) fn known(&self, reply: &Roce) -> Option<Flow> {
        match self.replies.get(&name(reply))? {
            Answers::One(flow) => Some(*flow),
            Answers::OneOf(_) => None,
        }
    }

    /// The flow that a reply answers, as far as this and earlier replies tell.
    pub(crate) fn find<E: End>(
        &mut self,
        reply: &Roce,
        flows: &mut BTreeMap<Flow, E>,
        counters: &mut Counters,
    ) -> Option<Flow> {
        if let Some(flow) = self.known(reply) {
            if flows.get(&flow).is_some_and(|end| end.may_answer(reply.psn)) {
                return Some(flow);
            }
            self.forget(flow, flows.get_mut(&flow), counters);
        }
        let key = |qp| Flow { requester: reply.destination, responder: reply.source, qp };
        let between = key(Qpn::new(0))..=key(Qpn::new(u32::MAX));
        let open: Vec<_> = flows
            .range_mut(between)
            .filter_map(|(flow, end)| {
                let open = end.paired().is_none() && end.may_answer(reply.psn);
                open.then(|| (*flow, end.port() == reply.port))
            })
            .collect();
        let same_port = open.iter().any(|(_, same)| *same);
        let mut found: Vec<_> =
            open.into_iter().filter(|(_, same)| *same == same_port).map(|(flow, _)| flow).collect();
        if let Some(Answers::OneOf(before)) = self.replies.get(&name(reply))
            && found.iter().any(|flow| before.contains(flow))
        {
            found.retain(|flow| before.contains(flow));
        }
        let answers = match found[..] {
            [] => return None,
            [flow] => {
                counters.learnt += 1;
                *flows.get_mut(&flow)?.paired() = Some(reply.qp);
                Answers::One(flow)
            }
            _ => Answers::OneOf(found),
        };
        if self.replies.len() < MOST || self.replies.contains_key(&name(reply)) {
            self.replies.insert(name(reply), answers);
        }
        self.known(reply)
    }

    /// Forgets which replies answer a flow.
    pub(crate) fn forget<E: End>(&mut self, flow: Flow, end: Option<&mut E>, counters: &mut Counters) {
        if let Some(end) = end {
            *end.paired() = None;
        }
        let before = self.replies.len();
        self.replies.retain(|_, answers| !matches!(answers, Answers::One(of) if *of == flow));
        counters.unlearnt += (before - self.replies.len()) as u64;
    }
}

fn name(reply: &Roce) -> Name {
    (reply.source, reply.destination, reply.qp)
}
