//! A port with little to do in a visit of [`super::local`]: its queue of data is empty and stays short, or it is paused.
//! Mostly one to four packets leave by it.

use super::departures::{close_lane, count_sent, lay_on_lane, reach};
use super::lanes::add_with;
use super::line::{self, LOW, WHOLE_TICKS, departure, instant, key, time};
use super::local::{CNPS, DATA, Play, REPLIES};
use super::port::{LOSSY, TAPPED, UNCHARGED};
use model::{Annex, Packet, Parcel};

/// Up to this many arrivals of data, the queue is measured whenever a packet leaves it. Our choice.
const COUNTED: usize = 8;

impl<A: Annex> Play<'_, A> {
    /// Computes port `p` if its packets are of at most two classes and its queue stays short. Returns false for other ports.
    #[inline(always)]
    pub(super) fn short(&mut self, p: usize) -> bool {
        match self.classes_of_short(p) {
            None => false,
            Some([first, second]) => {
                self.compute_short(p, [first, second]);
                true
            }
        }
    }

    /// The classes of the port's packets, by priority. The second class has all packets if there is only one class.
    #[inline(always)]
    fn classes_of_short(&self, p: usize) -> Option<[usize; 2]> {
        let port = &self.ports[p];
        let unusual = port.is(LOSSY | TAPPED | UNCHARGED) || port.delay >= line::LONGEST;
        if A::TELEMETRY || unusual || self.is_framed(p) || !self.made.is_empty() {
            return None;
        }
        let [data, replies, cnps] =
            [DATA, REPLIES, CNPS].map(|class| self.layer.line(p, class).packets.len());
        let (free, paused) = (port.data.is_empty(), port.paused());
        if data == 0 && (free || paused) {
            return Some([CNPS, REPLIES]);
        }
        let longest = data as u64 * u64::from(self.out.setup.largest_frame);
        let is_counted = longest <= port.most_waiting || data <= COUNTED;
        let is_short = free && !paused && longest <= port.unmarked.into() && is_counted;
        match (replies, cnps) {
            _ if !is_short => None,
            (_, 0) => Some([REPLIES, DATA]),
            (0, _) => Some([CNPS, DATA]),
            _ => None,
        }
    }

    #[inline(always)]
    fn compute_short(&mut self, p: usize, classes: [usize; 2]) {
        if !self.sorted {
            for class in classes {
                self.layer.line_mut(p, class).sort(self.room, self.shift);
            }
        }
        let (opened, out) = (self.out.window.opened, &mut self.out);
        let port = &mut self.ports[p];
        let [first, second] = classes.map(|class| &self.layer.line(p, class).packets[..]);
        // A large annex goes from its place onto the lane.
        let mut lane = if A::LARGE { out.open_lane(p) } else { Vec::new() };
        if !A::LARGE && self.sent.len() < first.len() + second.len() {
            self.sent.resize((first.len() + second.len()).next_power_of_two(), Parcel::default());
        }
        let (costs, end) = (out.setup.costs(port.row), instant(out.window.length));
        let mut limit = self.middle.unwrap_or(end);
        let (from, span) = out.lane_span(p);
        let (reach, far) = (reach(port, opened, from), span << Packet::TIME_SHIFT);
        let (mut free, mut sum) = (departure(port.busy.saturating_sub(opened)), 0u64);
        let (mut i, mut j, mut control) = (0, 0, 0);
        let (mut next_first, mut next_second) = (key(first, 0), key(second, 0));
        let mut most = 0;
        loop {
            let at_second = free.max(next_second);
            let is_first = next_first < at_second;
            let event = if is_first { free.max(next_first) } else { at_second };
            if event >= limit {
                if limit == end {
                    break;
                }
                // The bytes of data that wait at the middle of the visit.
                let arrived = second[j..].iter().take_while(|pkt| pkt.word() < limit && classes[1] == DATA);
                self.bytes_before += port.waiting + arrived.map(|pkt| u64::from(pkt.frame())).sum::<u64>();
                limit = end;
                continue;
            }
            let sent = i + j;
            let pkt = if is_first {
                i += 1;
                next_first = key(first, i);
                &first[i - 1]
            } else {
                if next_second < free && second.len() <= COUNTED {
                    let queue = second[j..].iter().take_while(|pkt| pkt.word() < free);
                    most = most.max(queue.map(|pkt| pkt.frame()).sum());
                }
                j += 1;
                next_second = key(second, j);
                &second[j - 1]
            };
            let cost = costs[pkt.frame() as usize];
            free = (event & WHOLE_TICKS) + cost;
            sum = sum.wrapping_add(cost);
            control += u64::from(!pkt.is_data());
            let word = ((free & WHOLE_TICKS) >> 1).wrapping_add(reach) | pkt.word() & LOW;
            let label = pkt.label.with_word(word);
            let (annex, holder) = self.shelf.holder(&pkt.annex);
            if A::LARGE
                && let Some(holder) = holder
            {
                add_with(&mut lane, label, &holder.annex, out.unit);
            } else {
                self.sent[sent] = Parcel { label, annex: *annex };
            }
        }
        let sent = i + j;
        if sent > 0 {
            count_sent(port, opened + time(free), sum, sent as u64);
            out.tally.control_hops += control;
            if !A::LARGE {
                lay_on_lane(out, p, port, &self.sent[..sent], far);
            }
        }
        if A::LARGE {
            close_lane(out, p, port, lane, far);
        }
        for (class, left) in classes.into_iter().zip([i, j]) {
            self.keep(p, class, left);
        }
        let port = &mut self.ports[p];
        if classes[1] == DATA {
            port.most_waiting = port.most_waiting.max(port.waiting).max(most.into());
        }
        self.note_queues(p);
    }
}
