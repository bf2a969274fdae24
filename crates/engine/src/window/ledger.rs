//! The charges of a lossless buffer in a heavy visit, computed before the ports.
//!
//! A buffer that drops nothing changes no departure of the visit: the pauses that it asks for take effect at the neighbours, in
//! a later window. So ports need not take turns, as in [`super::charged`]. The visit first finds out when each packet of data
//! departs. It then shows all charges and releases to the buffer in order of time, and notes the frames that ports owe. Where
//! no account can be paused or resumed on the way, sums are enough. Afterwards the ports are computed as in a light visit.

use super::charged::place;
use super::lanes::bits;
use super::line::{self, NEVER, WHOLE_TICKS, departure, instant, key};
use super::local::{CNPS, DATA, Play, REPLIES};
use crate::buffer::{Account, Admission, Moved, Request};
use crate::cells::Place;
use crate::switch::{Egress, Switch};
use model::{Annex, Parts};

/// Working memory of these visits.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: Vec<Entry>,
    in_order: Vec<Entry>,
    /// Number of entries in each bin of time, then the end of each bin.
    ends: Vec<u32>,
    /// Sums by account.
    moved: Vec<Moved>,
}

/// A charge or a release.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Place in the order of all events; [`RELEASE`] is set for a release.
    place: u64,
    frame: u32,
    account: u16,
}

/// The bit of a release. A packet that starts when it arrives is charged first. Lower bits have the port.
const RELEASE: u64 = 1 << 16;
/// Bits of the number of bins of time.
const BINS: u32 = 10;

impl<A: Annex> Play<'_, A> {
    /// Charges and releases all data of the visit, and notes the frames that ports owe. Returns false, and without effect, if the
    /// buffer may drop.
    #[inline(never)]
    pub(super) fn charges_apart<P: Parts<Annex = A>>(&mut self, switch: &mut Switch<P>) -> bool {
        let mut ledger = std::mem::take(self.ledger);
        ledger.moved.clear();
        ledger.moved.resize(switch.buffer.accounts(), Moved::default());
        let class = &self.out.setup.plan.classes.all()[self.out.setup.data_class];
        let mut apart = class.charged && class.cap.is_none();
        apart &= self.pauses.iter().all(|pause| self.ports[pause.port.index()].obeys_frames_alone());
        for word in 0..self.layer.busy.len() {
            for p in bits(self.layer.busy[word], word * 64) {
                if self.may_charge(p) {
                    self.sort_lines(p);
                    self.note_port(p, &mut ledger);
                }
            }
        }
        apart = apart && switch.buffer.surely_admits(&ledger.moved);
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
            Entry { place: place(pkt.word(), p), frame, account }
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
                    entries.push(Entry { place: place(event, p) | RELEASE, frame, account });
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
        let setup = self.out.setup;
        let class = &setup.plan.classes.all()[setup.data_class];
        for &Entry { place: at, frame, account } in entries {
            let (p, bytes) = ((at & (RELEASE - 1)) as usize, frame.into());
            let egress = Place::new(p, setup.data_class);
            let is_release = at & RELEASE != 0;
            let account = Account(account);
            let frames = match is_release {
                true => switch.buffer.release(account, bytes, egress),
                false => {
                    let egress = Egress { queue: 0, cap: u64::MAX, place: Some(egress) };
                    let request = Request { account, bytes, egress, class, cuttable: false };
                    switch.buffer.admit(request) == Admission::AdmittedPause
                }
            };
            if frames {
                self.send_later((at, p), account.0.into(), !is_release);
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

impl Ledger {
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
