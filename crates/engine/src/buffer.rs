//! The shared packet buffer of a switch: admission, pauses and resumes.
//!
//! Lossless: an ingress may hold `alpha` times the free shared buffer. Where links have virtual channels, each
//! channel of an ingress has that share. A packet over the threshold goes to the headroom of its ingress, and the
//! switch pauses the ingress. The switch resumes it when its headroom is empty and its share is `resume_offset`
//! below the threshold (dynamic thresholds: Choudhury and Hahne 1998; headroom and offset as in the HPCC family of
//! ns-3 simulators).
//!
//! Lossy: one egress queue may hold `alpha` times the free buffer. Capped: one egress queue may hold a fixed number
//! of bytes.
//!
//! Classes may have caps of their own, also those that the buffer does not charge. A refused packet is dropped or cut.
//!
//! Queues of some flows alone may follow a rule of their own. All share one buffer, and each group of classes has accounts of its
//! own: a lossless group that is paused leaves the others alone.
//!
//! A buffer may count cells, have slices, or set room aside: see [`crate::cells`].

use crate::cells::{Cells, Place};
use crate::credits::Returned;
use crate::switch::Egress;
use crate::watermarks::Watermarks;
use model::plan::{Class, Cut, FlowControl, Memory, Overflow, Pfc, SwitchSettings};

/// The unit of charging and pausing: a virtual channel of an ingress port, or the whole port if links have one
/// channel. The accounts of a further group of classes follow those of the group before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account(pub(crate) u16);

/// A packet that asks for room, and the egress queue that it is to join.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'c> {
    pub(crate) account: Account,
    pub(crate) bytes: u64,
    pub(crate) egress: Egress,
    pub(crate) class: &'c Class,
    /// True if the packet may be cut.
    pub(crate) cuttable: bool,
}

/// Bytes that an account is charged in a stretch of time, and bytes that leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moved {
    pub(crate) charged: u64,
    pub(crate) released: u64,
}

/// The buffer's decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The packet is charged.
    Admitted,
    /// The packet is charged, and the switch must pause its ingress.
    AdmittedPause,
    /// There is no room for the packet.
    Dropped,
    /// There is no room for the packet, and a data packet is cut instead of a drop.
    Cut(Cut),
}

/// The rule of a visit whose egress queues are bounded by their caps alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    pub(crate) overflow: Overflow,
    /// Least cap of any queue of the switch, bytes.
    pub(crate) least: u64,
}

impl Caps {
    /// Decides whether a packet of `bytes` may join its queue.
    #[inline]
    pub(crate) fn admit(&self, bytes: u64, egress: Egress, cuttable: bool) -> Admission {
        match self.overflow {
            _ if egress.queue + bytes <= egress.cap => Admission::Admitted,
            Overflow::Cut(cut) if cuttable => Admission::Cut(cut),
            _ => Admission::Dropped,
        }
    }
}

/// Knowledge of the charges by account. Light visits do not compute them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    Exact,
    /// No account is charged more: departures since the last exact count are left out.
    AtMost,
    Unknown,
}

/// Light visits in a row after which all charges would still be below the thresholds: fewer are not worth the next count
/// of all queues. Our choice.
const WORTH_A_COUNT: u64 = 4;

/// Bytes of a buffer in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferUse {
    pub(crate) now: u64,
    /// Most bytes at a sampling instant of a stretch of time.
    pub(crate) most: u64,
}

/// The charges of one switch.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    flow_control: FlowControl,
    overflow: Overflow,
    /// The rules of the further groups of classes, and the number of accounts of each group.
    own_rules: Vec<(FlowControl, Overflow)>,
    accounts: usize,
    /// Bytes that all ports share: the buffer less all headroom.
    shared: u64,
    /// Bytes charged to the shared part.
    used: u64,
    /// Charged bytes by account, as far as they are known.
    ingress: Vec<u64>,
    detail: Detail,
    /// Bytes in headroom, by account; with credits, bytes of credits in use here.
    headroom: Vec<u64>,
    limit: Vec<u64>,
    /// Shares of the free buffer by account, if they differ; else empty.
    alphas: Vec<(u32, u32)>,
    /// Accounts that this buffer has paused.
    paused: Vec<bool>,
    /// Accounts that the scheme has paused.
    paused_by_scheme: Vec<bool>,
    pauses: u32,
    /// Most bytes in use at a sampling instant of the run.
    pub(crate) peak: u64,
    /// Most bytes in use at a sampling instant since the last call of [`Buffer::take_recent`].
    recent: u64,
    /// True if the rule of some group of classes grants credits, and what each account has returned.
    has_credits: bool,
    returned: Vec<Returned>,
    /// Most room that was taken, if the run counts queues.
    watermarks: Option<Box<Watermarks>>,
    /// Cells, slices and reserved room, if the buffer is not plain. Its charges by account are then known after every visit.
    cells: Option<Box<Cells>>,
}

impl Buffer {
    /// An empty buffer; `limit` is the headroom of every account.
    pub(crate) fn new(settings: &SwitchSettings, mut limit: Vec<u64>) -> Self {
        let lossless = settings.flow_control.is_lossless();
        if !lossless {
            limit.fill(0);
        }
        let accounts = limit.len();
        let reserved: u64 = if settings.memory.headroom_beside { 0 } else { limit.iter().sum() };
        Buffer {
            flow_control: settings.flow_control,
            overflow: if lossless { Overflow::Drop } else { settings.overflow },
            own_rules: Vec::new(),
            accounts,
            shared: settings.buffer.get().saturating_sub(reserved),
            used: 0,
            ingress: vec![0; accounts],
            detail: Detail::Exact,
            headroom: vec![0; accounts],
            limit,
            alphas: Vec::new(),
            paused: vec![false; accounts],
            paused_by_scheme: vec![false; accounts],
            pauses: 0,
            peak: 0,
            recent: 0,
            has_credits: settings.flow_control.credits().is_some(),
            returned: vec![Returned::default(); accounts],
            watermarks: None,
            cells: None,
        }
    }

    /// This buffer with watermarks. It must have all its groups.
    pub(crate) fn with_watermarks(self) -> Self {
        Buffer { watermarks: Some(Box::new(Watermarks::new(self.limit.len()))), ..self }
    }

    /// The most room that was taken in all, and by account.
    pub(crate) fn watermarks(&self) -> Option<&Watermarks> {
        self.watermarks.as_deref()
    }

    /// This buffer with cells, slices and reserved room as in `memory`, for so many ports, each with so many accounts in each group
    /// of classes.
    pub(crate) fn with_cells(self, memory: Memory, shape: (usize, usize)) -> Self {
        let cells = (!memory.is_plain()).then(|| Box::new(Cells::new(memory, self.shared, shape)));
        Buffer { cells, ..self }
    }

    /// Adds a group of classes with a rule of its own; `limit` is the headroom of each of its accounts.
    pub(crate) fn add_group(&mut self, settings: &SwitchSettings, mut limit: Vec<u64>) {
        let lossless = settings.flow_control.is_lossless();
        if !lossless {
            limit.fill(0);
        }
        debug_assert_eq!(limit.len(), self.accounts);
        self.own_rules
            .push((settings.flow_control, if lossless { Overflow::Drop } else { settings.overflow }));
        if !settings.memory.headroom_beside {
            self.shared = self.shared.saturating_sub(limit.iter().sum());
        }
        self.limit.extend(limit);
        let all = self.limit.len();
        self.ingress.resize(all, 0);
        self.headroom.resize(all, 0);
        self.has_credits |= settings.flow_control.credits().is_some();
        self.returned.resize(all, Returned::default());
        self.paused.resize(all, false);
        self.paused_by_scheme.resize(all, false);
    }

    /// The rule of an account's group of classes.
    #[inline(always)]
    fn rule(&self, account: usize) -> (FlowControl, Overflow) {
        match self.own_rules.is_empty() || account < self.accounts {
            true => (self.flow_control, self.overflow),
            false => self.own_rules[account / self.accounts - 1],
        }
    }

    /// This buffer with a share of the free buffer for each account.
    pub(crate) fn with_alphas(self, alphas: Vec<(u32, u32)>) -> Self {
        let differ = alphas.windows(2).any(|pair| pair[0] != pair[1]);
        Buffer { alphas: if differ { alphas } else { Vec::new() }, ..self }
    }

    /// The pause threshold of an account while `used` bytes are in use.
    #[inline]
    fn threshold(&self, used: u64, i: usize, pfc: &Pfc) -> u64 {
        self.share(used, self.alphas.get(i).copied().unwrap_or(pfc.alpha))
    }

    /// True if an account may hold so many bytes now.
    #[inline]
    fn is_below(&self, held: u64, i: usize, pfc: &Pfc) -> bool {
        let (num, den) = self.alphas.get(i).copied().unwrap_or(pfc.alpha);
        // As `held <= self.threshold(..)`: a multiplication takes less time than a division.
        let free = self.shared.saturating_sub(self.used);
        u128::from(held) * u128::from(den) <= u128::from(free) * u128::from(num)
    }

    pub(crate) fn lossless(&self) -> bool {
        self.flow_control.is_lossless()
    }

    /// True if the switch pauses the far end of this account before it drops.
    pub(crate) fn is_lossless(&self, account: Account) -> bool {
        self.rule(account.0.into()).0.is_lossless()
    }

    /// True if data without room is cut.
    pub(crate) fn cuts(&self) -> bool {
        matches!(self.overflow, Overflow::Cut(_))
    }

    fn share(&self, used: u64, (num, den): (u32, u32)) -> u64 {
        part_of(self.shared.saturating_sub(used), (num, den))
    }

    /// Decides whether a packet may join its egress queue, and charges it if its class is charged.
    #[inline]
    pub(crate) fn admit(&mut self, request: Request<'_>) -> Admission {
        let Request { account, bytes, egress: Egress { queue, cap, .. }, class, cuttable } = request;
        let i = account.0 as usize;
        let (flow_control, overflow) = self.rule(i);
        let refused = match overflow {
            Overflow::Cut(cut) if cuttable => Admission::Cut(cut),
            _ => Admission::Dropped,
        };
        if class.cap.is_some_and(|most| queue + bytes > most.get()) {
            return refused;
        }
        if !class.charged {
            return Admission::Admitted;
        }
        if self.cells.is_some() {
            return self.admit_in_cells(&request, flow_control, refused);
        }
        match flow_control {
            FlowControl::Lossless(pfc) => {
                if self.is_below(self.ingress[i] + bytes, i, &pfc) {
                    self.charge(account, bytes);
                    return Admission::Admitted;
                }
                if self.headroom[i] + bytes > self.limit[i] {
                    return Admission::Dropped;
                }
                self.charge_headroom(i, bytes);
                self.pause(i)
            }
            FlowControl::Credits(credits) => {
                let room = credits.of(bytes as u32);
                if self.headroom[i] + room > self.limit[i] {
                    return Admission::Dropped;
                }
                self.charge_headroom(i, room);
                Admission::Admitted
            }
            FlowControl::Lossy { alpha } => {
                if queue + bytes > self.share(self.used, alpha) || self.used + bytes > self.shared {
                    return refused;
                }
                self.charge(account, bytes);
                Admission::Admitted
            }
            FlowControl::Capped { .. } => {
                if queue + bytes > cap || self.used + bytes > self.shared {
                    return refused;
                }
                self.charge(account, bytes);
                Admission::Admitted
            }
        }
    }

    /// Charges a packet of a class that pauses to the share of its account, where it is below the threshold. False if
    /// [`Buffer::admit`] must decide.
    #[inline(always)]
    pub(crate) fn admit_to_share(&mut self, account: Account, bytes: u64) -> bool {
        let FlowControl::Lossless(pfc) = self.rule(account.0.into()).0 else { return false };
        let i = account.0 as usize;
        let fits = self.cells.is_none() && self.is_below(self.ingress[i] + bytes, i, &pfc);
        if fits {
            self.charge(account, bytes);
        }
        fits
    }

    /// Pauses an account with packets in headroom.
    #[inline]
    fn pause(&mut self, i: usize) -> Admission {
        if self.paused[i] {
            return Admission::Admitted;
        }
        self.paused[i] = true;
        self.pauses += 1;
        if self.paused_by_scheme[i] { Admission::Admitted } else { Admission::AdmittedPause }
    }

    /// [`Buffer::admit`] of a buffer that is not plain.
    #[inline(never)]
    fn admit_in_cells(&mut self, request: &Request<'_>, rule: FlowControl, refused: Admission) -> Admission {
        let Request { account, bytes, egress, .. } = *request;
        let i = usize::from(account.0);
        let Some(cells) = self.cells.as_deref_mut() else { return Admission::Dropped };
        let room = cells.room(bytes);
        if let FlowControl::Lossless(pfc) = rule {
            let slice = cells.slice_of_account(account);
            let (held, free) = (self.ingress[i], cells.free(slice));
            let alpha = self.alphas.get(i).copied().unwrap_or(pfc.alpha);
            let (before, after) = (cells.above(held), cells.above(held + room));
            if after <= part_of(free, alpha) && after - before <= free {
                cells.change(slice, held, held + room);
                self.charge(account, room);
                return Admission::Admitted;
            }
            if !cells.take_headroom(self.headroom[i], self.limit[i], room) {
                return Admission::Dropped;
            }
            self.charge_headroom(i, room);
            return self.pause(i);
        }
        if let Some(place) = egress.place {
            let (held, free) = (cells.queue(place), cells.free(cells.slice_of_queue(place)));
            let (before, after) = (cells.above(held), cells.above(held + room));
            let fits = match rule {
                FlowControl::Lossy { alpha } => after <= part_of(free, alpha),
                _ => egress.queue + bytes <= egress.cap,
            };
            if !fits || after - before > free {
                return refused;
            }
            cells.join(place, room);
        } else if room > cells.left() {
            return refused;
        } else {
            cells.hold(room);
        }
        self.charge(account, room);
        Admission::Admitted
    }

    /// Puts a packet that the buffer has charged into its queue: the scheme held it until now.
    pub(crate) fn join(&mut self, account: Account, bytes: u64, place: Place) {
        let lossless = self.is_lossless(account);
        if let Some(cells) = self.cells.as_deref_mut().filter(|_| !lossless) {
            cells.join_held(place, cells.room(bytes));
        }
    }

    /// Gives the room of a waiting packet to an arriving one that is not longer, in the same queue.
    pub(crate) fn replace(&mut self, waiting: (Account, u64), arriving: (Account, u64), place: Place) {
        let resumes = self.release(waiting.0, waiting.1, place);
        debug_assert!(!resumes && waiting.1 >= arriving.1, "only lossy switches cut");
        let room = self.room(arriving.1);
        self.charge(arriving.0, room);
        if let Some(cells) = self.cells.as_deref_mut() {
            cells.join(place, room);
        }
    }

    /// Bytes that a packet takes.
    #[inline]
    pub(crate) fn room(&self, bytes: u64) -> u64 {
        self.cells.as_ref().map_or(bytes, |cells| cells.room(bytes))
    }

    #[inline]
    fn charge(&mut self, account: Account, bytes: u64) {
        self.used += bytes;
        self.ingress[account.0 as usize] += bytes;
        if self.watermarks.is_some() {
            self.mark_shared(account);
        }
    }

    #[cold]
    fn mark_shared(&mut self, account: Account) {
        let i = usize::from(account.0);
        let held = self.ingress[i];
        let own = match &self.cells {
            Some(cells) if self.is_lossless(account) => cells.above(held),
            _ => held,
        };
        if let Some(marks) = &mut self.watermarks {
            marks.shared(i, own, self.used);
        }
    }

    #[inline]
    fn charge_headroom(&mut self, i: usize, bytes: u64) {
        self.headroom[i] += bytes;
        if let Some(marks) = &mut self.watermarks {
            marks.headroom(i, self.headroom[i], self.headroom.iter().sum());
        }
    }

    /// Sets the bytes charged after a light visit.
    #[inline]
    pub(crate) fn settle(&mut self, used: u64) {
        self.used = used;
    }

    /// True if the charges by account are known.
    pub(crate) fn detailed(&self) -> bool {
        self.detail == Detail::Exact
    }

    /// Sets the charges by account from the account and the bytes of all charged packets.
    pub(crate) fn detail(&mut self, charged: impl Iterator<Item = (Account, u64)>) {
        self.ingress.fill(0);
        charged.for_each(|(account, bytes)| self.ingress[account.0 as usize] += bytes);
        self.detail = Detail::Exact;
    }

    /// True if all charges must be counted after a light visit.
    pub(crate) fn counts_always(&self) -> bool {
        self.cells.is_some()
    }

    /// Sets all charges after a light visit from the account and the bytes of all charged packets, and the place of those that
    /// wait in queues. No account is paused.
    pub(crate) fn count(&mut self, charged: impl Iterator<Item = (Account, Option<Place>, u64)>) {
        let Some(mut cells) = self.cells.take() else { return };
        cells.clear();
        self.ingress.fill(0);
        self.used = 0;
        for (account, place, bytes) in charged {
            let (room, i) = (cells.room(bytes), usize::from(account.0));
            if self.is_lossless(account) {
                let held = self.ingress[i];
                cells.change(cells.slice_of_account(account), held, held + room);
            } else if let Some(place) = place {
                cells.join(place, room);
            } else {
                cells.hold(room);
            }
            self.charge(account, room);
        }
        self.detail = Detail::Exact;
        self.cells = Some(cells);
    }

    /// Releases the room of a packet that leaves a queue; true if the switch must resume its ingress, or tell it of credits.
    #[inline]
    pub(crate) fn release(&mut self, account: Account, bytes: u64, place: Place) -> bool {
        if self.cells.is_some() {
            return self.release_in_cells(account, bytes, place);
        }
        let i = account.0 as usize;
        if self.has_credits
            && let FlowControl::Credits(credits) = self.rule(i).0
        {
            self.headroom[i] -= credits.of(bytes as u32);
            return self.refund(account, bytes);
        }
        let from_headroom = bytes.min(self.headroom[i]);
        self.headroom[i] -= from_headroom;
        self.ingress[i] -= bytes - from_headroom;
        self.used -= bytes - from_headroom;
        let FlowControl::Lossless(pfc) = self.rule(i).0 else { return false };
        if !self.paused[i] || self.headroom[i] > 0 {
            return false;
        }
        let below = self.is_below(self.ingress[i] + pfc.resume_offset.get(), i, &pfc);
        if below || self.ingress[i] == 0 {
            self.paused[i] = false;
            self.pauses -= 1;
            return !self.paused_by_scheme[i];
        }
        false
    }

    /// True if this buffer, which is lossless and plain, surely drops nothing while so many bytes come in at each account.
    pub(crate) fn surely_admits(&self, arriving: &[Moved]) -> bool {
        let plain = self.cells.is_none() && self.own_rules.is_empty() && self.lossless();
        let mut rooms = self.headroom.iter().zip(&self.limit).zip(arriving);
        plain && rooms.all(|((held, limit), moved)| moved.charged == 0 || held + moved.charged <= *limit)
    }

    /// Changes the charges of all accounts at once, if the order of arrivals and departures cannot matter: no account can be paused
    /// or resumed on the way. Returns false, and without effect, if it may matter.
    pub(crate) fn moves_unseen(&mut self, moved: &[Moved]) -> bool {
        let FlowControl::Lossless(pfc) = self.flow_control else { return false };
        if self.watermarks.is_some() {
            return false;
        }
        let most = self.used + moved.iter().map(|moved| moved.charged).sum::<u64>();
        let unseen = |(i, moved): (usize, &Moved)| match self.paused[i] {
            true => moved.charged == 0 && self.headroom[i] > moved.released,
            false => moved.charged == 0 || self.ingress[i] + moved.charged <= self.threshold(most, i, &pfc),
        };
        if !moved.iter().enumerate().all(unseen) {
            return false;
        }
        for (i, moved) in moved.iter().enumerate() {
            if self.paused[i] {
                self.headroom[i] -= moved.released;
            } else {
                self.ingress[i] = self.ingress[i] + moved.charged - moved.released;
                self.used = self.used + moved.charged - moved.released;
            }
        }
        true
    }

    /// Number of accounts.
    pub(crate) fn accounts(&self) -> usize {
        self.limit.len()
    }

    /// True if the neighbour at an account sends by credits.
    pub(crate) fn grants(&self, account: Account) -> bool {
        self.has_credits && self.rule(account.0.into()).0.credits().is_some()
    }

    /// Returns the credits of a packet that leaves the buffer, or that it does not keep; false if its account has none.
    pub(crate) fn refund(&mut self, account: Account, bytes: u64) -> bool {
        let credits = self.rule(account.0.into()).0.credits();
        if let Some(credits) = credits {
            self.returned[usize::from(account.0)].free(credits.of(bytes as u32));
        }
        credits.is_some()
    }

    /// What an account has returned, if it grants credits.
    pub(crate) fn returned(&mut self, account: Account) -> Option<&mut Returned> {
        let i = usize::from(account.0);
        (self.has_credits && self.rule(i).0.credits().is_some()).then(|| &mut self.returned[i])
    }

    /// [`Buffer::release`] of a buffer that is not plain.
    #[inline(never)]
    fn release_in_cells(&mut self, account: Account, bytes: u64, place: Place) -> bool {
        let (i, rule) = (usize::from(account.0), self.rule(account.0.into()).0);
        let Some(cells) = self.cells.as_deref_mut() else { return false };
        let room = cells.room(bytes);
        let from_headroom = room.min(self.headroom[i]);
        let (held, left) = (self.ingress[i], self.ingress[i] - (room - from_headroom));
        self.headroom[i] -= from_headroom;
        self.ingress[i] = left;
        self.used -= held - left;
        let FlowControl::Lossless(pfc) = rule else {
            cells.leave(place, room);
            return false;
        };
        let slice = cells.slice_of_account(account);
        cells.give_headroom(from_headroom);
        cells.change(slice, held, left);
        if !self.paused[i] || self.headroom[i] > 0 {
            return false;
        }
        let alpha = self.alphas.get(i).copied().unwrap_or(pfc.alpha);
        let below = cells.above(left) + pfc.resume_offset.get() <= part_of(cells.free(slice), alpha);
        if below || left == 0 {
            self.paused[i] = false;
            self.pauses -= 1;
            return !self.paused_by_scheme[i];
        }
        false
    }

    /// Records whether the scheme pauses an account; true if the far end must get a frame.
    pub(crate) fn set_scheme_pause(&mut self, account: Account, on: bool) -> bool {
        let i = account.0 as usize;
        let news = self.paused_by_scheme[i] != on && !self.paused[i];
        self.paused_by_scheme[i] = on;
        news
    }

    /// True if the far end of an account is paused.
    pub(crate) fn pauses(&self, account: Account) -> bool {
        self.paused[account.0 as usize] || self.paused_by_scheme[account.0 as usize]
    }

    /// True if no account is paused and no arrival of this window can be paused or dropped: the visit may be light.
    /// `incoming` is the sum of their bytes, and `by_account` its parts. Departures only lower the charges.
    pub(crate) fn stays_below_thresholds(
        &mut self,
        incoming: u64,
        by_account: impl Iterator<Item = (Account, u64)> + Clone,
        longest_queue: impl FnOnce() -> u64,
    ) -> bool {
        if self.pauses > 0 {
            return false;
        }
        if self.cells.is_some() {
            return self.stays_below_in_cells(incoming, by_account);
        }
        let used = self.used + incoming;
        match self.flow_control {
            FlowControl::Lossless(pfc) => {
                // A single account holds at most all bytes in use, and no account has a smaller share than this.
                if used <= self.share(used, pfc.alpha) {
                    self.detail = Detail::Unknown;
                    return true;
                }
                let visits = match self.detail {
                    Detail::Unknown => return false,
                    Detail::Exact => WORTH_A_COUNT,
                    Detail::AtMost => 1,
                };
                let most = self.used + visits * incoming;
                let share = self.share(most, pfc.alpha);
                let fits = |(account, bytes): (Account, u64)| {
                    let i = account.0 as usize;
                    let held = self.ingress[i].min(self.used) + visits * bytes;
                    held <= share || !self.alphas.is_empty() && held <= self.threshold(most, i, &pfc)
                };
                if !by_account.clone().all(fits) {
                    return false;
                }
                by_account.for_each(|(account, bytes)| self.ingress[account.0 as usize] += bytes);
                self.detail = Detail::AtMost;
                true
            }
            FlowControl::Lossy { alpha } => {
                // To count a long queue again costs more than to stay heavy.
                let light = !(self.detailed() && self.used > 8 * incoming)
                    && used <= self.shared
                    && longest_queue() + incoming <= self.share(used, alpha);
                self.light_without_detail(light)
            }
            FlowControl::Credits(_) => false, // ports count credits at every departure
            FlowControl::Capped { least } => {
                let light = !(self.detailed() && self.used > 8 * incoming)
                    && used <= self.shared
                    && longest_queue() + incoming <= least.get();
                self.light_without_detail(light)
            }
        }
    }

    /// [`Buffer::stays_below_thresholds`] of a buffer that is not plain, without a pause. After a light visit all packets are counted,
    /// which costs more than a heavy visit where queues are long.
    #[inline(never)]
    fn stays_below_in_cells(
        &self,
        incoming: u64,
        mut by_account: impl Iterator<Item = (Account, u64)>,
    ) -> bool {
        let Some(cells) = self.cells.as_deref() else { return false };
        if self.used > 8 * incoming {
            return false;
        }
        match self.flow_control {
            FlowControl::Lossless(pfc) => by_account.all(|(account, bytes)| {
                let i = usize::from(account.0);
                let free = cells.free(cells.slice_of_account(account)).saturating_sub(incoming);
                let alpha = self.alphas.get(i).copied().unwrap_or(pfc.alpha);
                let held = cells.above(self.ingress[i] + bytes);
                held <= part_of(free, alpha) && free > 0
            }),
            // A packet may join any queue, also one that the scheme holds.
            FlowControl::Lossy { alpha } => {
                let free = cells.least_free().saturating_sub(self.used + incoming);
                cells.longest_queue() + self.used + incoming <= part_of(free, alpha)
            }
            FlowControl::Credits(_) | FlowControl::Capped { .. } => false,
        }
    }

    /// Starts a visit whose ports keep their caps by themselves: if the shared buffer cannot fill, caps are all that bounds
    /// queues. Returns the caps, or `None` if the buffer has none, could fill, or must be known at every instant. The charges by account are then unknown.
    pub(crate) fn caps(&mut self, incoming: u64) -> Option<Caps> {
        let FlowControl::Capped { least } = self.flow_control else { return None };
        if self.cells.is_some() || self.watermarks.is_some() || !self.own_rules.is_empty() {
            return None;
        }
        let fits = self.light_without_detail(self.used + incoming <= self.shared);
        fits.then_some(Caps { overflow: self.overflow, least: least.get() })
    }

    fn light_without_detail(&mut self, light: bool) -> bool {
        if light {
            self.detail = Detail::Unknown;
        }
        light
    }

    /// Updates the peaks with the current use.
    #[inline]
    pub(crate) fn sample(&mut self) {
        self.recent = self.recent.max(self.in_use());
        self.peak = self.peak.max(self.recent);
    }

    /// Updates the peaks with the bytes in use at an earlier instant.
    #[inline]
    pub(crate) fn sample_past(&mut self, used: u64) {
        self.recent = self.recent.max(used);
        self.peak = self.peak.max(self.recent);
    }

    /// Bytes in use.
    #[inline]
    pub(crate) fn in_use(&self) -> u64 {
        // Headroom is in use only while an account is paused, or by credits.
        self.used + if self.pauses > 0 || self.has_credits { self.headroom.iter().sum() } else { 0 }
    }

    /// Bytes in use now, and the most at a sampling instant since the last call.
    pub(crate) fn take_recent(&mut self) -> BufferUse {
        BufferUse { now: self.in_use(), most: std::mem::take(&mut self.recent) }
    }

    /// True if nothing is charged and no account is paused. Pauses by the scheme are ignored if `held`.
    pub(crate) fn idle(&self, held: bool) -> bool {
        let calm = self.pauses == 0 && (held || !self.paused_by_scheme.contains(&true));
        self.used == 0 && calm && self.headroom.iter().all(|h| *h == 0)
    }
}

/// A share of so many bytes: (numerator, denominator).
#[inline]
fn part_of(bytes: u64, (num, den): (u32, u32)) -> u64 {
    bytes * u64::from(num) / u64::from(den)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::packet::Kinds;
    use model::plan::{Pfc, Victim};
    use model::{Bytes, Kind};

    const IN: Account = Account(0);
    const OUT: Place = Place::new(0, 0);
    const ONE: [(Account, u64); 1] = [(IN, 5_000)];

    const DATA: Class = Class::strict(Kinds::of(&[Kind::Data])).of_data();

    fn egress(queue: u64, cap: u64) -> Egress {
        Egress { queue, cap, place: None }
    }

    fn packet(account: Account, queue: u64) -> Request<'static> {
        Request { account, bytes: 1000, egress: egress(queue, 3_000), class: &DATA, cuttable: true }
    }

    fn settings(buffer: u64, flow_control: FlowControl) -> SwitchSettings {
        SwitchSettings {
            buffer: Bytes(buffer),
            flow_control,
            overflow: Overflow::Drop,
            memory: Memory::PLAIN,
        }
    }

    fn lossless(buffer: u64, headroom: u64) -> Buffer {
        let pfc = Pfc { alpha: (1, 8), resume_offset: Bytes(3072), watchdog: None };
        let settings = settings(buffer, FlowControl::Lossless(pfc));
        Buffer::new(&settings, vec![headroom; 2])
    }

    #[test]
    fn sums_move_charges_only_where_no_account_can_be_paused_or_resumed_on_the_way() {
        let moved = |charged, released| Moved { charged, released };
        let (mut by_packet, mut by_sum) = (lossless(100_000, 10_000), lossless(100_000, 10_000));
        for buffer in [&mut by_packet, &mut by_sum] {
            assert_eq!(buffer.admit(packet(IN, 0)), Admission::Admitted);
        }
        // Two packets come, and one leaves.
        (0..2).for_each(|_| assert_eq!(by_packet.admit(packet(IN, 0)), Admission::Admitted));
        assert!(!by_packet.release(IN, 1000, OUT));
        assert!(by_sum.moves_unseen(&[moved(2000, 1000), moved(0, 0)]));
        assert_eq!((by_packet.used, &by_packet.ingress), (by_sum.used, &by_sum.ingress));
        // The threshold is an eighth of the 80 kB that all share.
        assert!(!by_sum.moves_unseen(&[moved(9000, 9000), moved(0, 0)]), "the account may be paused");
        assert_eq!(by_packet.used, by_sum.used, "a refusal has no effect");
        assert!(by_sum.surely_admits(&[moved(10_000, 0), moved(0, 0)]));
        assert!(!by_sum.surely_admits(&[moved(10_001, 0), moved(0, 0)]), "the headroom may overflow");
    }

    #[test]
    fn ports_may_have_shares_of_their_own() {
        let mut b = lossless(90_000, 10_000).with_alphas(vec![(1, 8), (1, 1)]);
        // 70 kB are shared. The second account may hold half of them, then the first one a ninth of the rest.
        let mut held = [0u64; 2];
        for i in [1, 0] {
            let account = Account(i as u16);
            while b.admit(packet(account, 0)) == Admission::Admitted {
                held[i] += 1_000;
            }
        }
        assert_eq!(held, [4_000, 35_000]);
        assert!(!b.stays_below_thresholds(0, std::iter::empty(), || 0), "accounts are paused");
        // Both are released below their own thresholds less the offset.
        assert!(!b.release(Account(1), 1_000, OUT));
        assert!((0..9).any(|_| b.release(Account(1), 1_000, OUT)));
    }

    #[test]
    fn a_filling_ingress_is_paused_at_its_share_and_goes_on_below_it() {
        let mut b = lossless(100_000, 10_000);
        let mut held = 0;
        while b.admit(packet(IN, 0)) == Admission::Admitted {
            held += 1;
        }
        // 80 kB are shared; the tenth packet does not fit: 9000 + 1000 > (80000 - 9000) / 8.
        assert_eq!(held, 9);
        assert_eq!(b.admit(packet(IN, 0)), Admission::Admitted);
        assert!(!b.release(IN, 1000, OUT) && !b.release(IN, 1000, OUT), "headroom empties first");
        let mut left = held;
        while !b.release(IN, 1000, OUT) {
            left -= 1;
        }
        assert_eq!(left - 1, 6, "3 KiB below the threshold of 9250");
        assert!(b.admit(packet(Account(1), 0)) == Admission::Admitted);
    }

    #[test]
    fn a_port_goes_on_when_neither_buffer_nor_scheme_wants_it_paused() {
        let mut b = lossless(100_000, 10_000);
        assert!(b.set_scheme_pause(IN, true) && !b.set_scheme_pause(IN, true), "the far end gets one frame");
        let mut held = 0;
        while b.ingress[0] + 1000 <= 9_250 {
            assert_eq!(b.admit(packet(IN, 0)), Admission::Admitted);
            held += 1;
        }
        while b.headroom[0] == 0 {
            assert_eq!(b.admit(packet(IN, 0)), Admission::Admitted, "the ingress is already paused");
            held += 1;
        }
        assert!(!b.set_scheme_pause(IN, false), "the buffer still pauses it");
        assert!(b.set_scheme_pause(Account(1), true) && b.set_scheme_pause(Account(1), false));
        while !b.release(IN, 1000, OUT) {
            held -= 1;
        }
        assert!(held > 1 && !b.idle(false));
    }

    #[test]
    fn beyond_the_headroom_a_lossless_switch_drops() {
        let mut b = lossless(100_000, 2_000);
        let drops = (0..20).filter(|_| b.admit(packet(IN, 0)) == Admission::Dropped).count();
        assert_eq!(drops, 20 - 10 - 2, "ten in its share of 96 kB, two in headroom");
    }

    #[test]
    fn a_lossy_queue_gets_its_share_of_what_is_free() {
        let settings = settings(10_000, FlowControl::Lossy { alpha: (1, 1) });
        let mut b = Buffer::new(&settings, vec![0]);
        let mut queue = 0;
        while b.admit(packet(IN, queue)) == Admission::Admitted {
            queue += 1000;
        }
        assert_eq!(queue, 5000, "with alpha 1 half the buffer");
    }

    #[test]
    fn groups_share_the_buffer_and_each_keeps_its_own_rule() {
        // A capped group that cuts, and a lossless one with 10 kB of headroom for each of two ports.
        let cut = Cut { frame: 64, victim: Victim::Arriving };
        let caps = FlowControl::Capped { least: Bytes(3_000) };
        let cutting = SwitchSettings { overflow: Overflow::Cut(cut), ..settings(40_000, caps) };
        let pfc = Pfc { alpha: (1, 1), resume_offset: Bytes(1_000), watchdog: None };
        let mut b = Buffer::new(&cutting, vec![0; 2]);
        b.add_group(&settings(40_000, FlowControl::Lossless(pfc)), vec![10_000; 2]);
        let own = Account(2);
        assert!(!b.is_lossless(IN) && b.is_lossless(own) && b.is_lossless(Account(3)));
        assert_eq!(b.admit(packet(IN, 2_001)), Admission::Cut(cut));
        (0..8).for_each(|_| assert_eq!(b.admit(packet(IN, 0)), Admission::Admitted));
        // 20 kB are shared, of which the other group has 8 kB: this account may hold as much as is left.
        (0..6).for_each(|_| assert_eq!(b.admit(packet(own, 9_000)), Admission::Admitted));
        assert_eq!(b.admit(packet(own, 9_000)), Admission::AdmittedPause);
        assert!(b.pauses(own) && !b.pauses(IN) && !b.pauses(Account(3)));
        (0..6).for_each(|_| assert_eq!(b.admit(packet(IN, 0)), Admission::Admitted));
        assert_eq!(b.admit(packet(IN, 0)), Admission::Cut(cut), "the shared buffer is full");
        assert!(!b.release(own, 1_000, OUT), "that was the headroom");
        (0..14).for_each(|_| assert!(!b.release(IN, 1_000, OUT), "another group resumes nobody"));
        assert!(b.release(own, 1_000, OUT) && !b.idle(false));
        (0..5).for_each(|_| assert!(!b.release(own, 1_000, OUT)));
        assert!(b.idle(false));
    }

    #[test]
    fn a_full_queue_cuts_data_and_drops_the_rest() {
        let caps = FlowControl::Capped { least: Bytes(3_000) };
        let cut = Cut { frame: 64, victim: Victim::Even };
        let settings = SwitchSettings { overflow: Overflow::Cut(cut), ..settings(6_000, caps) };
        let mut b = Buffer::new(&settings, vec![0; 2]);
        assert!(b.cuts());
        assert!(
            b.stays_below_thresholds(3_000, ONE.into_iter(), || 0)
                && !b.stays_below_thresholds(3_000, ONE.into_iter(), || 1)
        );
        assert_eq!(b.admit(packet(IN, 2_000)), Admission::Admitted);
        assert_eq!(b.admit(packet(IN, 2_001)), Admission::Cut(cut));
        assert_eq!(b.admit(Request { egress: egress(2_001, 4_000), ..packet(IN, 0) }), Admission::Admitted);
        assert_eq!(b.admit(Request { cuttable: false, ..packet(IN, 2_001) }), Admission::Dropped);
        let headers = Class { cap: Some(Bytes(2_500)), ..Class::strict(Kinds::of(&[Kind::Nack])) };
        let header = |queue| Request { class: &headers, cuttable: false, ..packet(IN, queue) };
        assert_eq!(
            b.admit(header(1_500)),
            Admission::Admitted,
            "a class that is not charged has its own cap"
        );
        assert_eq!(b.admit(header(1_501)), Admission::Dropped);
        b.replace((IN, 1_000), (Account(1), 900), OUT);
        assert_eq!((b.used, &b.ingress[..]), (1_900, &[1_000, 900][..]));
        let large = Request { bytes: 4_000, egress: egress(0, 4_000), ..packet(IN, 0) };
        assert_eq!(b.admit(large), Admission::Admitted);
        assert_eq!(b.admit(packet(IN, 0)), Admission::Cut(cut), "the shared buffer is a bound as well");
        assert_eq!(b.admit(Request { bytes: 100, ..packet(IN, 0) }), Admission::Admitted, "6 kB are full");
    }

    #[test]
    fn caps_alone_bound_queues_as_long_as_the_shared_buffer_cannot_fill() {
        let flow_control = FlowControl::Capped { least: Bytes(3_000) };
        let cut = Cut { frame: 64, victim: Victim::Arriving };
        let cutting = SwitchSettings { overflow: Overflow::Cut(cut), ..settings(6_000, flow_control) };
        let mut b = Buffer::new(&cutting, vec![0]);
        b.settle(2_000);
        assert!(b.caps(4_001).is_none() && b.detailed());
        let caps = b.caps(4_000).unwrap();
        assert!(!b.detailed(), "visits with caps do not count charges by account");
        assert_eq!(caps.admit(1_000, egress(2_000, 3_000), true), Admission::Admitted);
        assert_eq!(caps.admit(1_000, egress(2_001, 3_000), true), Admission::Cut(cut));
        assert_eq!(caps.admit(1_000, egress(2_001, 3_000), false), Admission::Dropped);
        assert_eq!(caps.admit(1_000, egress(3_000, 4_000), true), Admission::Admitted);
        let dropping = Buffer::new(&settings(6_000, flow_control), vec![0]).caps(0).unwrap();
        assert_eq!(dropping.admit(1_000, egress(3_001, 4_000), true), Admission::Dropped);
        assert!(lossless(100_000, 0).caps(0).is_none());
    }

    #[test]
    fn below_all_thresholds_admission_cannot_fail() {
        let mut b = lossless(100_000, 10_000);
        assert!(b.stays_below_thresholds(5_000, ONE.into_iter(), || 0));
        b.settle(5_000);
        assert!(
            !b.stays_below_thresholds(5_000, ONE.into_iter(), || 0),
            "5000 may all stand at one ingress: 10000 > (80000 - 10000) / 8"
        );
        b.detail([(IN, 2_500), (Account(1), 2_500)].into_iter());
        assert!(!b.stays_below_thresholds(5_000, ONE.into_iter(), || 0), "not for four visits in a row");
    }

    #[test]
    fn a_full_buffer_stays_light_as_long_as_no_ingress_can_reach_its_threshold() {
        let mut b = lossless(100_000, 10_000);
        let less = [(IN, 500), (Account(1), 500)].into_iter();
        let light = |b: &mut Buffer| b.stays_below_thresholds(1_000, less.clone(), || 0);
        b.settle(8_600);
        b.detail([(IN, 4_300), (Account(1), 4_300)].into_iter());
        let visits = (0..20).take_while(|_| light(&mut b)).count();
        assert_eq!(visits, 9, "4300 + 9 x 500 <= (80000 - 9600) / 8, if nothing leaves");
        b.detail([(IN, 4_300), (Account(1), 4_300)].into_iter());
        assert!(light(&mut b), "after the next count");
    }

    #[test]
    fn a_buffer_is_idle_when_nothing_is_charged_and_no_port_is_paused() {
        let mut b = lossless(100_000, 10_000);
        assert!(b.idle(false) && b.lossless() && !b.cuts());
        b.admit(packet(IN, 0));
        assert!(!b.idle(false) && !b.idle(true), "a packet is charged");
        b.release(IN, 1000, OUT);
        assert!(b.idle(false));
        b.set_scheme_pause(IN, true);
        assert!(!b.idle(false) && b.idle(true), "the scheme pauses for a job that waits");
        b.set_scheme_pause(IN, false);
        while b.admit(packet(IN, 0)) == Admission::Admitted {}
        assert!(b.pauses(IN) && !b.pauses(Account(1)));
        b.settle(0);
        assert!(!b.idle(true), "the ingress is paused");
    }

    #[test]
    fn a_packet_that_joins_no_charged_class_leaves_the_buffer_idle() {
        let mut b = lossless(100_000, 10_000);
        let ack = Class::strict(Kinds::of(&[Kind::Ack]));
        assert_eq!(b.admit(Request { class: &ack, ..packet(IN, 0) }), Admission::Admitted);
        assert!(b.idle(false));
    }

    #[test]
    fn peaks_count_headroom_and_hold_for_a_stretch_of_time() {
        let mut b = lossless(100_000, 10_000);
        let used = |b: &mut Buffer| {
            let BufferUse { now, most } = b.take_recent();
            (now, most, b.peak)
        };
        (0..9).for_each(|_| assert_eq!(b.admit(packet(IN, 0)), Admission::Admitted));
        assert_eq!(used(&mut b), (9_000, 0, 0), "no sample yet");
        b.sample();
        assert_eq!(b.admit(packet(IN, 0)), Admission::AdmittedPause);
        assert_eq!(b.admit(packet(IN, 0)), Admission::Admitted, "the ingress is paused already");
        b.sample();
        b.release(IN, 1000, OUT);
        b.sample();
        assert_eq!(used(&mut b), (10_000, 11_000, 11_000));
        b.release(IN, 1000, OUT);
        b.sample();
        assert_eq!(used(&mut b), (9_000, 9_000, 11_000), "a new stretch of time, the same run");
    }

    #[test]
    fn after_a_count_the_next_four_visits_must_fit_for_the_ingress_and_for_the_buffer() {
        let light = |here: u64| {
            let pfc = Pfc { alpha: (1, 1), resume_offset: Bytes(1_000), watchdog: None };
            let mut b = Buffer::new(&settings(100_000, FlowControl::Lossless(pfc)), vec![10_000; 2]);
            b.settle(40_000);
            b.detail([(IN, here), (Account(1), 40_000 - here)].into_iter());
            b.stays_below_thresholds(2_000, [(IN, 1_000), (Account(1), 1_000)].into_iter(), || 0)
        };
        // 80 kB are shared. After four visits 48 kB are in use, 32 kB are the share of an ingress, and it has 4 kB more.
        assert!(light(28_000) && !light(28_001));
    }

    #[test]
    fn an_ingress_with_packets_in_headroom_stays_paused_although_others_leave() {
        let pfc = Pfc { alpha: (1, 1), resume_offset: Bytes(1_000), watchdog: None };
        let mut b = Buffer::new(&settings(100_000, FlowControl::Lossless(pfc)), vec![10_000; 2]);
        let other = Account(1);
        (0..40).for_each(|_| assert_eq!(b.admit(packet(other, 0)), Admission::Admitted));
        // The other 40 kB of the 80 kB shared: 20 kB at this ingress, as many free.
        (0..20).for_each(|_| assert_eq!(b.admit(packet(IN, 0)), Admission::Admitted));
        assert_eq!(b.admit(packet(IN, 0)), Admission::AdmittedPause);
        assert_eq!(b.admit(packet(IN, 0)), Admission::Admitted);
        (0..20).for_each(|_| assert!(!b.release(other, 1_000, OUT)));
        // The threshold is 40 kB now, far above this ingress.
        assert!(!b.release(IN, 1_000, OUT), "a packet is left in headroom");
        assert!(b.release(IN, 1_000, OUT));
    }

    #[test]
    fn an_empty_ingress_goes_on_even_if_the_offset_exceeds_its_threshold() {
        // 4 kB are shared, so the threshold is at most 500 B, and the offset is 3 KiB.
        let mut b = lossless(6_000, 1_000);
        let small = |bytes| Request { bytes, ..packet(IN, 0) };
        assert_eq!(b.admit(small(400)), Admission::Admitted);
        assert_eq!(b.admit(small(200)), Admission::AdmittedPause);
        assert!(!b.release(IN, 200, OUT), "400 B are left");
        assert!(b.pauses(IN) && b.release(IN, 400, OUT) && !b.pauses(IN));
        assert!(b.idle(false));
    }

    #[test]
    fn a_lossy_switch_admits_up_to_both_bounds_and_no_byte_more() {
        let lossy = |alpha| {
            let lossy =
                SwitchSettings { overflow: Overflow::Drop, ..settings(10_000, FlowControl::Lossy { alpha }) };
            Buffer::new(&lossy, vec![5_000; 2])
        };
        let mut b = lossy((1, 1));
        assert!(!b.lossless());
        assert_eq!(b.admit(packet(IN, 9_001)), Admission::Dropped);
        assert_eq!(b.admit(packet(IN, 9_000)), Admission::Admitted, "a lossy switch has no headroom");
        assert_eq!(b.admit(packet(IN, 8_001)), Admission::Dropped);
        assert_eq!(b.admit(packet(IN, 8_000)), Admission::Admitted);
        // With a large alpha the whole buffer is the bound.
        let mut b = lossy((8, 1));
        let admitted = (0..20).take_while(|_| b.admit(packet(IN, 0)) == Admission::Admitted).count();
        assert_eq!(admitted, 10);
        assert!(!b.release(IN, 1000, OUT) && b.admit(packet(Account(1), 0)) == Admission::Admitted);
    }

    #[test]
    fn a_light_visit_of_a_lossy_switch_needs_room_for_all_arrivals() {
        let light = |used: u64, incoming: u64, queue: u64, alpha| {
            let mut b = Buffer::new(&settings(10_000, FlowControl::Lossy { alpha }), vec![0]);
            b.light_without_detail(true);
            b.settle(used);
            b.stays_below_thresholds(incoming, ONE.into_iter(), || queue)
        };
        assert!(light(0, 5_000, 0, (1, 1)) && !light(0, 5_001, 0, (1, 1)), "half of the buffer");
        assert!(light(1_000, 1_000, 7_000, (1, 1)) && !light(1_000, 1_000, 7_001, (1, 1)));
        assert!(light(9_000, 900, 0, (100, 1)) && !light(9_000, 1_001, 0, (100, 1)), "the whole buffer");
    }

    #[test]
    fn a_light_visit_of_a_capped_switch_keeps_the_smallest_cap() {
        let light = |least, incoming, queue| {
            let caps = FlowControl::Capped { least: Bytes(least) };
            let mut b = Buffer::new(&settings(6_000, caps), vec![0]);
            b.light_without_detail(true);
            b.stays_below_thresholds(incoming, ONE.into_iter(), || queue)
        };
        assert!(light(3_000, 1_000, 2_000) && !light(3_000, 1_000, 2_001));
        assert!(light(9_000, 6_000, 0) && !light(9_000, 6_001, 0));
    }

    #[test]
    fn a_lossy_switch_that_knows_its_charges_stays_heavy_while_queues_are_long() {
        for flow_control in
            [FlowControl::Lossy { alpha: (1, 1) }, FlowControl::Capped { least: Bytes(50_000) }]
        {
            let mut b = Buffer::new(&settings(100_000, flow_control), vec![0]);
            b.settle(8_001);
            assert!(b.detailed() && !b.stays_below_thresholds(1_000, ONE.into_iter(), || 0));
            b.settle(8_000);
            assert!(b.stays_below_thresholds(1_000, ONE.into_iter(), || 0) && !b.detailed());
            b.settle(80_000);
            assert!(b.stays_below_thresholds(1_000, ONE.into_iter(), || 0), "its charges are unknown now");
            b.detail([(IN, 80_000)].into_iter());
            assert!(b.detailed());
        }
    }

    #[test]
    fn a_lossless_visit_is_light_up_to_the_share_of_one_ingress_and_never_during_a_pause() {
        // 80 kB are shared: 8,888 B in use leave 71,112 B, of which an ingress may hold an eighth, 8,889 B.
        let light =
            |incoming| lossless(100_000, 10_000).stays_below_thresholds(incoming, ONE.into_iter(), || 0);
        assert!(light(8_888) && !light(8_889));
        let mut b = lossless(100_000, 10_000);
        while b.admit(packet(IN, 0)) == Admission::Admitted {}
        b.settle(0);
        assert!(!b.stays_below_thresholds(1, ONE.into_iter(), || 0), "an ingress is paused");
    }
}
