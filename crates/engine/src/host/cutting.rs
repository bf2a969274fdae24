//! What a cut takes from the messages of a host, see [`crate::cut`].

use super::nic::Host;
use crate::cut::{Period, Refusal};
use crate::outcome::Control;
use crate::setup::Setup;
use model::transport::{Receiver, Sender};
use model::{Congestion, Granter, MessageId, Parts, QpId, Steering, Time};

impl<P: Parts> Host<P> {
    /// Most periods that the messages under way at this host may leave out; [`u64::MAX`] if there is none.
    pub(crate) fn periods(&self, setup: &Setup<'_>, period: &Period) -> Result<u64, Refusal> {
        let queues = self.receive_queue.is_some()
            || self.ingress.is_some()
            || self.ports.is_some()
            || self.classes.is_some();
        let timed = self.self_cnps.is_some() || self.message_turns.is_some() || !self.granter.is_idle();
        if queues || timed {
            return Err(Refusal::Nic);
        }
        let Control { nack, cnp, timeout, .. } = self.control;
        if nack + cnp + timeout + self.data.retransmitted > 0 || self.heard.cnps > 0 {
            return Err(Refusal::History);
        }
        let mut most = u64::MAX;
        for (out, queue) in self.outgoing.iter().zip(&self.send_queues) {
            // A record has the time for which a slow pace held its message.
            let slow =
                self.outbound.get(queue.current as usize).is_some_and(|of| of.record.slow > Time::ZERO);
            if queue.posted > 0 && (slow || !out.congestion.is_at_rest()) {
                return Err(Refusal::Control);
            }
            if queue.acked == queue.posted {
                continue;
            }
            let Some(&packets) = period.packets.get(&out.qp) else { return Err(Refusal::Waits) };
            if !out.steering.is_passive() || out.steering.deadline() != Time::NEVER {
                return Err(Refusal::Steering);
            }
            let first = match queue.current.checked_sub(queue.first + 1) {
                Some(_) => self.outbound[queue.current as usize - 1].end,
                None => 0,
            };
            let position = out.sender.position();
            if setup.posted(out.qp).is_some() || position.una < first || position.high >= out.current_end {
                return Err(Refusal::Short);
            }
            // The last period is sent.
            let periods = ((out.current_end - position.high) / packets).saturating_sub(1);
            if !out.sender.may_shorten() {
                return Err(Refusal::Sender);
            }
            most = most.min(periods);
        }
        Ok(most)
    }

    /// Shortens the messages under way by what they send in so many periods, and adds them to `made`. Requires that
    /// [`Host::periods`] allows it.
    pub(crate) fn leave_out(
        &mut self,
        setup: &Setup<'_>,
        (period, periods): (&Period, u64),
        made: &mut Vec<(MessageId, u64)>,
    ) {
        for (out, queue) in self.outgoing.iter_mut().zip(&self.send_queues) {
            let Some(packets) = period.packets.get(&out.qp).map(|packets| packets * periods) else {
                continue;
            };
            out.sender.shorten(packets);
            out.current_end -= packets;
            if queue.first + queue.acked >= queue.current {
                out.acked_end -= packets;
            }
            let end = (queue.first + queue.count) as usize;
            self.outbound[queue.current as usize..end].iter_mut().for_each(|message| message.end -= packets);
            let first = setup.plan.qps[out.qp.index()].messages.start;
            made.push((MessageId(first + queue.current - queue.first), packets));
        }
        for (qp, incoming) in (self.first_incoming..).zip(&mut self.incoming) {
            if let Some(packets) = period.packets.get(&QpId(qp)) {
                incoming.message_end -= packets * periods;
                debug_assert!(incoming.receiver.standing().expected < incoming.message_end);
            }
        }
    }
}
