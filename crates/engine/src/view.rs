//! Delayed views of all switches' queues, for schemes that ask for them ([`model::scheme::QueueView`]).

use crate::setup::Setup;
use model::Time;
use model::scheme::QueueView;
use std::collections::VecDeque;

/// The view that switches know, and later views on their way. Both engines advance it only at the ends of full
/// windows, so the known view never changes within a window.
#[derive(Debug, Default)]
pub(crate) struct Views {
    /// Time between two views, ps; 0 if no scheme asks for views.
    period: u64,
    delay: u64,
    quantum: u64,
    /// Time of the next view, ps.
    next: u64,
    known: Vec<u32>,
    /// Views on their way, with the time at which switches know them, in order.
    under_way: VecDeque<(u64, Vec<u32>)>,
}

/// The length of a queue as schemes see it, bytes: a queue beyond 4 GiB looks like one of 4 GiB.
#[inline(always)]
pub(crate) fn shown(bytes: u64) -> u32 {
    bytes.min(u32::MAX.into()) as u32
}

impl Views {
    /// The state at the start of a run whose switches ask for `view`.
    pub(crate) fn new(setup: &Setup<'_>, view: Option<QueueView>) -> Self {
        let Some(QueueView { period, delay }) = view else { return Views::default() };
        let quantum = setup.window;
        let whole = |time: Time| time.ps().max(1).div_ceil(quantum).saturating_mul(quantum);
        let known = vec![0; setup.ports.len()];
        Views {
            period: whole(period),
            delay: whole(delay),
            quantum,
            next: 0,
            known,
            under_way: VecDeque::new(),
        }
    }

    /// True if any switch asks for views.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.period != 0
    }

    /// Takes a view by `read` if one is due; nothing from `now` on has happened yet. Ports of hosts are not in a
    /// view.
    pub(crate) fn advance(&mut self, now: u64, read: impl FnOnce(&mut [u32])) {
        if self.period == 0 {
            return;
        }
        let now = now / self.quantum * self.quantum;
        if now >= self.next {
            // If several views are due, nothing has happened between them: one stands for all.
            let mut view = vec![0; self.known.len()];
            read(&mut view);
            self.under_way.push_back((self.next + self.delay, view));
            self.next = (now / self.period + 1) * self.period;
        }
        while let Some((at, _)) = self.under_way.front()
            && *at <= now
            && let Some((_, view)) = self.under_way.pop_front()
        {
            self.known = view;
        }
    }

    /// Bytes queued at every port in the known view, by port number in the fabric; empty if no scheme asks for
    /// views.
    pub(crate) fn known(&self) -> &[u32] {
        &self.known
    }
}
