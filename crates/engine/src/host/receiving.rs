//! The packets of a queue pair at its receiver.

use super::ingress::Ingress;
use super::nic::{Abroad, Host, Replies};
use super::ports::End;
use super::queue_pair::Incoming;
use crate::setup::Setup;
use model::annex::Request;
use model::transport::{Arrived, Fate, Inbound, Plain, Receiver, Reply};
use model::{Dialogue, Granter, HostId, Kind, Packet, Parcel, Parts, Plan, QpId, Stamped, Time};

/// What a packet causes at its receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// The reply to make, and whether it carries the packet's mark.
    pub(crate) reply: Option<Reply>,
    pub(crate) echo: bool,
    /// True if a CNP goes back.
    pub(crate) cnp: bool,
    /// True if [`Host::complete`] must follow.
    pub(crate) whole: bool,
}

impl<P: Parts> Host<P> {
    /// Adds the receiving side of a queue pair; called in the order of queue pairs.
    pub(super) fn add_incoming(&mut self, setup: &Setup<'_>, parts: &P, id: QpId) {
        let plan = setup.plan;
        let qp = &plan.qps[id.index()];
        if self.incoming.is_empty() {
            self.first_received = qp.messages.start;
        }
        self.received.resize((qp.messages.end - self.first_received) as usize, Time::NEVER);
        let mut message_end = u64::MAX;
        if !qp.messages.is_empty() {
            message_end = plan.wire.packets(plan.messages[qp.messages.start as usize].bytes);
        }
        if let Some(interval) = parts.cnp_interval_of_port(id) {
            self.cnp_ports.get_or_insert_default().add(plan.class_of(id).into(), interval);
        }
        if let Some((interval, above)) = parts.self_cnp(id) {
            self.self_cnps.get_or_insert_default().add(plan.class_of(id).into(), interval, above);
        }
        if let Some(losses) = parts.ingress_losses(id) {
            let none = || Box::new(Ingress::new(plan.seed, self.id));
            self.ingress.get_or_insert_with(none).add(plan.class_of(id).into(), losses);
        }
        let (receiver, from) = (parts.receiver(plan, id), self.first_source(setup, id));
        self.incoming.push(Incoming { receiver, message_end, message: qp.messages.start, from });
        let end = End::Receiver(self.incoming.len() as u32 - 1);
        self.expect_port_status(setup, parts.port_notice(id), end);
        self.watch_arrivals(setup, id);
    }

    /// Takes an unmarked data packet that needs nothing but a reply; returns the reply, and whether [`Host::complete`] must
    /// follow. For any other packet it changes nothing and returns `None`. Requires [`Host::may_run_ahead`].
    #[inline(always)]
    pub(crate) fn on_plain(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        pkt: &Parcel<P::Annex>,
    ) -> Option<(Parcel<P::Annex>, bool)> {
        if pkt.marked() || pkt.annex.notice().is_some() || pkt.annex.is_copy() {
            return None;
        }
        let qp = pkt.qp();
        let incoming = &mut self.incoming[(qp.0 - self.first_incoming) as usize];
        let Plain { psn, nack, out_of_order } = incoming.receiver.on_plain(pkt.psn())?;
        self.last_event = now;
        self.liveness.last_progress = now;
        self.data.accepted += 1;
        self.data.out_of_order += u64::from(out_of_order);
        self.control.nack += u64::from(nack);
        self.control.ack += u64::from(!nack);
        self.control.created += 1;
        let kind = if nack { Kind::Nack } else { Kind::Ack };
        let label = Packet::new(kind, qp, incoming.from.to(), psn, setup.plan.wire.ack);
        let annex = incoming.answer(Time(now + self.clock), &pkt.annex, pkt.marked(), pkt.ingress());
        Some((Parcel { label, annex }, incoming.receiver.standing().completed >= incoming.message_end))
    }

    /// Takes a data packet in a run with SACKs. The result affects no departure before the packet. Requires
    /// [`Host::may_run_ahead`].
    #[inline(always)]
    pub(crate) fn on_sacked(&mut self, setup: &Setup<'_>, now: u64, pkt: &Parcel<P::Annex>) -> Received {
        self.last_event = now;
        self.receive::<false>(setup, now, pkt)
    }

    /// Handles a data packet, or the headers of a data packet that a switch has cut (`CUT`).
    #[inline(always)]
    pub(super) fn receive<const CUT: bool>(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        pkt: &Parcel<P::Annex>,
    ) -> Received {
        let qp = pkt.qp();
        let incoming = &mut self.incoming[(qp.0 - self.first_incoming) as usize];
        let notice = pkt.annex.notice();
        let noted = !self.arrivals_of.is_empty();
        let expected = if noted { incoming.receiver.standing().expected } else { 0 };
        let marked = pkt.marked();
        let inbound = match notice {
            None if CUT => Inbound::Headers { psn: pkt.psn(), marked, last_hop: pkt.echo() },
            None => {
                let Request { asks, envelope, .. } = pkt.annex.request();
                let (psn, frame, last) = (pkt.psn(), pkt.frame(), pkt.last());
                Inbound::Data(Arrived { psn, frame, marked, last, asks, envelope })
            }
            Some(notice) => Inbound::Notice { notice, marked },
        };
        self.heard.marked += u64::from(marked && !CUT);
        let (mut got, standing) = incoming.receiver.on_arrival(Time(now), inbound);
        if got.cnp
            && let Some(ports) = &mut self.cnp_ports
        {
            got.cnp = ports.may_send(Time(now), setup.plan.class_of(qp).into(), pkt.ingress().index());
        }
        if let Some(own) = &mut self.self_cnps {
            let (class, port) = (setup.plan.class_of(qp).into(), pkt.ingress().index());
            let bytes = u64::from(pkt.frame() + self.gap);
            got.cnp |= own.on_data(Time(now), class, port, bytes, (qp.0 - self.first_incoming) as usize);
        }
        let mut whole = false;
        match got.fate {
            _ if CUT => self.data.headers_arrived += 1,
            _ if notice.is_some() => self.data.noticed += 1,
            Fate::Accepted => {
                self.data.accepted += 1;
                self.liveness.last_progress = now;
                whole = standing.completed >= incoming.message_end;
            }
            Fate::Duplicate => {
                self.data.duplicate += 1;
                // Where a message has begun anew, a packet that arrived before may complete it.
                whole = standing.completed >= incoming.message_end;
                // Of a packet and its copy, the later arrival is no spurious retransmission.
                if !pkt.annex.is_copy() {
                    match self.copies {
                        0 => self.data.spurious += 1,
                        _ => self.copies -= 1,
                    }
                }
            }
            Fate::Discarded => self.data.discarded += 1,
        }
        if got.out_of_order {
            self.data.out_of_order += 1;
            if setup.several_classes {
                let class = usize::from(setup.plan.class_of(qp));
                if self.out_of_order.len() <= class {
                    self.out_of_order.resize(class + 1, 0);
                }
                self.out_of_order[class] += 1;
            }
        }
        if noted {
            if notice.is_none() && !CUT {
                self.note_arrival(setup, now, expected, pkt, &got);
            }
            self.note_feedback_sent(setup, now, pkt, &got);
        }
        if pkt.annex.is_copy() && got.fate == Fate::Accepted && !CUT {
            self.copies += 1;
        }
        self.data.reorder_sum += if notice.is_none() && !CUT { standing.held } else { 0 };
        self.data.reorder_peak = self.data.reorder_peak.max(standing.held);
        self.arm_receiver(now, standing.deadline, qp.0 - self.first_incoming, pkt);
        if !self.granter.is_idle() {
            self.ask_granter(now, pkt);
        }
        Received { reply: got.reply, echo: got.echo, cnp: got.cnp, whole }
    }

    /// [`Host::make_reply`] where replies are rare.
    #[inline(never)]
    fn reply(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        pkt: &Parcel<P::Annex>,
        reply: Reply,
        echo: bool,
    ) -> Parcel<P::Annex> {
        self.make_reply(setup, now, pkt, reply, echo)
    }

    /// Makes the reply to a packet that has just been received.
    #[inline(always)]
    pub(crate) fn make_reply(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        pkt: &Parcel<P::Annex>,
        reply: Reply,
        echo: bool,
    ) -> Parcel<P::Annex> {
        let qp = pkt.qp();
        let index = qp.0 - self.first_incoming;
        let incoming = &self.incoming[index as usize];
        let (to, port) = self.back(incoming.from, pkt.ingress(), End::Receiver(index));
        let annex = incoming.answer(Time(now + self.clock), &pkt.annex, pkt.marked(), port);
        let label = self.label(setup, qp, to, reply).with_echo(echo).arriving(0, port);
        Parcel { label, annex }
    }

    /// Makes the answers to a packet that has just been received.
    pub(crate) fn replies(
        &mut self,
        setup: &Setup<'_>,
        now: u64,
        pkt: &Parcel<P::Annex>,
        got: Received,
    ) -> Replies<P::Annex> {
        let reply = got.reply.map(|reply| self.reply(setup, now, pkt, reply, got.echo));
        let cnp = got.cnp.then(|| {
            self.control.cnp += 1;
            self.control.created += 1;
            let index = pkt.qp().0 - self.first_incoming;
            let from = self.incoming[index as usize].from;
            let (to, port) = self.back(from, pkt.ingress(), End::Receiver(index));
            let label = Packet::new(Kind::Cnp, pkt.qp(), to, pkt.psn(), setup.plan.wire.cnp);
            Parcel::bare(label.arriving(0, port))
        });
        [reply, cnp]
    }

    /// True if the headers of a cut packet go back to their sender.
    pub(super) fn returns(&self, pkt: &Parcel<P::Annex>) -> bool {
        let incoming = &self.incoming[(pkt.qp().0 - self.first_incoming) as usize];
        pkt.annex.notice().is_none() && incoming.receiver.returns_headers()
    }

    /// Sends the headers of a cut packet back to their sender.
    #[inline(never)]
    pub(super) fn return_header(&mut self, now: u64, pkt: &Parcel<P::Annex>) -> Replies<P::Annex> {
        let index = pkt.qp().0 - self.first_incoming;
        let from = self.incoming[index as usize].from;
        let (to, port) = self.back(from, pkt.ingress(), End::Receiver(index));
        self.data.headers_arrived += 1;
        self.control.returned += 1;
        self.control.returned_bytes += u64::from(pkt.frame());
        self.control.created += 1;
        let annex = pkt.annex.returned(Time(now + self.clock), pkt.marked(), pkt.echo());
        if !self.granter.is_idle() {
            self.ask_granter(now, pkt);
        }
        let label = Packet::new(Kind::Control, pkt.qp(), to, pkt.psn(), pkt.frame());
        [Some(Parcel { label: label.arriving(0, port), annex }), None]
    }

    /// Makes and counts the label of a reply.
    #[inline]
    pub(super) fn label(&mut self, setup: &Setup<'_>, qp: QpId, to: HostId, reply: Reply) -> Packet {
        let (kind, psn) = match reply {
            Reply::Ack(psn) => (Kind::Ack, psn),
            Reply::Nack(psn) => (Kind::Nack, psn),
        };
        match kind {
            Kind::Nack => self.control.nack += 1,
            _ => self.control.ack += 1,
        }
        self.control.created += 1;
        Packet::new(kind, qp, to, psn, setup.plan.wire.ack)
    }

    /// Whether an arrival may end a message, if it is the `nth` of the host from its present state on. It may not if this returns
    /// false.
    pub(crate) fn may_end_message(&self, setup: &Setup<'_>, pkt: &Parcel<P::Annex>, nth: u64) -> bool {
        match pkt.kind() {
            Kind::Data => {
                let incoming = &self.incoming[(pkt.qp().0 - self.first_incoming) as usize];
                let (standing, kept) = (incoming.receiver.standing(), incoming.receiver.kept());
                standing.completed.saturating_add(kept).saturating_add(nth) >= incoming.message_end
            }
            Kind::Ack | Kind::Nack => self.may_end_sent(setup, pkt),
            Kind::Cnp => false,
            _ => true,
        }
    }

    /// Expects the newest posted message of a queue pair.
    pub(crate) fn expect(&mut self, setup: &Setup<'_>, qp: QpId) {
        let incoming = &mut self.incoming[(qp.0 - self.first_incoming) as usize];
        if let Some(newest) = setup.posted(qp).and_then(<[_]>::last)
            && incoming.message_end == u64::MAX
        {
            incoming.message_end = newest.end;
        }
    }

    /// Gives the messages to this host the numbers of a plan that has the posted messages, too.
    pub(crate) fn renumber(&mut self, setup: &Setup<'_>, grown: &Plan) {
        let range = self.first_incoming..self.first_incoming + self.incoming.len() as u32;
        let (old, first) = (std::mem::take(&mut self.received), self.first_received);
        for qp in range.map(QpId) {
            if qp.0 == self.first_incoming {
                self.first_received = grown.qps[qp.index()].messages.start;
            }
            match setup.posted(qp) {
                Some(posted) => self.received.extend(posted.iter().map(|message| message.received)),
                None => {
                    let mine = setup.plan.qps[qp.index()].messages.clone();
                    let mine = (mine.start - first) as usize..(mine.end - first) as usize;
                    self.received.extend_from_slice(&old[mine]);
                }
            }
        }
    }

    /// Notes the messages of `qp` that have now fully arrived, and fires their triggers.
    #[inline(never)]
    pub(crate) fn complete(&mut self, setup: &Setup<'_>, now: u64, qp: QpId) {
        let plan = setup.plan;
        let incoming = &mut self.incoming[(qp.0 - self.first_incoming) as usize];
        let completed = incoming.receiver.standing().completed;
        if let Some(posted) = setup.posted(qp) {
            let first = plan.qps[qp.index()].messages.start;
            while completed >= incoming.message_end {
                self.abroad.push(Abroad::Received(qp));
                incoming.message += 1;
                let next = posted.get((incoming.message - first) as usize);
                incoming.message_end = next.map_or(u64::MAX, |next| next.end);
            }
            return;
        }
        while completed >= incoming.message_end {
            let message = &plan.messages[incoming.message as usize];
            self.received[(incoming.message - self.first_received) as usize] = Time(now);
            let triggers =
                &plan.triggers[message.on_received.start as usize..message.on_received.end as usize];
            self.freed.extend_from_slice(triggers);
            incoming.message += 1;
            if incoming.message < plan.qps[qp.index()].messages.end {
                incoming.message_end += plan.wire.packets(plan.messages[incoming.message as usize].bytes);
            } else {
                incoming.message_end = u64::MAX;
            }
        }
        self.fire(setup, now);
    }
}
