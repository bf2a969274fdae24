//! Exchanges that are sent: their messages and tasks, from events of the engine to the next messages.

use super::state::{Mode, NONE, Posted, Sent};
use super::{Director, Kind, Who, order};
use engine::live::{Ended, Next};
use finding::Finding;
use model::{QpId, Time};
use scenario::outlined::Trigger;
use std::collections::BTreeMap;

impl Director<'_> {
    pub(super) fn lay(&mut self, x: u32, cell: u32, round: u32, series: u32) -> Result<Sent, Finding> {
        let laid = self.outlined.lay(x, cell)?;
        let (messages, tasks) = (laid.messages.len(), laid.tasks.len());
        let (mut before, mut after) = (vec![NONE; messages], vec![NONE; messages]);
        let mut last: BTreeMap<QpId, u32> = BTreeMap::new();
        for (m, message) in (0..).zip(&laid.messages) {
            if let Some(earlier) = last.insert(message.qp, m) {
                (before[m as usize], after[earlier as usize]) = (earlier, m);
            }
        }
        Ok(Sent {
            messages: laid.messages.iter().map(|message| message.needs).collect(),
            tasks: laid.tasks.iter().map(|task| task.needs).collect(),
            before,
            after,
            ready: vec![false; messages],
            posted: vec![false; messages],
            start: vec![0; tasks],
            open: (2 * messages + tasks) as u32,
            round,
            class: self.series[series as usize].class,
            own: (self.series[series as usize].own, round - self.series[series as usize].before_own),
            laid,
        })
    }

    /// Takes an event of the engine.
    pub(super) fn take(&mut self, ended: Ended) -> Result<(), Finding> {
        let (qp, number, acked) = match ended {
            Ended::Received(qp, number) => (qp, number, false),
            Ended::Acked(qp, number) => (qp, number, true),
            Ended::Task(_) => return Ok(()),
        };
        self.in_flight -= u64::from(acked);
        let Posted { slot, message: m, .. } = self.posted[qp.index()][number as usize];
        let Some(sent) = self.sent(slot) else { return Ok(()) };
        let message = &sent.laid.messages[m as usize];
        let range = if acked { message.on_acked.clone() } else { message.on_received.clone() };
        self.trigger(slot, range)?;
        self.close(slot);
        Ok(())
    }

    pub(super) fn sent(&mut self, slot: u32) -> Option<&mut Sent> {
        match self.exchanges.get_mut(slot as usize)?.as_deref_mut()?.mode {
            Mode::Sent(ref mut sent) => Some(sent),
            _ => None,
        }
    }

    /// Fires triggers inside an exchange.
    pub(super) fn trigger(&mut self, slot: u32, range: std::ops::Range<u32>) -> Result<(), Finding> {
        for i in range {
            let Some(sent) = self.sent(slot) else { return Ok(()) };
            match sent.laid.triggers[i as usize] {
                Trigger::Message(m) => {
                    sent.messages[m as usize] -= 1;
                    if sent.messages[m as usize] == 0 {
                        sent.ready[m as usize] = true;
                        self.post_ready(slot, m);
                    }
                }
                Trigger::Task(t) => {
                    sent.tasks[t as usize] -= 1;
                    if sent.tasks[t as usize] == 0 {
                        self.inner_ready(slot, t);
                    }
                }
                Trigger::Left(n) => self.leaves(slot, n)?,
            }
        }
        Ok(())
    }

    pub(super) fn inner_ready(&mut self, slot: u32, t: u32) {
        if let Some(exchange) = self.exchanges[slot as usize].as_deref() {
            let (at, error) = (self.now, exchange.error);
            self.push(at, Kind::Ready, order(2 * exchange.number + 1, t), Who::Inner(slot, t), error);
        }
    }

    /// Posts a message and those after it on its queue pair that are ready.
    pub(super) fn post_ready(&mut self, slot: u32, mut m: u32) {
        if self.waits_for_leap(slot, m) {
            return;
        }
        self.sync();
        loop {
            let Some(sent) = self.sent(slot) else { return };
            let (before, group) = (sent.before[m as usize], sent.laid.group);
            if !sent.ready[m as usize]
                || sent.posted[m as usize]
                || before != NONE && !sent.posted[before as usize]
            {
                return;
            }
            sent.posted[m as usize] = true;
            let (qp, bytes, after) = (
                sent.laid.messages[m as usize].qp,
                sent.laid.messages[m as usize].bytes,
                sent.after[m as usize],
            );
            self.live.post(qp, bytes);
            let operation =
                self.told.operation_at(self.exchanges[slot as usize].as_deref().map(|e| (e.number, e.cell)));
            self.posted[qp.index()].push(Posted { slot, message: m, group, operation, behind: self.behind });
            self.in_flight += 1;
            if after == NONE {
                return;
            }
            m = after;
        }
    }

    /// Brings the engine's clock to the present if nothing is under way.
    pub(super) fn sync(&mut self) {
        let now = self.now - self.behind;
        if self.in_flight == 0 && self.live.now().ps() < now {
            let next = self.live.next(Time(now), &mut ());
            debug_assert!(!matches!(next, Next::Event(_)), "nothing is under way");
        }
    }
}
