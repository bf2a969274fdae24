//! A group of nodes: its state, and the visits of its nodes in a window.
//!
//! | file | content |
//! |---|---|
//! | [`schedule`] | when nodes have something to do that no arrival tells |
//! | [`nodes`] | hosts and switches, and what waits there |
//! | [`ports`], [`outputs`] | queues and the lanes that lead to them; lanes that leave, and counts |
//! | [`switches`], [`hosts`] | the visit of a node |
//! | [`inside`] | windows inside windows: a group that steps through the window by itself |
//! | [`sides`] | two sides of the fabric that take turns |
//! | [`parked`] | hosts that wait for a program within a window |
//! | [`report`] | what a group tells between windows and at the end |

mod hosts;
mod inside;
mod nodes;
mod outputs;
mod parked;
mod ports;
mod report;
mod schedule;
mod sides;
mod switches;

use super::context::{Context, Workspace};
use super::lanes::{Lane, Lanes, bits};
use super::layout::Layout;
use super::local::LineOf;
use super::out::Window;
use super::setup::Setup;
use crate::host::Host;
use crate::outcome::Effort;
use crate::switch::Switch;
use inside::Inside;
use model::{Dialogue, Parts, QpId};
use nodes::Nodes;
use outputs::Outputs;
use parked::Parked;
use ports::Ports;
use schedule::Schedule;

/// Links of a fabric whose state stays cached from one window to the next: up to 500 B each, and 1 kB for the packets of a
/// lane, in a second-level cache of 2 MB and a share of the third. Our choice.
const NEAR: usize = 4096;

/// Queue pairs of a run with SACKs whose state leaves room for that of links in such a cache: 2 kB at each end. Our choice.
const FEW: usize = 512;

/// A group of nodes. One thread at a time visits it, and no other group touches its state.
pub(super) struct Group<P: Parts> {
    nodes: Nodes<P>,
    ports: Ports<P::Annex>,
    outputs: Outputs<P::Annex>,
    schedule: Schedule,
    /// First word of the group in the mail table of nodes.
    node_word: u32,
    /// Number of the last window in which the group was visited.
    visited: u64,
    /// Number of packets that have arrived since the last assignment to threads.
    load: u64,
    line_of: LineOf,
    /// True if a node's state has left the caches when its next visit begins. The visit then first reads a word of every
    /// cache line that it will need, so that the lines come from memory side by side.
    cold: bool,
    effort: Effort,
    /// State of a group that steps through windows.
    inside: Option<Inside<P::Annex>>,
    /// By node, hosts whose visits wait for a program; `None` in runs without such a program.
    parked: Option<Vec<Option<Parked<P::Annex>>>>,
}

impl<P: Parts> Group<P> {
    pub(super) fn new(setup: &Setup<'_>, parts: &P, layout: &Layout, number: usize) -> Self {
        let fabric = setup.fabric();
        let members = &layout.groups[number];
        let count = members.iter().map(|&id| fabric.ports(id).len()).sum();
        let lead = inside::lead(setup, layout, number).filter(|_| setup.posted.is_none());
        let mut nodes = Nodes::new(setup, members);
        let mut ports = Ports::new(count, members.len());
        let mut outputs = Outputs::new(setup, count);
        for &id in members {
            let interest = nodes.add(setup, parts, (id, layout.locate(id), ports.words()));
            ports.add(setup, layout, id, &interest);
            outputs.add(setup, layout, id, lead.map(|_| number));
        }
        let schedule = Schedule::new(members.len());
        let inside = lead.map(|lead| {
            outputs.open_inner_mail(schedule.words());
            Inside::new(lead, nodes.all(), count)
        });
        Group {
            nodes,
            ports,
            outputs,
            schedule,
            node_word: layout.node_word(number),
            visited: u64::MAX,
            load: 0,
            line_of: LineOf::new(setup),
            cold: fabric.links().len() > NEAR || P::Annex::SACKS && setup.plan.qps.len() > FEW,
            effort: Effort::default(),
            inside,
            parked: setup.posted.as_ref().map(|_| members.iter().map(|_| None).collect()),
        }
    }

    /// Adds the sending side of a queue pair to a node of the group.
    pub(super) fn add_outgoing(&mut self, setup: &Setup<'_>, parts: &P, node: u32, qp: QpId) {
        self.nodes.add_outgoing(setup, parts, node as usize, qp);
    }

    /// True if the visits of its switches know the buffer at their middle, and need not be split there.
    pub(super) fn knows_middles(&self) -> bool {
        self.nodes.knows_middles()
    }

    /// Prepares the group for a run in which the sides of nodes take turns.
    pub(super) fn take_sides(&mut self, side_of: &[u8]) {
        self.schedule.take_sides(self.nodes.all().iter().map(|node| side_of[node.id.index()]));
    }

    /// Schedules all nodes before the first window, which has this length.
    pub(super) fn ready(&mut self, setup: &Setup<'_>, length: u64) {
        for n in 0..self.nodes.all().len() {
            let next = self.nodes.ready(setup, n);
            self.schedule.plan(n, (next, next), length);
        }
        self.schedule.close();
    }

    /// All hosts of the group.
    pub(super) fn hosts(&self) -> &[Host<P>] {
        self.nodes.hosts()
    }

    /// The endpoints of host `n`.
    pub(super) fn endpoints(&self, n: usize) -> &[Host<P>] {
        self.nodes.endpoints(n)
    }

    /// [`Group::hosts`], to change them.
    pub(super) fn hosts_mut(&mut self) -> &mut [Host<P>] {
        self.nodes.hosts_mut()
    }

    /// True if no task of its hosts is under way.
    pub(super) fn tasks_rest(&self) -> bool {
        (0..self.nodes.all().len()).all(|n| self.nodes.next_of_tasks(n) == u64::MAX)
    }

    /// Records the frames of all its links from now on, or no longer.
    pub(super) fn tap(&mut self, on: bool) {
        self.ports.tap(on);
    }

    /// All switches of the group.
    pub(super) fn switches(&self) -> &[Switch<P>] {
        self.nodes.switches()
    }

    /// Work for which the group is to blame.
    pub(super) fn effort(&self) -> &Effort {
        &self.effort
    }

    /// Number of packets that have arrived since the last call.
    pub(super) fn take_load(&mut self) -> u64 {
        std::mem::take(&mut self.load)
    }

    /// The group's lanes on the board before the first window.
    pub(super) fn empty_lanes(&self) -> Lanes<P::Annex> {
        self.outputs.lanes.iter().map(|_| Lane::new()).collect()
    }

    /// Closes window `number`: hands over what the group has sent if it was visited; `written` are its lanes on the board.
    pub(super) fn hand_lanes_over(&mut self, number: u64, written: &mut Lanes<P::Annex>) {
        if self.visited == number && number != u64::MAX {
            self.outputs.swap_lanes(written);
        }
    }

    /// Visits all nodes that have something to do in a window.
    pub(super) fn visit(&mut self, context: Context<'_, P::Annex>, workspace: &mut Workspace<P::Annex>) {
        let load = self.load;
        match self.inside {
            Some(_) => self.visit_in_steps(context, workspace),
            None if self.schedule.has_sides() => self.visit_side(context, workspace),
            None => self.visit_at_once(context, workspace),
        }
        context.outbox.count_read(self.load - load);
    }

    /// [`Group::visit`] of a group that does not step through the window.
    fn visit_at_once(&mut self, context: Context<'_, P::Annex>, workspace: &mut Workspace<P::Annex>) {
        self.schedule.open(context.window.close);
        for word in 0..self.schedule.words() {
            let todo = self.mail_of_nodes(context, word) | self.schedule.take(word, u64::MAX);
            self.visit_nodes(context, workspace, word, todo);
        }
        // Parked hosts are still to be planned.
        if self.parked.is_none() {
            self.schedule.close();
        }
    }

    /// Takes a word of nodes that have mail from the board.
    #[inline(always)]
    fn mail_of_nodes(&self, Context { window, mail, .. }: Context<'_, P::Annex>, word: usize) -> u64 {
        mail.take_nodes(window.number, self.node_word + word as u32)
    }

    /// Visits the nodes of a word in a window or a step.
    #[inline(always)]
    fn visit_nodes(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        word: usize,
        todo: u64,
    ) {
        if todo != 0 {
            self.visited = context.window.number;
            bits(todo, word * 64).for_each(|n| self.visit_node(context, workspace, n));
        }
    }

    #[inline]
    fn visit_node(&mut self, context: Context<'_, P::Annex>, workspace: &mut Workspace<P::Annex>, n: usize) {
        self.effort.visits += 1;
        let node = self.nodes.node(n);
        match node.is_host {
            true if self.parked.is_some() => self.park(context, workspace, n),
            true if node.is_endpoint() && self.nodes.tasks(n).is_none() => {
                self.visit_endpoint(context, workspace, n);
            }
            true => self.visit_server(context, workspace, n),
            false => self.visit_switch(context, workspace, n),
        }
    }

    /// Takes the mail of node `n` for its visit. Returns the number of packets.
    #[inline(always)]
    fn open_mail(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) -> usize {
        let Workspace { incoming, pool, .. } = workspace;
        debug_assert!(incoming.is_empty(), "the lanes of the last visit were given back");
        let node = self.nodes.node_mut(n);
        let count = match &mut self.inside {
            Some(inside) => {
                let feeds = self.ports.feeds(node);
                inside.open_mail(context.window, (n, node), &mut self.outputs, feeds, pool, incoming)
            }
            None => self.ports.open_mail(context, node, incoming, self.cold),
        };
        self.load += count as u64;
        count
    }

    /// Closes the visit of node `n`, whose next event of its own comes at `next`, and plans the next one. Events from outside count,
    /// too: failures and repairs, pause frames, and packets to hand on to lanes.
    #[inline]
    fn close_visit(&mut self, context: Context<'_, P::Annex>, n: usize, next: u64) {
        let Window { opened, length, again, .. } = context.window;
        let node = self.nodes.node(n);
        let event = next.min(node.next_from_outside(context));
        let mut next = event;
        for p in self.outputs.far_ports(node) {
            let Some(arrival) = self.ports.port(node.port(p)).far.first() else { continue };
            next = next.min(handed_on(arrival, context.window));
            if next <= again {
                break;
            }
        }
        self.schedule.plan(n, (next, event), opened + 2 * length);
    }

    /// Closes a window whose hosts were parked.
    pub(super) fn close_window(&mut self) {
        self.schedule.close();
    }

    /// Time of the group's first event that needs no arrival, ps.
    pub(super) fn next(&mut self) -> u64 {
        self.schedule.first()
    }

    /// Time of the group's first event in a run without mail, ps. In contrast to [`Group::next`], a packet counts when it
    /// arrives.
    pub(super) fn next_event(&self) -> u64 {
        self.schedule.first_event().min(self.ports.first_arrival())
    }

    /// Time of the first event that the group has kept for the window opened at `opened`, ps.
    pub(super) fn next_carried(&self, opened: u64) -> u64 {
        self.inside.iter().map(|inside| inside.next_carried(opened)).min().unwrap_or(u64::MAX)
    }
}

/// Start of the window in which a packet goes onto its lane, one before it arrives: mostly the next window of the node.
#[inline(always)]
fn handed_on(arrival: u64, Window { next, span, again, .. }: Window) -> u64 {
    if arrival < next + 2 * span { again } else { again + ((arrival - next) / span - 1) * span }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Plan;
    use scenario::{Source, check};

    /// The plan of two racks.
    pub(super) fn racks() -> Plan {
        let text = "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n\
                    [[workload]]\npermutation = { kind = \"cross-rack\" }\n";
        check(&Source::new("racks.toml", text), &[]).unwrap_or_else(|e| panic!("{e}")).plan
    }

    #[test]
    fn a_packet_goes_onto_its_lane_one_window_before_it_arrives() {
        let window = Window { opened: 20, next: 30, span: 10, again: 30, length: 10, ..Window::default() };
        for (arrival, opened) in [(30, 30), (40, 30), (49, 30), (50, 40), (59, 40), (60, 50)] {
            assert_eq!(handed_on(arrival, window), opened, "{arrival}");
        }
    }
}
