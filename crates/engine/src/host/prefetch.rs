//! Prefetches: reads that bring state into the caches before it is needed. They only save time.

use super::nic::Host;
use super::timers::Timer;
use crate::setup::Setup;
use model::congestion::Congestion;
use model::transport::{Receiver, Sender};
use model::{Dialogue, Packet, Parcel, Parts, Steering};

/// Queue pairs whose state stays cached while all other hosts take their turns: 4 kB of a second-level cache of 1
/// MB for each of 256 hosts. Our choice.
const FEW: usize = 32;

impl<P: Parts> Host<P> {
    /// Prefetches the state of a queue pair whose packet will arrive soon.
    #[inline]
    pub(crate) fn prefetch(&self, setup: &Setup<'_>, pkt: &Packet) {
        match self.received_by(pkt.qp()) {
            None => self.prefetch_outgoing(setup.sender_slot[pkt.qp().index()]),
            Some(incoming) if P::Annex::SACKS => incoming.receiver.fetch(),
            Some(incoming) => {
                std::hint::black_box(incoming.receiver.standing().expected);
            }
        }
    }

    /// Prefetches what arrivals, departures and timers before `close` need, at most this many `departures`. First come the words that
    /// lead to all else, so that the processor fetches them side by side.
    pub(crate) fn prefetch_all(
        &self,
        setup: &Setup<'_>,
        arrivals: &[Parcel<P::Annex>],
        close: u64,
        departures: usize,
    ) {
        for pkt in arrivals {
            match self.received_by(pkt.qp()) {
                None => self.prefetch_line(setup.sender_slot[pkt.qp().index()]),
                Some(incoming) => {
                    let index = pkt.qp().0.wrapping_sub(self.first_incoming) as usize;
                    let armed = self.reply_timers.get(index).map(|timer| timer.armed);
                    std::hint::black_box((incoming.message_end, armed));
                }
            }
        }
        let turns = || self.ready.most().take(departures).take_while(|turn| turn.at < close);
        turns().for_each(|turn| self.prefetch_line(turn.slot));
        // The answer to a receiver's probe needs no more.
        let needs_more = |pkt: &&Parcel<P::Annex>| pkt.psn() != Packet::PROBE;
        arrivals.iter().filter(needs_more).for_each(|pkt| self.prefetch(setup, pkt));
        turns().for_each(|turn| self.prefetch_outgoing(turn.slot));
        for timer in self.timers.most_before(close) {
            match timer {
                Timer::Reply(index) => self.incoming[index as usize].receiver.fetch(),
                Timer::Retransmit(slot) => self.prefetch_outgoing(slot),
                _ => {}
            }
        }
    }

    /// Reads a word of the state of a queue pair that leads to all else.
    #[inline]
    fn prefetch_line(&self, slot: u32) {
        if let Some(out) = self.outgoing.get(slot as usize) {
            std::hint::black_box((out.next_at, out.armed));
        }
    }

    /// Reads a word of most cache lines that a visit of a host with few queue pairs needs.
    #[inline]
    pub(crate) fn fetch(&self) {
        let (data, control) = (self.data.accepted, self.control.arrived);
        std::hint::black_box((data, control, self.last_event, self.full_time, self.timers.first()));
        if let Some(incoming) = self.incoming.first() {
            std::hint::black_box((incoming.receiver.standing().expected, incoming.message_end));
            if P::Annex::SACKS {
                incoming.receiver.fetch();
            }
        }
        self.prefetch_outgoing(0);
    }

    /// True if the host has too many queue pairs for their state to stay cached.
    #[inline]
    pub(crate) fn crowded(&self) -> bool {
        self.outgoing.len() + self.incoming.len() > FEW
    }

    /// Prefetches state that a queue pair will need soon. The state of hundreds of queue pairs exceeds the first-level
    /// caches, so without the prefetch a host would wait for memory at every packet and every ACK.
    #[inline]
    pub(super) fn prefetch_outgoing(&self, slot: u32) {
        if let Some(out) = self.outgoing.get(slot as usize) {
            if P::Annex::SACKS {
                out.sender.fetch();
                out.congestion.fetch();
                out.steering.fetch();
            }
            // These fields lie in different cache lines.
            std::hint::black_box((out.sender.position().una, out.armed));
        }
    }
}
