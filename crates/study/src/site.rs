//! What the fabric of a scenario has.

use crate::traffic;

use lab::execute::{Prepared, execute};
use lab::{Failure, Progress, Run};
use model::fabric::Link;
use model::plan::{FlowControl, Group, Marking, PortSettings, Watchdog};
use model::{HostId, Kind, LinkId, NodeId, Plan, Rate, Time};
use rnic::Evidence;
use scenario::dscp::DscpMap;
use scenario::{Checked, Finding, Scenario};
use std::collections::BTreeSet;

/// Most hosts of a rack that take part: the plans have 8 ports on a leaf (sonic-mgmt #27315).
pub(crate) const PORTS: usize = 8;

/// Most of a buffer that an incast fills. Our choice: twice that of a switch of 51.2 Tb/s.
pub(crate) const MOST: u64 = 512_000_000;

/// Time that these bytes take on a link.
pub(crate) fn time_of(bytes: u64, rate: Rate) -> Time {
    let ps = u128::from(bytes) * 8_000_000_000_000 / u128::from(rate.bps().max(1));
    Time(u64::try_from(ps).unwrap_or(u64::MAX))
}

/// A site.
pub(crate) struct Site {
    /// Path or name of its scenario.
    pub(crate) name: String,
    /// The user's changes.
    set: Vec<String>,
    pub(crate) scenario: Scenario,
    /// The plan of its own workload, with the longest messages alone.
    pub(crate) plan: Plan,
    /// Endpoints by rack, one of each server, the fullest rack first.
    racks: Vec<(NodeId, Vec<HostId>)>,
}

/// A queue of the site for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    /// Its number in the map.
    pub(crate) number: usize,
    pub(crate) dscp: u8,
    pub(crate) lossless: bool,
    pub(crate) weight: Option<u32>,
}

impl Site {
    pub(crate) fn new(name: &str, set: &[String]) -> Result<Self, Failure> {
        // The site's own workload is counted only: it may be too large for a run.
        let survey = scenario::survey(name, None, &[set, &traffic::clean()].concat())?;
        let Checked { plan, scenario, .. } = survey.checked().clone();
        let mut racks: Vec<(NodeId, Vec<HostId>)> =
            plan.fabric.racks().iter().map(|node| (*node, Vec::new())).collect();
        let mut nodes = BTreeSet::new();
        for host in (0..plan.fabric.hosts() as u32).map(HostId) {
            let rack = plan.fabric.rack(host);
            // Ports of one server send to nobody in it.
            if nodes.insert((rack, plan.fabric.node_of(host))) {
                racks[rack].1.push(host);
            }
        }
        racks.retain(|(node, hosts)| !hosts.is_empty() && !plan.fabric.is_host(*node));
        racks.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
        if racks.is_empty() {
            return Err(Failure::Asked(format!(
                "`{name}` has no switch with hosts, so there is nothing to accept"
            )));
        }
        Ok(Site { name: name.to_owned(), set: set.to_vec(), scenario, plan, racks })
    }

    /// All changes of a run.
    pub(crate) fn sets(&self, of_case: &[String]) -> Vec<String> {
        [&self.set[..], &traffic::clean(), of_case].concat()
    }

    /// Runs the site with these changes. The inner error is that of a scenario that is refused.
    pub(crate) fn run(
        &self,
        of_case: &[String],
        progress: &Progress<'_>,
    ) -> Result<Result<Run, Finding>, Failure> {
        if progress.stopped() {
            return Err(Failure::Interrupted);
        }
        let prepared = match Prepared::by(|| scenario::load(&self.name, &self.sets(of_case))) {
            Ok(prepared) => prepared,
            Err(refused) => return Ok(Err(refused)),
        };
        let run = execute(prepared, engine::Kind::Window, progress);
        run.ran_to_its_end()?;
        Ok(Ok(run))
    }

    /// The command that repeats a run.
    pub(crate) fn command(&self, of_case: &[String]) -> String {
        let sets = self.sets(of_case).into_iter().flat_map(|set| ["--set".to_owned(), set]);
        lab::shell::line(["ropewalk".to_owned(), "run".into(), self.name.clone()].into_iter().chain(sets))
    }

    /// Name of an endpoint in a workload.
    pub(crate) fn host(&self, host: HostId) -> String {
        self.plan.fabric.host_name(host).into_owned()
    }

    /// Rate of an endpoint's link.
    pub(crate) fn rate(&self, host: HostId) -> Rate {
        self.plan.fabric.uplink(host).rate
    }

    /// GPUs of the fabric: those of its servers, else a GPU per host.
    pub(crate) fn gpus(&self) -> usize {
        let of_server = self.scenario.server.as_ref().and_then(|server| server.gpus);
        self.plan.fabric.servers() * of_server.unwrap_or(1)
    }

    /// Up to eight hosts of the fullest rack.
    pub(crate) fn leaf(&self) -> &[HostId] {
        let hosts = &self.racks[0].1;
        &hosts[..hosts.len().min(PORTS)]
    }

    /// Equally many hosts of the two fullest racks, up to eight each.
    pub(crate) fn two_leaves(&self) -> Result<(&[HostId], &[HostId]), String> {
        let (_, a) = &self.racks[0];
        if self.racks.len() < 2 {
            return Err("the fabric has one leaf".to_owned());
        }
        let reached = |(_, b): &&(NodeId, Vec<HostId>)| self.plan.fabric.reaches(a[0], b[0]);
        let Some((_, b)) = self.racks[1..].iter().find(reached) else {
            return Err("no path leads from one leaf to another".to_owned());
        };
        let n = a.len().min(b.len()).min(PORTS);
        Ok((&a[..n], &b[..n]))
    }

    /// A receiver and up to `n` senders, those of its rack first. At least two.
    pub(crate) fn incast(&self, n: usize) -> Result<(HostId, Vec<HostId>), String> {
        let mut hosts = self.racks.iter().flat_map(|(_, hosts)| hosts.iter().copied());
        let receiver = hosts.next().unwrap_or_default();
        let reaches = |host: &HostId| self.plan.fabric.reaches(*host, receiver);
        let senders: Vec<HostId> = hosts.filter(reaches).take(n).collect();
        match senders.len() {
            0 | 1 => Err("fewer than two hosts can send to another one".to_owned()),
            _ => Ok((receiver, senders)),
        }
    }

    /// A receiver and up to eight senders of its own rack; of all racks if it has fewer than two.
    pub(crate) fn rack_incast(&self) -> Result<(HostId, Vec<HostId>), String> {
        match self.racks[0].1.len() {
            0..3 => self.incast(PORTS),
            n => self.incast((n - 1).min(PORTS)),
        }
    }

    /// True if congestion control reads marks, on data or as CNPs.
    pub(crate) fn reads_marks(&self) -> bool {
        matches!(self.scenario.nic.congestion.facts().evidence, Evidence::Cnps | Evidence::Marks)
    }

    /// Links from the fullest rack's switch upwards.
    pub(crate) fn uplinks(&self) -> Vec<(LinkId, Link)> {
        let fabric = &self.plan.fabric;
        let leaf = self.racks[0].0;
        let ports = fabric.ports(leaf).iter().enumerate();
        ports
            .filter(|(_, link)| !fabric.is_host(link.to) && fabric.tier(link.to) > fabric.tier(leaf))
            .map(|(port, link)| (LinkId(fabric.base(leaf) + port as u32), *link))
            .collect()
    }

    /// Settings of the queues in which data of the foreground waits; `None` if they are those of the plan.
    fn group(&self) -> Option<&Group> {
        let plan = &self.plan;
        let class = plan.traffic_classes.iter().position(|name| name == "foreground").unwrap_or(0);
        let of_kinds = plan.own_queues.rows.get(class)?;
        let group = plan.classes.all()[usize::from(of_kinds[Kind::Data as usize])].group;
        usize::from(group).checked_sub(1).map(|group| &plan.own_queues.groups[group])
    }

    /// Settings of the port that leads to a host, for data.
    fn port_to(&self, host: HostId) -> PortSettings {
        let fabric = &self.plan.fabric;
        // An endpoint has the number of its link.
        let link = fabric.reverse(LinkId(host.0));
        self.group().map_or(self.plan.ports[link.index()], |group| group.ports[link.index()])
    }

    /// Marking of the port that leads to a host.
    pub(crate) fn marking(&self, host: HostId) -> Option<Marking> {
        self.port_to(host).marking
    }

    /// Headroom of the port at which a host's data arrives, bytes.
    pub(crate) fn headroom(&self, host: HostId) -> u64 {
        self.port_to(host).headroom.get()
    }

    /// What the fullest rack's switch does with data that finds no room.
    fn flow_control(&self) -> FlowControl {
        let number = self.plan.fabric.switch_number(self.racks[0].0);
        self.group().map_or(&self.plan.switches, |group| &group.switches)[number].flow_control
    }

    /// True if the fullest rack's switch pauses senders of data instead of dropping it.
    pub(crate) fn lossless(&self) -> bool {
        self.flow_control().is_lossless()
    }

    /// Its watchdog.
    pub(crate) fn watchdog(&self) -> Option<Watchdog> {
        self.flow_control().watchdog()
    }

    /// Buffer of the fullest rack's switch, bytes.
    pub(crate) fn buffer(&self) -> u64 {
        self.plan.switches[self.plan.fabric.switch_number(self.racks[0].0)].buffer.get()
    }

    /// Queues for data by DSCP; none if switches do not read it.
    pub(crate) fn queues(&self) -> Vec<Queue> {
        let map = self.scenario.switch.dscp_map.as_ref();
        let queues = map.map(DscpMap::queues).unwrap_or_default();
        let listed: Vec<u8> = queues.iter().flat_map(|queue| queue.dscp.clone()).collect();
        let free = (0..64).find(|dscp| !listed.contains(dscp));
        let of = |(number, queue): (usize, &scenario::dscp::DscpQueue)| {
            let dscp = queue.dscp.first().copied().or(free)?;
            Some(Queue { number, dscp, lossless: queue.lossless, weight: queue.weight })
        };
        queues.iter().enumerate().filter_map(of).collect()
    }

    /// A lossy queue for data beside the site's own and that of CNPs.
    pub(crate) fn lossy_queue(&self) -> Option<Queue> {
        let own = self.own_queue()?;
        let cnp = self.queue_of(self.scenario.nic.cnp_dscp)?;
        self.queues()
            .into_iter()
            .find(|queue| !queue.lossless && queue.number != own.number && queue.number != cnp.number)
    }

    /// The queue of the site's own data.
    pub(crate) fn own_queue(&self) -> Option<Queue> {
        self.queue_of(self.scenario.nic.dscp)
    }

    fn queue_of(&self, dscp: u8) -> Option<Queue> {
        let map = self.scenario.switch.dscp_map.as_ref()?;
        let queues = map.queues();
        let number = DscpMap::queue(&queues, dscp);
        let queue = &queues[number];
        Some(Queue { number, dscp, lossless: queue.lossless, weight: queue.weight })
    }

    /// True if congestion control reacts to CNPs.
    pub(crate) fn hears_cnps(&self) -> bool {
        self.scenario.nic.congestion.facts().evidence == Evidence::Cnps
    }

    /// Payload that a link of this rate carries in a time, bytes.
    pub(crate) fn payload(&self, rate: Rate, time: Time) -> u64 {
        let wire = &self.plan.wire;
        let share = f64::from(wire.payload) / f64::from(wire.payload + wire.header + wire.gap);
        (rate.bps() as f64 / 8.0 * share * time.as_secs()) as u64
    }

    /// Bytes over one port that fill the switch's buffer one and a half times if `n` hosts send at once, and take 2 ms at least. Our
    /// choice in place of the plans' seconds: PFC and control act within microseconds.
    pub(crate) fn flood(&self, n: usize, rate: Rate) -> u64 {
        let filling = self.buffer().min(MOST) * 3 / 2 * n as u64 / (n as u64 - 1).max(1);
        filling.max(self.payload(rate, Time::from_us(2_000)))
    }
}
