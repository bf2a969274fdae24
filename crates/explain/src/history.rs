//! A flow with its plan and the events of its queue pair.

use crate::cuts::Cut;
use crate::flow::{Flow, ps};
use crate::trace::Step;
use model::{LinkId, Plan, QpId, Time, Wire};
use std::ops::Range;

/// A flow with its plan and events: the input of all parts of an explanation.
pub(crate) struct History<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) flow: &'a Flow,
    /// All events of the flow's queue pair.
    pub(crate) steps: &'a [Step],
    pub(crate) qp: QpId,
    /// Unwrapped PSNs of the flow's packets.
    pub(crate) own: Range<u64>,
    /// Numbers of the messages of the queue pair.
    pub(crate) messages: Range<u32>,
    pub(crate) start: Time,
    pub(crate) received: Option<Time>,
    pub(crate) acked: Option<Time>,
    /// Time of the last ACK, or the end of the run.
    pub(crate) end: Time,
    /// Cuts of the queue pair's rate; empty if its congestion control reads every ACK.
    pub(crate) cuts: Vec<Cut>,
}

impl<'a> History<'a> {
    /// The history of `flow`; `None` if the plan does not contain the flow, or the flow never began.
    pub(crate) fn new(
        plan: &'a Plan,
        flow: &'a Flow,
        steps: &'a [Step],
        cuts: Vec<Cut>,
        run_end_us: f64,
    ) -> Option<Self> {
        let qp = QpId(u32::try_from(flow.qp).ok()?);
        let messages = plan.qps.get(qp.index())?.messages.clone();
        let number = u32::try_from(flow.flow).ok().filter(|number| messages.contains(number))?;
        let packets = |m: u32| plan.wire.packets(plan.messages[m as usize].bytes);
        let first: u64 = (messages.start..number).map(packets).sum();
        let start = ps(flow.start_us?);
        let (received, acked) = (flow.received_us.map(ps), flow.acked_us.map(ps));
        let end = acked.unwrap_or_else(|| ps(run_end_us)).max(start);
        let own = first..first + packets(number);
        Some(History { plan, flow, steps, qp, own, messages, start, received, acked, end, cuts })
    }

    pub(crate) fn wire(&self) -> &Wire {
        &self.plan.wire
    }

    /// Frame size of a packet of the queue pair without preamble and gap, bytes.
    pub(crate) fn frame(&self, seq: u64) -> u32 {
        let wire = self.wire();
        let mut end = 0;
        for m in self.messages.clone() {
            let bytes = self.plan.messages[m as usize].bytes;
            end += wire.packets(bytes);
            if seq + 1 == end {
                return wire.data_frame(wire.payload_of(bytes, wire.packets(bytes) - 1));
            }
            if seq < end {
                break;
            }
        }
        wire.max_frame()
    }

    /// The message that a packet of the queue pair belongs to.
    pub(crate) fn message_of(&self, seq: u64) -> Option<u32> {
        let mut end = 0;
        self.messages.clone().find(|&m| {
            end += self.wire().packets(self.plan.messages[m as usize].bytes);
            seq < end
        })
    }

    /// Shortest time from the start of a frame to its arrival at the receiver.
    pub(crate) fn crossing(&self, frame: u32) -> Time {
        let qp = &self.plan.qps[self.qp.index()];
        scenario::ideal::crossing(self.plan, qp.from, qp.to, frame)
    }

    /// Shortest time from the start of a frame at the receiver to its arrival at the sender.
    pub(crate) fn crossing_back(&self, frame: u32) -> Time {
        let qp = &self.plan.qps[self.qp.index()];
        scenario::ideal::crossing(self.plan, qp.to, qp.from, frame)
    }

    /// Rate of the sender's port.
    pub(crate) fn line_rate(&self) -> model::Rate {
        self.plan.fabric.uplink(self.plan.qps[self.qp.index()].from).rate
    }

    /// Time by which a packet occupies the sender's port longer than at line rate, because a failure slows the port.
    pub(crate) fn slowed(&self, step: &Step) -> Time {
        let uplink = LinkId(self.plan.qps[self.qp.index()].from.0);
        let rate = self.plan.failures.rate(&self.plan.fabric, uplink, step.at);
        let time = |rate| self.wire().transmission(rate, self.frame(step.seq));
        time(rate).since(time(self.line_rate()))
    }

    /// Events from the flow's start to its end.
    pub(crate) fn during(&self) -> impl Iterator<Item = &'a Step> {
        let (start, end) = (self.start, self.end);
        self.steps.iter().filter(move |step| (start..=end).contains(&step.at))
    }
}
