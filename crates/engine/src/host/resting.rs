//! Which queue pairs would forget a message that is alone on its path, see [`crate::live::Live::forgets`].

use super::nic::Host;
use crate::books::Tally;
use model::transport::Sender;
use model::{Congestion, Granter, HostId, Parts, Plan, QpId, Steering, Time};

/// Time from which nothing but unused timers is under way, if nothing more is posted, ps. `None` if a frame still is: the last ACK of the
/// last message may overtake a CNP, or a duplicate.
pub(crate) fn quiet_from<'h, P: Parts + 'h>(
    plan: &Plan,
    hosts: impl Iterator<Item = &'h Host<P>>,
    outside: impl Iterator<Item = Tally>,
) -> Option<u64> {
    let (mut all, mut last) = (Tally::default(), 0);
    outside.for_each(|tally| all.merge(&tally));
    for host in hosts {
        all.data.merge(&host.data);
        all.control.merge(&host.control);
        last = last.max(host.last_event);
    }
    // A pause or a resume has no fate in the books. It waits for a frame at most, and crosses one link.
    let slack = |link: &model::fabric::Link| {
        2 * plan.wire.transmission(link.rate, plan.wire.max_frame()).ps() + link.delay.ps()
    };
    let crossing =
        if all.control.pause == 0 { 0 } else { plan.fabric.links().iter().map(slack).max().unwrap_or(0) };
    all.is_settled().then_some(last + crossing)
}

impl<P: Parts> Host<P> {
    /// Its number.
    pub(crate) const fn id(&self) -> HostId {
        self.id
    }

    /// True if an idle queue pair that this host sends would be as it is after a message that met nobody, but for its numbers.
    pub(crate) fn forgets(&self, qp: QpId, now: Time) -> bool {
        let Some(slot) = self.outgoing.iter().position(|out| out.qp == qp) else { return false };
        let (out, queue) = (&self.outgoing[slot], &self.send_queues[slot]);
        self.keeps_nothing()
            && queue.acked == queue.posted
            && out.next_at <= now.ps()
            && self.classes.as_ref().is_none_or(|classes| classes.are_free(now.ps()))
            && out.steering.is_passive()
            && out.steering.deadline() == Time::NEVER
            && out.sender.may_shorten()
            && out.congestion.forgets_sending(now)
    }

    /// True if its NIC has no state but that of its queue pairs and of the pace of its classes, and if none of its queue pairs has repeated
    /// a packet or asked for one.
    pub(crate) fn keeps_nothing(&self) -> bool {
        let complaints =
            self.control.nack + self.heard.nacks + self.control.timeout + self.data.retransmitted;
        complaints == 0
            && self.receive_queue.is_none()
            && self.ingress.is_none()
            && self.ports.is_none()
            && self.message_turns.is_none()
            && self.self_cnps.is_none()
            && self.granter.is_idle()
    }
}
