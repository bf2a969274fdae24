//! UGAL-G: UGAL with a view of the queues of all switches, which is taken periodically and arrives with a delay.
//!
//! Kim et al. (ISCA 2008, section 4.1) let a router know at once the queues of all links that leave its group, and call
//! that hard to implement. Here the knowledge is as old as in a network that has to distribute it. The cost of a path is
//! the queue of its first port. If that port leads to another router of the group, the cost includes the shortest queue
//! by which that router forwards, taken from the newest view. Everything else is as in UGAL-L.

use crate::ar::load;
use crate::choice::{Chosen, Ugal};
use crate::{Facts, Golden, Recipe, needs_groups, palette::Look};
use finding::{Finding, code};
use model::fabric::Detours;
use model::scheme::QueueView;
use model::{
    Bytes, Cx, Detour, HostId, Interest, LinkId, Packet, Plan, PortIndex, Reroute, Scheme, Site, Time,
    Verdict,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[scheme.ugal-g]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "SchemeUgalG")]
pub struct Config {
    /// Weight of a byte that waits on a detour, relative to a byte on a minimal path. Default 2 (SST's merlin).
    pub weight: u32,
    /// Bytes added to a detour's weighted queues. Default 3200 B (SST's merlin: 50 flits, of 64 B in the Flowcut
    /// authors' runs).
    pub bias: Bytes,
    /// Period between two views of all queues, rounded up to whole windows of the engine. Default 1 us (our choice: about
    /// a round trip inside a group).
    pub period: Time,
    /// Delay until a view is known everywhere, rounded up to whole windows of the engine. Default 1 us (our choice).
    pub delay: Time,
}

impl Default for Config {
    fn default() -> Self {
        let Ugal { weight, bias } = Ugal::default();
        Config { weight, bias, period: Time::from_us(1), delay: Time::from_us(1) }
    }
}

impl Config {
    fn own_view(&self) -> QueueView {
        QueueView { period: self.period, delay: self.delay }
    }
}

/// The scheme of one switch.
#[derive(Clone, Debug)]
pub struct UgalG {
    ugal: Ugal,
    view: QueueView,
    /// Group of every host, and the number of its router in that group.
    places: Vec<(u16, u16)>,
    group: u16,
    /// Number of groups, and number of routers in this group.
    groups: usize,
    members: usize,
    /// Live links by which the router behind a port forwards, by port and by target. A target is a group or a
    /// router of this group. Empty for ports to hosts and to routers of other groups.
    beyond: Vec<Vec<LinkId>>,
    /// The same lists for the whole fabric, including links that are dead now.
    whole: Vec<Vec<LinkId>>,
    chosen: Chosen,
}

impl Recipe for Config {
    type Scheme = UgalG;
    const LOOK: Option<Look> = Some(Look::new(0, 0));
    const TRIALS: &'static [&'static str] = &["", "period = \"300ns\"\ndelay = \"1500ns\""];
    const GOLDEN: Golden = Golden::Dragonfly(&[("", "")]);

    fn facts(&self) -> Facts {
        Facts { view: Some(self.own_view()), ..Facts::plain(true) }
    }

    fn build(&self, site: Site<'_>) -> UgalG {
        let fabric = site.fabric();
        let mut sizes = vec![0u16; fabric.groups()];
        let mut place = vec![(0, 0); fabric.nodes()];
        for node in fabric.switches() {
            let Some(group) = fabric.group(node) else { break };
            place[node.index()] = (group as u16, sizes[group]);
            sizes[group] += 1;
        }
        let (group, _) = place[site.node.index()];
        let members = sizes.get(usize::from(group)).map_or(0, |&n| usize::from(n));
        let targets = sizes.len() + members;
        let near = |node: model::NodeId| !fabric.is_host(node) && place[node.index()].0 == group;
        let mut whole = vec![Vec::new(); fabric.ports(site.node).len() * targets];
        for link in fabric.ports(site.node).iter().filter(|link| targets > 0 && near(link.to)) {
            for next in fabric.ports(link.to).iter().filter(|next| !fabric.is_host(next.to)) {
                let (to, member) = place[next.to.index()];
                let target = if to == group { sizes.len() + usize::from(member) } else { usize::from(to) };
                whole[link.port.index() * targets + target].push(fabric.link(next.from, next.port));
            }
        }
        UgalG {
            ugal: Ugal { weight: self.weight, bias: self.bias },
            view: self.own_view(),
            places: (0..fabric.hosts()).map(|h| place[fabric.attachment(HostId(h as u32)).index()]).collect(),
            group,
            groups: sizes.len(),
            members,
            beyond: whole.clone(),
            whole,
            chosen: Chosen::default(),
        }
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        for (field, time) in [("period", self.period), ("delay", self.delay)] {
            // A view older than a second is useless, and views in transit take memory.
            if time == Time::ZERO || time > Time::from_ms(1_000) {
                return Err(code::RANGE.at(field, format!("{time}; above 0 and at most 1 s is possible")));
            }
        }
        if self.delay.ps() / self.period.ps() > MOST_UNDER_WAY {
            let text = format!(
                "at most {MOST_UNDER_WAY} periods are possible, and this is {}",
                self.delay.ps() / self.period.ps()
            );
            return Err(code::RANGE.at("delay", text));
        }
        needs_groups(plan)
    }
}

/// Most views in transit at a time. Our choice: each takes 4 B for every port of the fabric.
const MOST_UNDER_WAY: u64 = 1_000;

impl UgalG {
    /// Bytes that wait on the path to host `to` that begins with `port`, as far as this switch knows.
    #[inline]
    fn cost(&self, cx: &Cx<'_>, to: HostId, port: PortIndex, via: Option<Detour>) -> u64 {
        let own = u64::from(load(cx.queued, port));
        let Some(&(group, member)) = self.places.get(to.index()) else { return own };
        let inside = self.groups + usize::from(member);
        let target = match via {
            Some(Detour::Group(over)) => usize::from(over),
            Some(Detour::Member(_)) => inside,
            None if group == self.group => inside,
            None => usize::from(group),
        };
        let links = self.beyond.get(port.index() * (self.groups + self.members) + target);
        let waits = |link: &LinkId| cx.view.get(link.index()).copied().unwrap_or(0);
        own + u64::from(links.and_then(|links| links.iter().map(waits).min()).unwrap_or(0))
    }
}

impl Scheme for UgalG {
    #[inline]
    fn interest(&self) -> Interest {
        Interest {
            queues: true,
            plain_replies: true,
            detours: true,
            view: Some(self.view),
            ..Interest::default()
        }
    }

    #[inline]
    fn reads_queues(&self, pkt: &Packet, ports: &[PortIndex], detours: &Detours<'_>) -> bool {
        pkt.is_data() && (ports.len() > 1 || !detours.is_empty())
    }

    #[inline]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        if !pkt.is_data() {
            return Verdict::Forward(cx.base_path(pkt, ports));
        }
        let to = pkt.to();
        let choice = self.ugal.choose(cx, ports, |cx, port, via| self.cost(cx, to, port, via));
        self.chosen.take(cx, choice)
    }

    /// Leaves dead links out: their queues are empty and would attract packets.
    fn on_routes_change(&mut self, _: &mut Cx<'_>, news: &Reroute<'_>) {
        self.beyond.clone_from(&self.whole);
        for links in &mut self.beyond {
            links.retain(|link| !news.routing.is_some_and(|routing| routing.is_dead(*link)));
        }
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.chosen.counters(sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SchemeConfig;
    use crate::bench::{Bench, dragonfly, leaf_spine, qp};
    use model::Psn;

    #[test]
    fn a_queue_at_the_next_router_causes_a_detour() {
        // Five groups of three routers; router 0 of group 0 has no link to group 4 of its own.
        let plan = dragonfly(5, 3, 1);
        let fabric = &plan.fabric;
        let here = fabric.find("g0r0").unwrap();
        let mut bench = Bench::new(&plan, "g0r0", &SchemeConfig::named("ugal-g").unwrap());
        let to = (0..15).find(|&h| {
            let port = fabric.route(here, HostId(h))[0];
            fabric.group(fabric.attachment(HostId(h))) > Some(0)
                && fabric.group(fabric.ports(here)[port.index()].to) == Some(0)
        });
        let qp = qp(&plan, 0, to.expect("some path begins inside the group"));
        let detours = |bench: &mut Bench| {
            (0..200).filter(|&psn| bench.see(bench.data(qp, Psn::new(psn))).via.is_some()).count()
        };
        assert_eq!(detours(&mut bench), 0, "all queues are empty");
        let gateway = fabric.ports(here)[fabric.route(here, plan.qps[qp.index()].to)[0].index()].to;
        for link in fabric.ports(gateway).iter().filter(|l| fabric.group(l.to).is_some_and(|g| g > 0)) {
            bench.view[fabric.link(gateway, link.port).index()] = 10_000;
        }
        assert!(detours(&mut bench) > 100, "the view shows the queues at {}", fabric.name(gateway));
        // UGAL-L ignores the queues of other routers.
        let mut local = Bench::new(&plan, "g0r0", &SchemeConfig::named("ugal-l").unwrap());
        local.view.clone_from(&bench.view);
        assert_eq!(detours(&mut local), 0);
    }

    #[test]
    fn a_dead_link_with_an_empty_queue_attracts_no_packets() {
        // Four groups of two routers, with two links between any two groups, one from each router. Router 0's
        // own link to group 1 is dead, so all packets go by router 1, where a queue stands before the live
        // link.
        let plan = dragonfly(4, 2, 2);
        let fabric = &plan.fabric;
        let [here, beside] = ["g0r0", "g0r1"].map(|name| fabric.find(name).unwrap());
        let over = |from| *fabric.ports(from).iter().find(|l| fabric.group(l.to) == Some(1)).unwrap();
        let (own, next) = (over(here), over(beside));
        let qp = qp(&plan, 0, 2);
        let detours = |dead: &[(&str, &str)]| {
            let mut bench = Bench::new(&plan, "g0r0", &SchemeConfig::named("ugal-g").unwrap());
            bench.reroute(dead);
            bench.view[fabric.link(next.from, next.port).index()] = 50_000;
            (0..200).filter(|&psn| bench.see(bench.data(qp, Psn::new(psn))).via.is_some()).count()
        };
        assert_eq!(detours(&[]), 0, "the router's own link is idle");
        assert!(detours(&[("g0r0", fabric.name(own.to))]) > 100);
        // If both links were dead, packets would reach group 1 over other groups anyway.
        let both = [("g0r0", fabric.name(own.to)), ("g0r1", fabric.name(next.to))];
        assert!(detours(&both) < 200);
    }

    #[test]
    fn times_out_of_range_and_other_fabrics_are_refused() {
        let plan = dragonfly(3, 2, 1);
        let config = |period, delay| Config { period, delay, ..Config::default() };
        assert_eq!(config(Time::ZERO, Time(1)).validate(&plan).unwrap_err().path(), "period");
        assert_eq!(config(Time(1), Time::from_us(1)).validate(&plan).unwrap_err().path(), "delay");
        assert_eq!(Config::default().validate(&plan), Ok(vec![]));
        assert!(Config::default().validate(&leaf_spine(2, 2, 1)).is_err());
    }
}
