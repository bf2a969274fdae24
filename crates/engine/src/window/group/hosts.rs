//! The visit of a host.

use super::Group;
use super::nodes::{AtHost, Waits};
use super::ports::PortsOf;
use crate::live::Report;
use crate::window::context::{Context, Workspace};
use crate::window::lanes::Pool;
use crate::window::step::PortEvents;
use crate::window::{classed_host, host, server};
use model::packet::Kinds;
use model::{Parts, PortIndex};

impl<P: Parts> Group<P> {
    /// Visits a host with one port and without tasks in a window or a step.
    pub(super) fn visit_endpoint(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) {
        let waits = self.nodes.waits_at_endpoint(n);
        if self.cold {
            let (node, host) = self.nodes.endpoint(n);
            self.ports.port(node.port(0)).fetch();
            host.fetch();
        }
        self.open_mail(context, workspace, n);
        let Workspace { incoming, pool, scratch, .. } = workspace;
        let lane = incoming.pop().unwrap_or_default();
        debug_assert!(incoming.is_empty(), "an endpoint has one lane");
        let arrivals = self.outputs.before_the_end(&lane, context.window);
        let (node, host) = self.nodes.endpoint(n);
        let (events, with_data) = (&mut scratch.events, context.setup.with_data);
        node.collect(context, events);
        let PortsOf { ports, classed, .. } = self.ports.of(node);
        let mut out = self.outputs.of(node, context, pool);
        out.bring_near(ports);
        let port = &mut ports[0];
        let next = match (context.setup.first_replies::<P::Annex>(), classed.first_mut()) {
            (None, Some(queues)) => classed_host::Visit { host, port, queues, out, events }.run(arrivals),
            (first, _) => {
                let first = first.unwrap_or(Kinds::of(&[]));
                host::Visit { host, port, out, events, with_data, first }.run(arrivals)
            }
        };
        self.outputs.give(pool, [lane]);
        self.nodes.settle_endpoint(n, waits);
        self.close_visit(context, n, next);
    }

    /// Visits a host with several ports, or with tasks.
    #[inline(never)]
    pub(super) fn visit_server(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) {
        let waits = self.nodes.waits(n);
        let count = self.open_server(context, workspace, n);
        let Workspace { incoming, pool, sorter, port_events, reports, .. } = workspace;
        let (window, node) = (context.window, self.nodes.node(n));
        let (ports, tie) = (node.range().len(), context.setup.tie(node.id.0, window.opened));
        let events = &mut port_events[..ports];
        // In a step, a lane may have packets of several ports; in the last window, some packets come too late.
        let by_port = self.inside.is_none() && window.close == window.opened + window.length;
        let visit = self.server(n, context, pool, events, reports);
        let next = if by_port && visit.stand_apart(incoming) {
            visit.run_by_port(incoming)
        } else {
            let arrivals = sorter.sort(incoming.iter().map(Vec::as_slice), count, window.length, tie);
            let arrivals = self.outputs.before_the_end(arrivals, window);
            self.server(n, context, pool, events, reports).run(arrivals)
        };
        self.outputs.give(pool, incoming.drain(..));
        self.close_server(context, n, next, waits);
    }

    /// Opens the visit of such a host: takes its mail and collects its link events. Returns the number of packets.
    pub(super) fn open_server(
        &mut self,
        context: Context<'_, P::Annex>,
        workspace: &mut Workspace<P::Annex>,
        n: usize,
    ) -> usize {
        let count = self.open_mail(context, workspace, n);
        let Workspace { pool, port_events, .. } = workspace;
        let node = self.nodes.node_mut(n);
        let (ports, fails) = (node.range().len(), node.fails(context));
        port_events.resize_with(port_events.len().max(ports), PortEvents::default);
        for (p, PortEvents { links, due, .. }) in (0..).map(PortIndex).zip(&mut port_events[..ports]) {
            node.collect_at(p, context, fails, links);
            *due = 0;
        }
        self.outputs.of(node, context, pool).bring_near(self.ports.of(node).ports);
        count
    }

    /// The open visit of such a host.
    pub(super) fn server<'v>(
        &'v mut self,
        n: usize,
        context: Context<'v, P::Annex>,
        pool: &'v mut Pool<P::Annex>,
        events: &'v mut [PortEvents],
        reports: &'v mut Vec<Report>,
    ) -> server::Visit<'v, P> {
        let AtHost { node, hosts, tasks } = self.nodes.host(n);
        let PortsOf { ports, classed, .. } = self.ports.of(node);
        let (out, with_data) = (self.outputs.of(node, context, pool), context.setup.with_data);
        server::Visit { hosts, classed, ports, events, tasks, out, with_data, reports }
    }

    /// Closes the visit of such a host, whose next event comes at `next`; `waits` is what waited when it opened.
    pub(super) fn close_server(&mut self, context: Context<'_, P::Annex>, n: usize, next: u64, waits: Waits) {
        self.nodes.settle(n, waits);
        self.close_visit(context, n, next);
    }
}
