//! The visit of a switch.

use super::Group;
use super::nodes::AtSwitch;
use super::ports::PortsOf;
use crate::buffer::Account;
use crate::switch::Switch;
use crate::window::context::{Context, Workspace};
use crate::window::local;
use crate::window::out::{LinkEvents, Out};
use crate::window::port::Port;
use crate::window::sort::Sorter;
use crate::window::switch::{HEAVY, LIGHT, SwitchState, Visit};
use crate::window::way::{Now, Static, Way, way};
use model::{NodeId, Parcel, Parts, Scheme};

/// The packets of the lanes that reach a node in a visit, and their number.
type Incoming<'i, A> = (&'i [Vec<Parcel<A>>], usize);

impl<P: Parts> Group<P> {
    /// Visits switch `n` in a window or a step.
    pub(super) fn visit_switch(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) {
        let (window, quantum) = (context.window, context.setup.window);
        let number = self.sample_switch(n, window.opened, quantum);
        if self.cold {
            self.ports.fetch_queues(self.nodes.node(n));
        }
        let count = self.open_mail(context, workspace, n);
        // Only a visit of two windows has a middle.
        let middle = Some((number + 1) * quantum).filter(|middle| *middle < window.close);
        let next = self
            .compute_switch(context, workspace, (n, count), middle)
            .unwrap_or_else(|| self.split_switch(context, workspace, n, middle.unwrap_or(window.close)));
        self.close_visit(context, n, next);
    }

    /// Samples the buffer of a switch before its first event of a full window, whose length is `quantum`; returns the number of
    /// this window.
    #[inline(always)]
    pub(super) fn sample_switch(&mut self, n: usize, opened: u64, quantum: u64) -> u64 {
        let switch = self.nodes.switch(n).switch;
        let number = opened / quantum;
        if switch.sampled != number {
            switch.sampled = number;
            switch.buffer.sample();
        }
        number
    }

    /// Computes a visit of a switch with the `count` packets of its lanes. The buffer is sampled at `middle`. Returns the time of the
    /// switch's next event of its own, ps. `None`, and without effect, if the state of the buffer at the middle is unknown.
    pub(super) fn compute_switch(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        (n, count): (usize, usize),
        middle: Option<u64>,
    ) -> Option<u64> {
        let Workspace { incoming, pool, sorter, scratch, .. } = workspace;
        let AtSwitch { node, switch, fixed } = self.nodes.switch(n);
        // A visit that may be split leaves pauses to its halves.
        if middle.is_some() && !node.pauses.is_empty() && !knows_middle(fixed, switch) {
            return None;
        }
        node.collect(context, &mut scratch.events);
        let PortsOf { ports, classed, backlog } = self.ports.of(node);
        let now = now_of(context, (fixed, switch), ports, &scratch.events, (incoming, count), middle);
        let way = way(fixed, &now);
        let arrivals = match way {
            Way::Split => return None,
            Way::Capped { by_port: true, .. } => &[],
            Way::ByPort(_) if switch.interest.local => &[],
            Way::ByPort(_) => arrivals_of(context, (node.id, switch), (incoming, count), sorter),
            Way::InOrder { .. } | Way::Capped { by_port: false, .. } => {
                let arrivals = arrivals_of(context, (node.id, switch), (incoming, count), sorter);
                self.outputs.before_the_end(arrivals, context.window)
            }
        };
        self.effort.heavy += u64::from(way.is_heavy());
        let mut out = self.outputs.of(node, context, pool);
        out.bring_near(ports);
        let (with_data, line_of) = (context.setup.with_data, self.line_of);
        let state =
            SwitchState { node: node.id, switch, ports, classed, backlog, scratch, with_data, line_of };
        let next = match way {
            Way::ByPort(bound) => local::visit(state.by_port(), out, (incoming, arrivals), bound, middle),
            Way::Capped { by_port: true, caps } => Visit::capped(state, out, caps).run_by_port(incoming),
            Way::Capped { by_port: false, caps } => Visit::capped(state, out, caps).run(arrivals),
            _ if context.setup.follows_any() => visit_following(way.is_heavy(), state, out, arrivals),
            _ if way.is_heavy() => {
                let ledger = &mut state.scratch.floor.ledger;
                let later = fixed.may_charge_later(&now)
                    && ledger.begin(state.switch, state.ports, arrivals, context.setup);
                match later {
                    true => Visit::<P, LIGHT, false>::new(state, out).noting().run(arrivals),
                    false => Visit::<P, HEAVY, false>::new(state, out).run(arrivals),
                }
            }
            _ => Visit::<P, LIGHT, false>::new(state, out).run(arrivals),
        };
        self.outputs.give(pool, incoming.drain(..));
        Some(next.min(self.nodes.switch(n).switch.next_ruling()))
    }
}

/// True if the bytes in the buffer at the middle of a visit follow from its ports, and the visit need not be split.
#[cold]
fn knows_middle<P: Parts>(fixed: &Static, switch: &Switch<P>) -> bool {
    fixed.knows_middle() && !switch.buffer.cuts() && switch.uncharged + switch.held_bytes == 0
}

/// The state of a switch when a visit opens. The buffer is asked only for what decides on the way.
#[inline(always)]
fn now_of<P: Parts>(
    context: Context<'_, P::Annex>,
    (fixed, switch): (&Static, &mut Switch<P>),
    ports: &[Port<P::Annex>],
    events: &LinkEvents,
    (lanes, count): Incoming<'_, P::Annex>,
    middle: Option<u64>,
) -> Now {
    let Context { setup, window, .. } = context;
    debug_assert_eq!(lanes.iter().map(Vec::len).sum::<usize>(), count, "packets on the lanes");
    // What a watchdog does is exact in order of time alone.
    let stirs = switch.watchdog.as_ref().is_some_and(|dog| dog.stirs(events.next(), window.close));
    let mut now = Now {
        calm: !stirs
            && switch.route_change.is_none()
            && events.only_pauses()
            && window.close == window.opened + window.length,
        quiet: events.next() == u64::MAX,
        has_others: switch.uncharged + switch.held_bytes > 0,
        has_middle: middle.is_some(),
        ..Now::default()
    };
    let largest = switch.buffer.room(setup.largest_frame.into());
    let bytes = |packets: usize| packets as u64 * largest;
    if fixed.asks_for_caps(&now) {
        now.caps = switch.buffer.caps(bytes(count));
    }
    if fixed.asks_for_thresholds(&now) && !stirs {
        let longest = || {
            let waiting = ports.iter().map(|p| p.waiting).max().unwrap_or(0);
            // A scheme may release held packets into any queue.
            switch.held_bytes + waiting
        };
        let channels = u16::from(setup.fabric().channels());
        // In a group that steps, one lane holds the packets of several ports, one port after the other.
        let of_ports = lanes.iter().flat_map(|lane| lane.chunk_by(|a, b| a.ingress() == b.ingress()));
        let by_account = of_ports.flat_map(|packets| {
            let first = packets[0].ingress().0 * channels;
            (first..first + channels).map(move |account| (Account(account), bytes(packets.len())))
        });
        now.stays_below = switch.buffer.stays_below_thresholds(bytes(count), by_account, longest);
    }
    now
}

/// The arrivals of a visit in order of time. A scheme that wants announcements learns of them.
#[inline(always)]
fn arrivals_of<'s, P: Parts>(
    context: Context<'_, P::Annex>,
    (node, switch): (NodeId, &mut Switch<P>),
    (lanes, count): Incoming<'_, P::Annex>,
    sorter: &'s mut Sorter<P::Annex>,
) -> &'s [Parcel<P::Annex>] {
    let Context { setup, window, .. } = context;
    let (lanes, tie) = (lanes.iter().map(Vec::as_slice), setup.tie(node.0, window.opened));
    let arrivals = sorter.sort(lanes, count, window.length, tie);
    if switch.interest.announcements {
        arrivals.iter().for_each(|pkt| switch.scheme.expect(pkt));
    }
    arrivals
}

/// Visits a switch in a run that follows queue pairs.
#[inline(never)]
fn visit_following<'v, P: Parts>(
    heavy: bool,
    state: SwitchState<'v, P>,
    out: Out<'v, P::Annex>,
    arrivals: &[Parcel<P::Annex>],
) -> u64 {
    match heavy {
        true => Visit::<P, HEAVY, true>::new(state, out).run(arrivals),
        false => Visit::<P, LIGHT, true>::new(state, out).run(arrivals),
    }
}
