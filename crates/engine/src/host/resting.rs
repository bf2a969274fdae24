//! Which queue pairs would forget a message that is alone on its path, see [`crate::live::Live::forgets`].

use super::nic::Host;
use model::transport::Sender;
use model::{Congestion, Granter, HostId, Parts, QpId, Steering, Time};

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

    /// True if its NIC has no state but that of its queue pairs and of the pace of its classes.
    pub(crate) fn keeps_nothing(&self) -> bool {
        self.receive_queue.is_none()
            && self.ingress.is_none()
            && self.ports.is_none()
            && self.message_turns.is_none()
            && self.self_cnps.is_none()
            && self.granter.is_idle()
    }
}
