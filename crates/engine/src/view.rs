//! What switches are told of all switches' queues, some time later ([`model::scheme::QueueView`]).

use crate::setup::Setup;
use model::Time;
use model::scheme::QueueView;
use std::collections::VecDeque;

/// The view that is known, and those on their way. Both engines turn it at the ends of full windows alone, so what is known
/// never changes inside one.
#[derive(Debug, Default)]
pub(crate) struct Views {
    /// Of length zero if nobody asks.
    period: u64,
    delay: u64,
    quantum: u64,
    /// When the next one is taken.
    next: u64,
    known: Vec<u32>,
    /// When they are known, in order.
    under_way: VecDeque<(u64, Vec<u32>)>,
}

impl Views {
    /// At the beginning of a run whose switches ask for `view`.
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

    /// Nothing from `now` on has happened yet: takes a view by `read` if it is time. Ports of hosts are not in it.
    pub(crate) fn advance(&mut self, now: u64, read: impl FnOnce(&mut [u32])) {
        if self.period == 0 {
            return;
        }
        let now = now / self.quantum * self.quantum;
        if now >= self.next {
            // If more than one is due, nothing has happened in between: the first stands for all.
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

    /// Bytes that waited at every port, by its global number; empty if nobody asks.
    pub(crate) fn known(&self) -> &[u32] {
        &self.known
    }
}
