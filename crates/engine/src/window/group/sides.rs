//! The visits of a group in turns, see [`turns`](crate::window::turns).

use super::Group;
use super::inside::earlier;
use crate::window::context::{Context, Workspace};
use crate::window::out::Window;
use model::Parts;

impl<P: Parts> Group<P> {
    /// Visits all nodes of a side that have something to do in its turn.
    pub(super) fn visit_side(&mut self, context: Context<'_, P::Annex>, workspace: &mut Workspace<P::Annex>) {
        let window = context.window;
        let side = window.number as usize % 2;
        self.schedule.open(window.close);
        for word in 0..self.schedule.words() {
            let members = self.schedule.side(side, word);
            let todo = self.mail_of_nodes(context, word) | self.schedule.take(word, members);
            self.visit_nodes(context, workspace, word, todo);
            self.schedule.close_turn(word);
        }
    }

    /// Computes a visit of switch `n` as two visits, up to `middle` and from there on, and samples the buffer in between. Returns
    /// the time of its next event of its own, ps.
    #[cold]
    #[inline(never)]
    pub(super) fn split_switch(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
        middle: u64,
    ) -> u64 {
        let window = context.window;
        let first = middle - window.opened;
        let lanes = std::mem::take(&mut workspace.incoming);
        let (mut early, mut late) = (Vec::new(), Vec::new());
        for lane in &lanes {
            let (before, after) = lane.split_at(lane.partition_point(|pkt| u64::from(pkt.offset()) < first));
            early.push(before.to_vec());
            late.push(after.iter().map(|pkt| earlier(pkt, first)).collect());
        }
        self.outputs.give(&mut workspace.pool, lanes);
        let mut next = u64::MAX;
        for (opened, close, lanes) in [(window.opened, middle, early), (middle, window.close, late)] {
            let lanes: Vec<Vec<_>> = lanes.into_iter().filter(|lane: &Vec<_>| !lane.is_empty()).collect();
            let count = lanes.iter().map(Vec::len).sum();
            workspace.incoming = lanes;
            if opened == middle {
                self.sample_switch(n, opened, context.setup.window);
            }
            let window = Window { opened, close, length: close - opened, ..window };
            let half = self.compute_switch(Context { window, ..context }, workspace, (n, count), None);
            debug_assert!(half.is_some(), "half a visit has no middle");
            next = half.unwrap_or(next);
        }
        next
    }
}
