//! The egress side of a group: the lanes of its ports, and their counts.

use super::nodes::Node;
use crate::books::Tally;
use crate::outcome::LinkRecord;
use crate::record::Recorder;
use crate::window::context::Context;
use crate::window::lanes::{Address, Bit, InnerMail, Lane, Lanes, Pool, bits};
use crate::window::layout::Layout;
use crate::window::out::{Out, Window};
use crate::window::port::Port;
use crate::window::setup::Setup;
use model::{Annex, NodeId, Parcel};

/// The egress side of a group, by port.
pub(super) struct Outputs<A> {
    /// Lanes of the open window. They swap places with those of the window before when the window closes.
    pub(super) lanes: Lanes<A>,
    pub(super) addresses: Vec<Address>,
    /// Mail from these lanes to nodes of the same group, in a group that steps.
    pub(super) inner: InnerMail,
    links: Vec<LinkRecord>,
    paused_since: Vec<u64>,
    /// A bit for every port with packets in flight that arrive after the next window. Every node begins a new word.
    far: Vec<u64>,
    /// Growth increment of a lane, in packets: the data that a link carries in a window at full rate, from 11 to 64, plus one.
    /// There are about as many replies as data packets in the other direction. A lane of a short window would grow often
    /// by less than 11 packets. Our choice.
    pub(super) unit: u32,
    tally: Tally,
    recorder: Recorder,
}

impl<A: Annex> Outputs<A> {
    /// The egress side of so many ports, whose addresses will be added.
    pub(super) fn new(setup: &Setup<'_>, ports: usize) -> Self {
        let frame = setup.time_on_wire(0, setup.plan.wire.max_frame()).max(1);
        Outputs {
            lanes: (0..ports).map(|_| Lane::new()).collect(),
            addresses: Vec::with_capacity(ports),
            inner: InnerMail::default(),
            links: vec![LinkRecord::default(); ports],
            paused_since: vec![u64::MAX; ports],
            far: Vec::new(),
            unit: (setup.window / frame).clamp(11, 64) as u32 + 1,
            tally: Tally::default(),
            recorder: Recorder::default(),
        }
    }

    /// Adds the addresses of a node's ports. If the group `inside` steps, its lanes to itself stay inside.
    pub(super) fn add(&mut self, setup: &Setup<'_>, layout: &Layout, id: NodeId, inside: Option<usize>) {
        for link in setup.fabric().ports(id) {
            let far = layout.locate(link.to);
            let inner = inside.filter(|group| *group == far.group as usize);
            let (nodes, ports) = match inner.and_then(|group| layout.groups[group].first()) {
                Some(first) => (0, far.word - layout.locate(*first).word),
                None => (layout.node_word(far.group as usize), far.word),
            };
            self.addresses.push(Address {
                port: Bit::of(ports, link.peer_port.0 as u32),
                node: Bit::of(nodes, far.index),
                inner: inner.is_some(),
            });
        }
        self.far.resize(self.far.len() + setup.fabric().ports(id).len().div_ceil(64), 0);
        debug_assert!(self.addresses.len() <= self.lanes.len());
    }

    /// Prepares for mail inside the group; tables of nodes have so many words.
    pub(super) fn open_inner_mail(&mut self, words: usize) {
        self.inner = InnerMail { nodes: vec![0; words], ports: vec![0; self.far.len()] };
    }

    /// The egress side of one node in one window.
    #[inline(always)]
    pub(super) fn of<'v>(
        &'v mut self,
        node: &Node,
        context: Context<'v, A>,
        pool: &'v mut Pool<A>,
    ) -> Out<'v, A> {
        let Context { setup, window, outbox, view, .. } = context;
        let ports = node.range();
        Out {
            setup,
            window,
            view,
            unit: self.unit,
            outbox,
            inner: &mut self.inner,
            pool,
            gp: node.gp as usize,
            lanes: &mut self.lanes[ports.clone()],
            addresses: &self.addresses[ports.clone()],
            links: &mut self.links[ports.clone()],
            paused_since: &mut self.paused_since[ports],
            far: &mut self.far[node.words()],
            tally: &mut self.tally,
            recorder: &mut self.recorder,
        }
    }

    /// Gives buffers of packets that have been read back.
    #[inline(always)]
    pub(super) fn give(&self, pool: &mut Pool<A>, packets: impl IntoIterator<Item = Vec<Parcel<A>>>) {
        packets.into_iter().for_each(|packets| pool.give(packets, self.unit));
    }

    /// The arrivals before the end of the run, out of arrivals in order of time.
    #[inline(always)]
    pub(super) fn before_the_end<'p>(
        &mut self,
        arrivals: &'p [Parcel<A>],
        window: Window,
    ) -> &'p [Parcel<A>] {
        if window.close == window.opened + window.length {
            return arrivals;
        }
        let count = arrivals.partition_point(|p| window.opened + (p.offset() as u64) < window.close);
        self.count_in_flight(&arrivals[count..]);
        &arrivals[..count]
    }

    /// The ports of a node with packets in flight that arrive after the next window.
    #[inline(always)]
    pub(super) fn far_ports(&self, node: &Node) -> impl Iterator<Item = usize> {
        self.far[node.words()].iter().enumerate().flat_map(|(i, word)| bits(*word, i * 64))
    }

    /// Hands the lanes of the last window over; `written` are those of the window before.
    pub(super) fn swap_lanes(&mut self, written: &mut Lanes<A>) {
        debug_assert_eq!(self.lanes.len(), written.len());
        std::mem::swap(&mut self.lanes, written);
    }

    /// Counts packets in flight at the end of the run.
    pub(super) fn count_in_flight<'p>(&mut self, packets: impl IntoIterator<Item = &'p Parcel<A>>)
    where
        A: 'p,
    {
        packets.into_iter().for_each(|pkt| self.tally.count_in_flight(pkt));
    }

    /// True if arrivals in the last window come after the end of the run.
    pub(super) fn cut_short(&self) -> bool {
        let Tally { data, control, .. } = &self.tally;
        data.in_flight + data.headers_in_flight + control.in_flight > 0
    }

    /// The counts of all ports together so far.
    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// The counts of all ports together.
    pub(super) fn tally_mut(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// What happened to the link of a port.
    pub(super) fn link_mut(&mut self, port: usize) -> &mut LinkRecord {
        &mut self.links[port]
    }

    /// The record of a port's link with the counts of the port, and the time from which it is paused.
    pub(super) fn report(&mut self, p: usize, port: &Port<A>) -> (LinkRecord, u64) {
        port.report(&mut self.links[p]);
        (self.links[p], self.paused_since[p])
    }

    /// The records of events at the ports.
    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// [`Outputs::recorder`], to change it.
    pub(super) fn recorder_mut(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// The counts and the records.
    pub(super) fn split(self) -> (Tally, Recorder) {
        (self.tally, self.recorder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::group::tests::racks;
    use model::{HostId, Kind, Packet, PortIndex, Psn, QpId};

    #[test]
    fn a_lane_leads_to_the_bit_of_its_far_end_in_the_mail_of_all_groups_or_inside() {
        let plan = racks();
        let (setup, layout, fabric) = (Setup::new(&plan), Layout::new(&plan.fabric), &plan.fabric);
        for (group, members) in layout.groups.iter().enumerate() {
            let links: Vec<_> = members.iter().flat_map(|id| fabric.ports(*id)).collect();
            for inside in [None, Some(group)] {
                let mut outputs = Outputs::<()>::new(&setup, links.len());
                members.iter().for_each(|&id| outputs.add(&setup, &layout, id, inside));
                for (address, link) in outputs.addresses.iter().zip(&links) {
                    let far = layout.locate(link.to);
                    assert_eq!(address.inner, inside == Some(far.group as usize));
                    let first = if address.inner { layout.locate(members[0]).word } else { 0 };
                    let mut words = vec![0; layout.mail_words().ports];
                    address.port.set(&mut words);
                    let set = words.iter().enumerate().flat_map(|(i, word)| bits(*word, i * 64));
                    let bit = (far.word - first) as usize * 64 + link.peer_port.index();
                    assert_eq!(set.collect::<Vec<_>>(), [bit], "{link:?}");
                }
            }
        }
    }

    #[test]
    fn what_arrives_after_the_end_of_the_run_stays_in_flight() {
        let plan = racks();
        let mut outputs = Outputs::<()>::new(&Setup::new(&plan), 0);
        let label = Packet::new(Kind::Data, QpId(0), HostId(0), Psn::new(0), 100);
        let arrivals = [5, 10, 15].map(|at| Parcel::bare(label).arriving(at, PortIndex(0)));
        let window = Window { opened: 100, length: 20, close: 120, ..Window::default() };
        assert_eq!(outputs.before_the_end(&arrivals, window).len(), 3);
        assert!(!outputs.cut_short());
        let last = Window { close: 110, ..window };
        assert_eq!(outputs.before_the_end(&arrivals, last).len(), 1, "the run ends at 110 ps");
        assert!(outputs.cut_short());
        assert_eq!(outputs.split().0.data.in_flight, 2);
    }
}
