//! What a group tells about its state, between windows and at the end of a run.

use super::Group;
use super::inside::Inside;
use crate::books::Tally;
use crate::host::Host;
use crate::outcome::{LinkRecord, Memory, QueueCounts};
use crate::record::Recorder;
use crate::record::sampler::Sampler;
use crate::setup::NO_TRACK;
use crate::stall::{Blocked, Liveness};
use crate::switch::Switch;
use crate::tasks::Tasks;
use crate::window::lanes::Lanes;
use crate::window::setup::Setup;
use model::plan::Classes;
use model::{HostId, NodeId, Parcel, Parts, Scheme};

/// The state of a group after its last window.
pub(crate) struct Parted<P: Parts> {
    pub(crate) hosts: Vec<(HostId, Host<P>)>,
    pub(crate) switches: Vec<(NodeId, Switch<P>)>,
    pub(crate) tasks: Vec<Tasks>,
    pub(crate) tally: Tally,
    pub(crate) recorder: Recorder,
}

impl<P: Parts> Group<P> {
    /// Foreground messages and tasks that have not finished.
    pub(crate) fn unfinished(&self) -> u64 {
        self.nodes.unfinished()
    }

    /// The counts outside its hosts so far.
    pub(crate) fn tally(&self) -> Tally {
        self.outputs.tally()
    }

    /// Recent progress and planned starts of the group's nodes.
    pub(crate) fn liveness(&self) -> Liveness {
        self.nodes.liveness()
    }

    /// Link crossings so far.
    pub(crate) fn hops(&self) -> u64 {
        self.ports.hops()
    }

    /// Writes the queue lengths of all switch ports to a table of all ports of the fabric.
    pub(crate) fn write_queues(&self, all: &mut [u32]) {
        let switches = self.nodes.all().iter().filter(|node| !node.is_host);
        switches.flat_map(|node| node.both()).for_each(|(p, gp)| all[gp] = self.ports.shown(p));
    }

    /// Samples the counts of the group's nodes.
    pub(crate) fn sample(&mut self, setup: &Setup<'_>, sampler: &mut Sampler) {
        self.nodes.hosts_mut().iter_mut().for_each(|host| host.sample(sampler));
        for n in 0..self.nodes.all().len() {
            let node = self.nodes.node(n);
            for (p, gp) in node.both() {
                let track = setup.ports[gp].track;
                if track != NO_TRACK {
                    let (port, link) = (self.ports.port_mut(p), self.outputs.link_mut(p));
                    let (mut most, mut counted) = (port.longest_queue(link), port.counted(link));
                    if node.is_host {
                        (most, counted.waits) = (0, 0); // a host queues only replies
                    }
                    sampler.link(track, counted, most);
                }
            }
            if !node.is_host {
                let at = self.nodes.switch(n);
                sampler.buffer(setup.fabric().switch_number(at.node.id), at.switch.buffer.take_recent());
            }
        }
        if setup.plan.record.counters {
            let mut sink = |name, value| sampler.counter(name, value);
            self.nodes.switches().iter().for_each(|switch| switch.scheme.counters(&mut sink));
            self.nodes.hosts().iter().for_each(|host| host.counters(&mut sink));
        }
    }

    /// The paused channels of a port and the data that waits there.
    pub(crate) fn blocked(&self, setup: &Setup<'_>, port: u32) -> Blocked {
        self.ports.blocked(setup, port as usize)
    }

    /// The records of the group's nodes.
    pub(crate) fn recorders(&mut self) -> impl Iterator<Item = &mut Recorder> {
        let hosts = self.nodes.hosts_mut().iter_mut().map(|host| &mut host.recorder);
        hosts.chain([self.outputs.recorder_mut()])
    }

    /// Memory of the recorded events and frames, bytes.
    pub(crate) fn records(&self) -> u64 {
        let hosts = self.nodes.hosts().iter().map(|host| &host.recorder);
        hosts.chain([self.outputs.recorder()]).map(Recorder::memory).sum()
    }

    /// Adds the memory of the group's packets and records; `written` are its lanes on the board.
    pub(crate) fn add_memory(&mut self, memory: &mut Memory, written: &mut Lanes<P::Annex>) {
        let parcel = size_of::<Parcel<P::Annex>>();
        let ports = self.nodes.all().iter().flat_map(|node| node.both());
        ports.for_each(|port| self.ports.add_memory(memory, port));
        for lane in self.outputs.lanes.iter_mut().chain(written) {
            memory.in_flight += (lane.packets().capacity() * parcel) as u64;
        }
        let held: usize = self.nodes.switches().iter().map(|switch| switch.stashed().count()).sum();
        memory.queues += (held * parcel) as u64;
        memory.records += self.records();
    }

    /// True if arrivals in the last window come after the end of the run.
    pub(crate) fn cut_short(&self) -> bool {
        self.outputs.cut_short()
    }

    /// Counts the packets on wires and in queues after the last window, `number`; `written` are the group's lanes
    /// on the board.
    pub(crate) fn count_in_flight(&mut self, number: u64, written: &Lanes<P::Annex>) {
        for lane in written.iter().filter(|lane| lane.window == number) {
            self.outputs.count_in_flight(&lane.take());
        }
        self.outputs.count_in_flight(self.inside.iter().flat_map(Inside::carried));
        self.ports.count_in_flight(self.outputs.tally_mut());
    }

    /// Writes the counts of the group's ports to the tables of the whole fabric; returns the end of the last frame, ps.
    pub(crate) fn report(&mut self, links: &mut [LinkRecord], paused_since: &mut [u64]) -> u64 {
        let mut last = 0;
        for node in self.nodes.all() {
            for (p, gp) in node.both() {
                let port = self.ports.port(p);
                (links[gp], paused_since[gp]) = self.outputs.report(p, port);
                if node.is_host {
                    links[gp].max_queue = 0; // a host queues only replies
                }
                last = last.max(port.last);
            }
        }
        last
    }

    /// Counts of the queues of the group's switches by port, if the run records them.
    pub(crate) fn queues(&self) -> Vec<(usize, [QueueCounts; Classes::MOST])> {
        let ports = self.nodes.all().iter().filter(|node| !node.is_host).flat_map(|node| node.both());
        ports.filter_map(|(p, gp)| Some((gp, self.ports.counts(p)?))).collect()
    }

    /// Returns the group's hosts, switches, tasks, counts and records.
    pub(crate) fn split(self) -> Parted<P> {
        let (hosts, switches, tasks) = self.nodes.split();
        let (tally, recorder) = self.outputs.split();
        Parted { hosts, switches, tasks, tally, recorder }
    }
}
