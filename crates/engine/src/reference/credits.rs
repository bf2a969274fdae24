//! Credits in the reference engine: frames take them, and words return them.

use super::{NodeEvent, Reference};
use model::{NodeId, Parcel, Parts, PortIndex};

impl<P: Parts> Reference<'_, P> {
    /// Counts the credits of a frame that starts on link `gp` and arrives.
    pub(super) fn spend(&mut self, now: u64, node: u32, gp: usize, pkt: &Parcel<P::Annex>) {
        if let Some((priority, grant)) = self.setup.taken(gp, pkt)
            && self.ports[gp].ledgers[usize::from(priority)].consume(&grant, pkt.frame())
        {
            self.starve(now, node, gp, priority, true);
        }
    }

    /// Takes a word in at the sender of link `gp`.
    pub(super) fn take_word(&mut self, now: u64, node: u32, gp: usize, (priority, freed): (u8, u64)) {
        if let Some(grant) = self.setup.grant(gp, priority)
            && self.ports[gp].ledgers[usize::from(priority)].free(&grant, freed)
        {
            self.starve(now, node, gp, priority, false);
        }
    }

    fn starve(&mut self, now: u64, node: u32, gp: usize, priority: u8, on: bool) {
        let credits = self.ports[gp].by_credits;
        let after = if on { credits | 1 << priority } else { credits & !(1 << priority) };
        if after == credits {
            return;
        }
        // Words may come after the run's traffic, so nobody counts them.
        if on {
            self.links[gp].pauses += 1;
            self.recorder.repaused(gp, priority, true);
        }
        self.repause(now, node, gp, |port| port.by_credits = after);
    }

    /// Tells the neighbour at a port of a switch what was freed of a priority, if the switch grants it credits.
    pub(super) fn return_credits(&mut self, now: u64, node: u32, port: PortIndex, priority: u8) {
        let gp = self.setup.fabric().link(NodeId(node), port).index();
        let Some(grant) = self.setup.grant(self.setup.feeding(gp), priority) else { return };
        let Some(returned) = self.switches[node as usize - self.servers].returned(port, priority) else {
            return;
        };
        let (start, freed) = returned.word(now, &grant);
        let facts = self.setup.ports[gp];
        let at = start + facts.delay;
        if self.setup.loses_pause(gp, start, at) {
            return;
        }
        self.sequence += 1;
        let (sequence, channel) = (self.sequence, priority);
        let what = NodeEvent::Pause { port: facts.peer_port.0, sequence, channel, on: false, freed };
        self.schedule(at, facts.peer, what);
    }

    /// Sets the books right after a packet has become one of another kind.
    pub(super) fn rebook(
        &mut self,
        now: u64,
        node: u32,
        before: &Parcel<P::Annex>,
        pkt: &mut Parcel<P::Annex>,
    ) {
        if self.setup.grants.any()
            && let Some((port, priority)) =
                self.switches[node as usize - self.servers].rebook(&self.setup, before, pkt)
        {
            self.return_credits(now, node, PortIndex(port as u16), priority);
        }
    }

    /// Returns the credits of a packet that a switch does not keep.
    pub(super) fn refund(&mut self, now: u64, node: u32, pkt: &Parcel<P::Annex>) {
        let refund = self.switches[node as usize - self.servers].refund(&self.setup, pkt);
        if let Some((port, priority)) = refund {
            self.return_credits(now, node, PortIndex(port as u16), priority);
        }
    }
}
