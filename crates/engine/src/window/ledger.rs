//! The charges of a lossless buffer in a heavy visit, computed before the ports.
//!
//! A buffer that drops nothing changes no departure of the visit: the pauses that it asks for take effect at the neighbours, in
//! a later window. So ports need not take turns, as in [`super::charged`]. The visit first finds out when each packet of data
//! departs. It then shows all charges and releases to the buffer in order of time, and notes the frames that ports owe. Where
//! no account can be paused or resumed on the way, sums are enough. Afterwards the ports are computed as in a light visit.

use super::lanes::bits;
use super::line::{self, LOW, NEVER, WHOLE_TICKS, departure, instant, key, place};
use super::local::{CNPS, DATA, Play, REPLIES};
use super::out::Out;
use super::port::{Port, TAPPED};
use super::setup::Setup;
use super::sums::recount;
use crate::buffer::{Account, Admission, Moved, Request};
use crate::cells::Place;
use crate::switch::{Egress, Switch};
use model::{Annex, Parcel, Parts, PortIndex};

/// Working memory of these visits.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: Vec<Entry>,
    in_order: Vec<Entry>,
    /// Number of entries in each bin of time, then the end of each bin.
    ends: Vec<u32>,
    /// Sums by account.
    moved: Vec<Moved>,
    /// When each wire is free, ps, in a visit in order of time.
    busy: Vec<u64>,
}

/// The charge of an arrival, or the start of a frame.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Place in the order of all events; [`START`] is set for a start.
    place: u64,
    frame: u32,
    /// The account that a start releases, or [`NONE`].
    account: u16,
    /// The port of a start.
    port: u16,
}

/// The bit of a start. A packet that starts when it arrives is charged first. Lower bits have the port.
const START: u64 = 1 << 16;
/// The account of a frame that the buffer does not charge.
const NONE: u16 = u16::MAX;
/// Up to this many ports with charged packets take turns: that costs less. Our choice, measured.
const FEW: u32 = 1;
/// Bits of the number of bins of time.
const BINS: u32 = 10;

impl<A: Annex> Play<'_, A> {
    /// Charges and releases all data of the visit, and notes the frames that ports owe. Returns false, and without effect, if the
    /// buffer may drop.
    #[inline(never)]
    pub(super) fn charges_apart<P: Parts<Annex = A>>(&mut self, switch: &mut Switch<P>) -> bool {
        let mut ledger = std::mem::take(self.ledger);
        ledger.clear(switch);
        let class = &self.out.setup.plan.classes.all()[self.out.setup.data_class];
        let mut apart = class.charged && class.cap.is_none();
        apart &= self.pauses.iter().all(|pause| self.ports[pause.port.index()].obeys_frames_alone());
        let mut ports = 0;
        for word in 0..self.layer.busy.len() {
            for p in bits(self.layer.busy[word], word * 64) {
                ports += u32::from(self.may_charge(p));
            }
        }
        apart &= ports > FEW;
        for word in 0..self.layer.busy.len() {
            for p in bits(self.layer.busy[word], word * 64) {
                if apart && self.may_charge(p) {
                    self.sort_lines(p);
                    self.note_port(p, &mut ledger);
                }
            }
        }
        apart = apart && switch.buffer.surely_admits(&ledger.moved);
        if apart && let Some(middle) = self.middle.take() {
            switch.buffer.sample_past(ledger.in_use_at(middle, switch.buffer.in_use()));
        }
        if apart && !switch.buffer.moves_unseen(&ledger.moved) {
            ledger.sort(self.out.window.length);
            self.show(&ledger.in_order, switch);
        }
        ledger.entries.clear();
        *self.ledger = ledger;
        apart
    }

    /// Notes the charges and the releases at port `p`.
    fn note_port(&self, p: usize, Ledger { entries, moved, .. }: &mut Ledger) {
        let (own, tie, opened) = (&self.ports[p], self.layer.tie, self.out.window.opened);
        let [data, replies, cnps] = [DATA, REPLIES, CNPS].map(|class| &self.layer.line(p, class).packets[..]);
        let first = entries.len();
        entries.extend(data.iter().map(|pkt| {
            let (frame, account) = (pkt.frame(), line::unkeyed(pkt.label, tie).ingress().0);
            moved[usize::from(account)].charged += u64::from(frame);
            Entry { place: place(pkt.word(), p), frame, account, port: 0 }
        }));
        let costs = self.out.setup.costs(own.row);
        let queued = own.data.packets();
        let mut free = departure(own.busy.saturating_sub(opened));
        let mut paused = own.paused();
        let (mut d, mut r, mut c) = (0usize, 0, 0);
        let mut run = |free: &mut u64, paused: bool, limit: u64| {
            loop {
                let next_data = match d.checked_sub(queued.len()) {
                    _ if paused => NEVER,
                    None => 0,
                    Some(d) => key(data, d),
                };
                let (next_reply, next_cnp) = (key(replies, r), key(cnps, c));
                let (event, frame);
                if next_cnp < (*free).max(next_reply.min(next_data)) {
                    event = (*free).max(next_cnp);
                    if event >= limit {
                        return;
                    }
                    frame = cnps[c].frame();
                    c += 1;
                } else if next_reply < (*free).max(next_data) {
                    event = (*free).max(next_reply);
                    if event >= limit {
                        return;
                    }
                    frame = replies[r].frame();
                    r += 1;
                } else {
                    event = (*free).max(next_data);
                    if event >= limit {
                        return;
                    }
                    let account = match d.checked_sub(queued.len()) {
                        None => {
                            frame = queued[d].frame();
                            queued[d].ingress().0
                        }
                        Some(d) => {
                            frame = data[d].frame();
                            entries[first + d].account
                        }
                    };
                    d += 1;
                    moved[usize::from(account)].released += u64::from(frame);
                    entries.push(Entry { place: place(event, p) | START, frame, account, port: p as u16 });
                }
                *free = (event & WHOLE_TICKS) + costs[frame as usize];
            }
        };
        for pause in self.pauses.iter().filter(|pause| pause.port.index() == p) {
            let after = pause.at - opened;
            run(&mut free, paused, instant(after));
            let resumed = paused && !pause.on;
            paused = pause.on;
            if resumed {
                if line::time(free) <= after {
                    free = instant(after);
                }
                run(&mut free, paused, instant(after) + 1);
            }
        }
        run(&mut free, paused, instant(self.out.window.length));
    }

    /// Shows all charges and releases to the buffer.
    fn show<P: Parts<Annex = A>>(&mut self, entries: &[Entry], switch: &mut Switch<P>) {
        for entry in entries {
            if entry.show(self.out.setup, switch) {
                let (port, is_start) = (usize::from(entry.account), entry.is_start());
                self.send_later((entry.place, (entry.place & (START - 1)) as usize), port, !is_start);
            }
        }
    }

    /// Sends a pause or resume frame by `port`, because of an event at port `p`, at the latest when `port` is computed.
    #[cold]
    fn send_later(&mut self, (key, p): (u64, usize), port: usize, on: bool) {
        let is_idle = self.layer.busy[port / 64] >> (port % 64) & 1 == 0;
        if is_idle {
            let (state, at) = (&self.ports[port], self.out.window.opened + line::time(key));
            self.out.send_pause(port, state, state.busy, at, 0, on);
        } else {
            self.owe((key, p), port, on);
        }
    }
}

impl Entry {
    fn is_start(&self) -> bool {
        self.place & START != 0
    }

    /// Shows a charge or a release to the buffer; true if the far end of the account must be paused, or resumed.
    #[inline(always)]
    fn show<P: Parts>(&self, setup: &Setup<'_>, switch: &mut Switch<P>) -> bool {
        let (account, bytes) = (Account(self.account), u64::from(self.frame));
        // Plain buffers do not count by place.
        let place = Place::new(0, setup.data_class);
        if self.is_start() {
            return switch.buffer.release(account, bytes, place);
        }
        let egress = Egress { queue: 0, cap: u64::MAX, place: Some(place) };
        let class = &setup.plan.classes.all()[setup.data_class];
        let request = Request { account, bytes, egress, class, cuttable: false };
        switch.buffer.admit(request) == Admission::AdmittedPause
    }
}

impl Ledger {
    fn clear<P: Parts>(&mut self, switch: &Switch<P>) {
        self.entries.clear();
        self.moved.clear();
        self.moved.resize(switch.buffer.accounts(), Moved::default());
    }

    /// Bytes that the buffer holds at `middle`, a key, if it holds `before` when the visit opens.
    fn in_use_at(&self, middle: u64, before: u64) -> u64 {
        let (mut charged, mut released) = (0, 0);
        for entry in self.entries.iter().filter(|entry| entry.place < middle) {
            let sum = if entry.is_start() { &mut released } else { &mut charged };
            *sum += u64::from(entry.frame);
        }
        before + charged - released
    }

    /// Begins a visit in order of time with these arrivals. Returns false if the buffer may drop, or if a tap must see pause frames
    /// among others.
    pub(super) fn begin<P: Parts>(
        &mut self,
        switch: &mut Switch<P>,
        ports: &[Port<P::Annex>],
        arrivals: &[Parcel<P::Annex>],
        setup: &Setup<'_>,
    ) -> bool {
        self.clear(switch);
        for pkt in arrivals.iter().filter(|pkt| setup.with_data.take(pkt)) {
            self.moved[usize::from(pkt.ingress().0)].charged += u64::from(pkt.frame());
        }
        let begins = switch.buffer.surely_admits(&self.moved) && !ports.iter().any(|port| port.is(TAPPED));
        if begins {
            self.clear(switch);
            self.busy.clear();
            self.busy.extend(ports.iter().map(|port| port.busy));
            recount(switch, (ports, &[]), setup);
        }
        begins
    }

    /// Notes the charge of a packet that arrives.
    #[inline(always)]
    pub(super) fn charge<A: Annex>(&mut self, place: u64, pkt: &Parcel<A>) {
        let (frame, account) = (pkt.frame(), pkt.ingress().0);
        self.moved[usize::from(account)].charged += u64::from(frame);
        self.entries.push(Entry { place, frame, account, port: 0 });
    }

    /// Notes the start of a packet at port `p`, and its release if it is data.
    #[inline(always)]
    pub(super) fn start<A: Annex>(&mut self, place: u64, pkt: &Parcel<A>, data: bool, p: usize) {
        let (frame, port) = (pkt.frame(), p as u16);
        let charged = data && pkt.ingress() != PortIndex::VIRTUAL;
        let account = if charged { pkt.ingress().0 } else { NONE };
        if charged {
            self.moved[usize::from(account)].released += u64::from(frame);
        }
        self.entries.push(Entry { place: place | START, frame, account, port });
    }

    /// Sets the place of the first start of port `p` from entry `from` on: a resumed port starts before all departures of that
    /// instant.
    pub(super) fn start_at_resume(&mut self, from: usize, p: usize, after: u64) {
        let mut starts = self.entries[from..].iter_mut().filter(|entry| usize::from(entry.port) == p);
        if let Some(entry) = starts.find(|entry| entry.is_start())
            && entry.place & !LOW == departure(after)
        {
            entry.place = place(instant(after), p) | START;
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Shows all entries to the buffer, and sends the frames that it asks for. At the end of a visit, sums may be enough.
    pub(super) fn show<P: Parts>(
        &mut self,
        switch: &mut Switch<P>,
        ports: &[Port<P::Annex>],
        out: &mut Out<'_, P::Annex>,
        at_end: bool,
    ) {
        if !(at_end && switch.buffer.moves_unseen(&self.moved)) {
            self.sort(out.window.length);
            for entry in &self.in_order {
                let (at, q) = (out.window.opened + line::time(entry.place), usize::from(entry.account));
                let frames = entry.account != NONE && entry.show(out.setup, switch);
                let p = usize::from(entry.port);
                if !entry.is_start() {
                    if frames {
                        out.send_pause(q, &ports[q], self.busy[q], at, 0, true);
                    }
                    continue;
                }
                if frames {
                    let port = &ports[q];
                    let free =
                        if p == q { out.free_beside(q, port, (p, at), entry.frame) } else { self.busy[q] };
                    out.send_pause(q, port, free, at, 0, false);
                }
                self.busy[p] = at + out.setup.time_on_wire(ports[p].row, entry.frame);
            }
        }
        self.clear(switch);
    }

    /// Puts the entries in order of a window of `length` ps.
    fn sort(&mut self, length: u64) {
        let Ledger { entries, in_order, ends, .. } = self;
        let digits = u64::BITS - instant(length).leading_zeros();
        let shift = digits.saturating_sub(BINS);
        ends.clear();
        ends.resize(1 << BINS, 0);
        let bin = |entry: &Entry| (entry.place >> shift) as usize & ((1 << BINS) - 1);
        entries.iter().for_each(|entry| ends[bin(entry)] += 1);
        let mut before = 0;
        for end in ends.iter_mut() {
            before += std::mem::replace(end, before);
        }
        in_order.resize(entries.len(), Entry::default());
        for entry in entries.iter() {
            let slot = &mut ends[bin(entry)];
            in_order[*slot as usize] = *entry;
            *slot += 1;
        }
        // Most bins have one entry or two.
        for i in 1..in_order.len() {
            let entry = in_order[i];
            let mut at = i;
            while at > 0 && in_order[at - 1].place > entry.place {
                in_order[at] = in_order[at - 1];
                at -= 1;
            }
            in_order[at] = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_by_time_and_a_packet_is_charged_before_it_starts() {
        let mut ledger = Ledger::default();
        let length = 1_000_000;
        for i in 0..500u64 {
            let at = place(instant(i * 7_919 % length), 3);
            ledger.entries.push(Entry { place: at | START, port: 3, ..Entry::default() });
            ledger.entries.push(Entry { place: at, ..Entry::default() });
        }
        ledger.sort(length);
        assert_eq!(ledger.in_order.len(), 1000);
        assert!(ledger.in_order.is_sorted_by_key(|entry| entry.place));
        assert!(ledger.in_order.chunks(2).all(|pair| !pair[0].is_start() && pair[1].is_start()));
    }

    #[test]
    fn a_resumed_port_starts_before_the_departures_of_that_instant() {
        let mut ledger = Ledger::default();
        let start =
            |port: u16| Entry { place: place(departure(700), port.into()) | START, port, ..Entry::default() };
        ledger.entries.extend([start(1), start(5)]);
        ledger.start_at_resume(0, 5, 700);
        ledger.sort(1000);
        assert_eq!(ledger.in_order.iter().map(|entry| entry.port).collect::<Vec<_>>(), [5, 1]);
    }
}
