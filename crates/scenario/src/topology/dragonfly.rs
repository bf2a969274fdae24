//! Dragonfly: fully connected groups of routers, and links between every two groups (Kim, Dally, Scott and Abts,
//! "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008).

use super::links::{possible_delay, possible_rate};
use super::{Ground, Layout};
use crate::footprint::Size;
use crate::values::Chance;
use finding::{Finding, code};
use model::fabric::{MOST_CHANNELS, MinimalPaths};
use model::{Fabric, HostId, NodeId, Packet, Rate, RouteState, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Dragonfly: links join every two routers of a group, and several links join every two groups. The links to other
/// groups are dealt to the routers of a group in turn, so that the numbers of two routers differ by at most one.
///
/// Nodes are named `host0`, `host1`, ... (router by router, group by group), `group0-router0`, ...; the role of switches is
/// `router`. The defaults are the Flowcut paper's fabric of 1024 hosts; `groups = 8` is its Slingshot of 2048 hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Dragonfly {
    /// Number of groups. Default 4 (Flowcut paper, section III-C4).
    pub groups: usize,
    /// Number of routers in each group. Default 16 (Flowcut paper, section III-C4).
    pub routers_per_group: usize,
    /// Number of hosts on each router. Default 16 (Flowcut paper, section III-C4).
    pub hosts_per_router: usize,
    /// Number of links between every two groups. Default 16 (Flowcut paper, section III-C4).
    pub links_per_pair: usize,
    /// Number of ports of a router; a Dragonfly that needs more is refused. Default: as many as needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<usize>,
    /// Rate of the links to hosts. Default 200 Gb/s (Flowcut paper, section III-C4).
    pub rate: Rate,
    /// Propagation delay of the links to hosts. Default 1 us (Flowcut paper, section III-C4).
    pub delay: Time,
    /// Probability that a link to a host loses a packet. Default: `loss` of `[links]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Chance>,
    /// Rate of the links inside groups. Default: `rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_rate: Option<Rate>,
    /// Propagation delay of the links inside groups. Default: `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_delay: Option<Time>,
    /// Probability that a link inside a group loses a packet. Default: `loss` of `[links]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_loss: Option<Chance>,
    /// Rate of the links between groups. Default: `rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_rate: Option<Rate>,
    /// Propagation delay of the links between groups. Default: `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_delay: Option<Time>,
    /// Probability that a link between groups loses a packet. Default: `loss` of `[links]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_loss: Option<Chance>,
    /// Minimal paths to another group; all of them cross exactly one link between groups. `"fewest-hops"`: the shortest
    /// of these paths. `"any-link"`: paths over any link between the two groups, via the router that has it (as SST's
    /// merlin defines them). Default `"fewest-hops"` (Kim et al., ISCA 2008, section 4.1).
    pub minimal: MinimalPathsConfig,
    /// Number of virtual channels of the links between routers, 1 to 3. A packet waits and is paused in the channel of
    /// its leg: source group, intermediate group or destination group. Each channel has PFC headroom of its own. With
    /// fewer than 3 channels detours may deadlock; with 1 channel minimal paths may deadlock, too. If failures cut all
    /// links between two groups, packets between them need 3 channels to go over a third group. Default 3 (Kim et al.,
    /// ISCA 2008, section 4.1).
    pub channels: u8,
}

/// Which paths to another group are minimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MinimalPathsConfig {
    /// The shortest paths over one link between groups.
    #[default]
    FewestHops,
    /// All paths over one link between groups.
    AnyLink,
}

impl Default for Dragonfly {
    fn default() -> Self {
        Dragonfly {
            groups: 4,
            routers_per_group: 16,
            hosts_per_router: 16,
            links_per_pair: 16,
            ports: None,
            rate: Rate::from_gbps(200),
            delay: Time::from_us(1),
            loss: None,
            local_rate: None,
            local_delay: None,
            local_loss: None,
            global_rate: None,
            global_delay: None,
            global_loss: None,
            minimal: MinimalPathsConfig::FewestHops,
            channels: MOST_CHANNELS,
        }
    }
}

impl Dragonfly {
    fn routers(&self) -> usize {
        self.groups.saturating_mul(self.routers_per_group)
    }

    /// Number of links that leave a group.
    fn leaving(&self) -> usize {
        self.groups.saturating_sub(1).saturating_mul(self.links_per_pair)
    }

    /// Router of `group` at the end of link number `link` to group `other`.
    fn end(&self, group: usize, other: usize, link: usize) -> usize {
        let nth = (other + self.groups - group - 1) % self.groups;
        (nth * self.links_per_pair + link) % self.routers_per_group
    }

    fn possible(&self) -> Result<(), Finding> {
        let links = if self.groups > 1 { self.links_per_pair } else { 1 };
        for (key, count, what) in [
            ("groups", self.groups, "group"),
            ("routers-per-group", self.routers_per_group, "router in every group"),
            ("hosts-per-router", self.hosts_per_router, "host on every router"),
            ("links-per-pair", links, "link between every two groups"),
        ] {
            if count == 0 {
                return Err(code::RANGE.at(key, format!("a Dragonfly needs at least 1 {what}")));
            }
        }
        for (key, count, what) in [
            ("groups", self.groups, "groups"),
            ("routers-per-group", self.routers_per_group, "routers in a group"),
        ] {
            if count > RouteState::MOST {
                return Err(code::RANGE
                    .at(key, format!("expected at most {} {what}, found {count}", RouteState::MOST)));
            }
        }
        let hosts = self.routers().saturating_mul(self.hosts_per_router);
        if hosts > HostId::MOST {
            return Err(
                code::RANGE.at("groups", format!("expected at most {} hosts, found {hosts}", HostId::MOST))
            );
        }
        self.wired()?;
        if !(1..=MOST_CHANNELS).contains(&self.channels) {
            let text = format!("expected 1 to {MOST_CHANNELS} channels, found {}", self.channels);
            return Err(code::RANGE.at("channels", text).with_help("a path has at most three legs"));
        }
        let (rate, delay) = (Some(self.rate), Some(self.delay));
        for (key, rate) in
            [("rate", rate), ("local-rate", self.local_rate), ("global-rate", self.global_rate)]
        {
            rate.map_or(Ok(()), |rate| possible_rate(key, rate))?;
        }
        for (key, delay) in
            [("delay", delay), ("local-delay", self.local_delay), ("global-delay", self.global_delay)]
        {
            delay.map_or(Ok(()), |delay| possible_delay(key, delay))?;
        }
        Ok(())
    }

    /// Checks that a router has enough ports.
    fn wired(&self) -> Result<(), Finding> {
        let (hosts, local) = (self.hosts_per_router, self.routers_per_group - 1);
        let global = self.leaving().div_ceil(self.routers_per_group);
        let needed = hosts.saturating_add(local).saturating_add(global);
        let (most, own) = self.ports.map_or((Packet::MAX_PORTS, false), |ports| (ports, true));
        if needed <= most && most <= Packet::MAX_PORTS {
            return Ok(());
        }
        if most > Packet::MAX_PORTS {
            let text = format!("expected at most {} ports, found {most}", Packet::MAX_PORTS);
            return Err(code::RANGE.at("ports", text));
        }
        let parts = [("hosts-per-router", hosts), ("routers-per-group", local), ("links-per-pair", global)];
        let largest = parts.iter().max_by_key(|(_, ports)| *ports).map_or("groups", |(key, _)| key);
        let text = format!(
            "a router needs {needed} ports: {hosts} to hosts, {local} inside its group and {global} to other groups \
             ({} links leave a group of {} routers); {} {most}",
            self.leaving(),
            self.routers_per_group,
            if own { "it has" } else { "a switch has at most" },
        );
        Err(code::FIT.at(if own { "ports" } else { largest }, text))
    }
}

impl Layout for Dragonfly {
    fn size(&self, _: &Ground<'_>) -> Result<Size, Finding> {
        self.possible()?;
        let routers = self.routers();
        let hosts = routers * self.hosts_per_router;
        let local = routers * (self.routers_per_group - 1) / 2;
        let counts = [
            ("groups", self.groups),
            ("routers-per-group", self.routers_per_group),
            ("hosts-per-router", self.hosts_per_router),
            ("links-per-pair", self.links_per_pair),
        ];
        let largest = counts.into_iter().max_by_key(|(_, count)| *count);
        Ok(Size {
            hosts,
            switches: routers,
            links: hosts + local + self.groups * self.leaving() / 2,
            racks: routers,
            key: largest.map_or("groups", |(key, _)| key),
        })
    }

    fn lay(&self, ground: &Ground<'_>) -> Result<Fabric, Finding> {
        let mut builder = ground.builder();
        let (groups, routers) = (self.groups, self.routers_per_group);
        let hosts: Vec<NodeId> =
            (0..self.routers() * self.hosts_per_router).map(|h| builder.host(format!("host{h}"))).collect();
        let names = (0..groups).flat_map(|g| (0..routers).map(move |r| format!("group{g}-router{r}")));
        let switches: Vec<NodeId> = names.map(|name| builder.switch(name, "router")).collect();
        let chance = |own: Option<Chance>| own.map_or(ground.loss, Chance::probability);
        for (h, &host) in hosts.iter().enumerate() {
            let router = switches[h / self.hosts_per_router];
            builder.connect(host, router, self.rate, self.delay, chance(self.loss));
        }
        let rate = self.local_rate.unwrap_or(self.rate);
        let delay = self.local_delay.unwrap_or(self.delay);
        for group in switches.chunks(routers) {
            for (i, &a) in group.iter().enumerate() {
                for &b in &group[i + 1..] {
                    builder.connect(a, b, rate, delay, chance(self.local_loss));
                }
            }
        }
        let rate = self.global_rate.unwrap_or(self.rate);
        let delay = self.global_delay.unwrap_or(self.delay);
        for a in 0..groups {
            for b in a + 1..groups {
                for link in 0..self.links_per_pair {
                    let at = |group: usize, end: usize| switches[group * routers + end];
                    let (from, to) = (at(a, self.end(a, b, link)), at(b, self.end(b, a, link)));
                    builder.connect(from, to, rate, delay, chance(self.global_loss));
                }
            }
        }
        let minimal = match self.minimal {
            MinimalPathsConfig::FewestHops => MinimalPaths::FewestHops,
            MinimalPathsConfig::AnyLink => MinimalPaths::AnyLink,
        };
        let of = (0..self.routers()).map(|router| (router / routers) as u16).collect();
        builder.groups(of, self.channels, minimal);
        builder.build().map_err(|e| code::RANGE.at("", e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Detour, HostId, PortIndex};
    use std::collections::BTreeSet;

    /// A buffer in which packets wait: the two ends of a link, and a channel.
    type Buffer = (NodeId, NodeId, u8);

    fn small(groups: usize, routers: usize, links: usize) -> Dragonfly {
        Dragonfly {
            groups,
            routers_per_group: routers,
            hosts_per_router: 2,
            links_per_pair: links,
            ..Dragonfly::default()
        }
    }

    fn lay(t: &Dragonfly) -> Fabric {
        t.size(&Ground::plain()).unwrap();
        t.lay(&Ground::plain()).unwrap()
    }

    /// Every path that a packet can take: its routers, each with the leg of the link after it.
    fn ways(f: &Fabric, from: HostId, to: HostId, detour: Option<Detour>) -> BTreeSet<Vec<(NodeId, u8)>> {
        let mut done = BTreeSet::new();
        let start = f.uplink(from);
        let mut open = vec![(start.to, start.peer_port, RouteState::default(), vec![])];
        let mut first = detour;
        while let Some((at, ingress, way, path)) = open.pop() {
            assert!(path.len() < 8, "{path:?} goes round");
            let router = f.router(at);
            let mut way = router.arrived(way, ingress);
            if let Some(detour) = first.take() {
                way = way.with_detour(detour);
            }
            let (ports, home) = router.onward(way, ingress, to);
            assert!(!ports.is_empty());
            for &port in ports {
                let link = f.ports(at)[port.index()];
                let mut path: Vec<(NodeId, u8)> = path.clone();
                path.push((at, way.leg()));
                match home {
                    true => drop(done.insert(path)),
                    false => open.push((link.to, link.peer_port, way, path)),
                }
            }
        }
        done
    }

    #[test]
    fn the_papers_dragonfly_has_1024_hosts_and_three_links_to_other_groups_per_router() {
        let t = Dragonfly::default();
        let f = lay(&t);
        assert_eq!((f.hosts(), f.switches().count(), f.groups()), (1024, 64, 4));
        assert_eq!(f.links().len(), 2 * t.size(&Ground::plain()).unwrap().links);
        assert!(f.switches().all(|router| f.ports(router).len() == 16 + 15 + 3));
        let slingshot = Dragonfly { groups: 8, ..t };
        assert_eq!(slingshot.size(&Ground::plain()).unwrap().hosts, 2048);
    }

    #[test]
    fn links_are_dealt_out_evenly_and_all_are_wired() {
        for (groups, routers, links) in
            [(2, 1, 1), (3, 4, 1), (5, 4, 1), (5, 4, 3), (9, 4, 2), (3, 2, 5), (1, 3, 1)]
        {
            let t = small(groups, routers, links);
            let f = lay(&t);
            assert_eq!(f.links().len(), 2 * t.size(&Ground::plain()).unwrap().links);
            let across = |r: &NodeId| {
                let out = |l: &&model::fabric::Link| f.group(l.to).is_some_and(|g| Some(g) != f.group(*r));
                f.ports(*r).iter().filter(out).count()
            };
            let counts: Vec<usize> = f.switches().map(|r| across(&r)).collect();
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(most - least <= 1, "{counts:?}");
            assert_eq!(counts.iter().sum::<usize>(), groups * (groups - 1) * links);
        }
    }

    #[test]
    fn minimal_paths_cross_one_link_between_groups_and_no_third_group() {
        for (groups, routers, links) in
            [(3, 4, 1), (4, 4, 4), (5, 3, 2), (4, 2, 3), (9, 2, 1), (2, 1, 1), (1, 4, 1)]
        {
            for minimal in [MinimalPathsConfig::FewestHops, MinimalPathsConfig::AnyLink] {
                let f = lay(&Dragonfly { minimal, ..small(groups, routers, links) });
                for to in (0..f.hosts() as u32).step_by(2).map(HostId) {
                    let all = ways(&f, HostId(1), to, None);
                    let (home, there) = (f.group(f.attachment(HostId(1))), f.group(f.attachment(to)));
                    for way in &all {
                        let visited: Vec<_> = way.iter().map(|&(at, _)| f.group(at)).collect();
                        assert!(visited.iter().all(|&g| g == home || g == there), "{way:?}");
                        assert!(way.len() <= if home == there { 2 } else { 4 }, "{way:?}");
                        assert!(way.iter().all(|&(at, leg)| u8::from(f.group(at) != home) == leg), "{way:?}");
                    }
                    let shortest = all.iter().map(Vec::len).min();
                    if minimal == MinimalPathsConfig::FewestHops {
                        assert!(all.iter().all(|way| Some(way.len()) == shortest));
                    } else if home != there {
                        let crossings =
                            f.links().iter().filter(|l| f.group(l.from) == home && f.group(l.to) == there);
                        let used: BTreeSet<_> =
                            all.iter().flat_map(|way| way.windows(2)).map(|w| (w[0].0, w[1].0)).collect();
                        assert!(crossings.clone().all(|l| used.contains(&(l.from, l.to))));
                    }
                }
            }
        }
    }

    #[test]
    fn detours_lead_over_every_other_group_or_router_and_have_one_more_leg() {
        for minimal in [MinimalPathsConfig::FewestHops, MinimalPathsConfig::AnyLink] {
            let f = lay(&Dragonfly { minimal, ..small(5, 4, 2) });
            let from = f.attachment(HostId(0));
            for to in (0..f.hosts() as u32).map(HostId) {
                let detours = f.router(from).detours(to);
                let (there, home) = (f.group(f.attachment(to)), f.group(from));
                let expected = match () {
                    () if f.attachment(to) == from => 0,
                    () if there == home => 2,
                    () => 3,
                };
                assert_eq!(detours.len(), expected);
                assert!(detours.get(expected).is_none());
                let mut seen = BTreeSet::new();
                for i in 0..expected {
                    let (detour, ports) = detours.get(i).unwrap();
                    assert!(!ports.is_empty() && ports.iter().all(|p| p.index() >= 2), "never to a host");
                    seen.insert(format!("{detour:?}"));
                    for way in ways(&f, HostId(0), to, Some(detour)) {
                        let legs: Vec<u8> = way.iter().map(|&(_, leg)| leg).collect();
                        assert!(legs.is_sorted());
                        let last = if there == home { 1 } else { 2 };
                        assert_eq!(legs.last(), Some(&last), "{way:?}");
                        let between = way.iter().any(|&(at, leg)| {
                            leg == 1
                                && match detour {
                                    Detour::Group(g) => f.group(at) == Some(g.into()),
                                    Detour::Member(_) => {
                                        at != from && at != f.attachment(to) || way.len() == 3
                                    }
                                }
                        });
                        assert!(between, "{way:?} does not go over {detour:?}");
                    }
                }
                assert_eq!(seen.len(), expected);
            }
            assert_eq!(f.route(from, HostId(39)), f.router(from).ports(HostId(39)).0);
            assert!(f.router(from).onward(RouteState::default(), PortIndex(0), HostId(1)).1);
        }
    }

    /// Checks the proof in [`model::fabric`] by enumeration: no buffer waits for itself.
    #[test]
    fn with_three_channels_no_buffer_waits_for_itself_and_with_one_some_do() {
        for minimal in [MinimalPathsConfig::FewestHops, MinimalPathsConfig::AnyLink] {
            let f = lay(&Dragonfly { minimal, ..small(4, 3, 2) });
            // Pairs of a buffer and the next buffer that its packets wait for.
            let mut waits: BTreeSet<(Buffer, Buffer)> = BTreeSet::new();
            for from in (0..f.hosts() as u32).step_by(2).map(HostId) {
                for to in (0..f.hosts() as u32).step_by(2).map(HostId).filter(|to| !f.same_rack(from, *to)) {
                    let detours = f.router(f.attachment(from)).detours(to);
                    let chosen = (0..detours.len()).filter_map(|i| detours.get(i)).map(|(d, _)| Some(d));
                    for detour in chosen.chain([None]) {
                        for way in ways(&f, from, to, detour) {
                            let hops: Vec<_> = way.windows(2).map(|w| (w[0].0, w[1].0, w[0].1)).collect();
                            waits.extend(hops.windows(2).map(|w| (w[0], w[1])));
                        }
                    }
                }
            }
            let circular = |channels: u8| {
                let channel = |(a, b, leg): (NodeId, NodeId, u8)| (a, b, leg.min(channels - 1));
                let mut left: BTreeSet<_> = waits.iter().map(|&(a, b)| (channel(a), channel(b))).collect();
                loop {
                    let waiting: BTreeSet<_> = left.iter().map(|(a, _)| *a).collect();
                    let before = left.len();
                    left.retain(|(_, b)| waiting.contains(b));
                    if left.len() == before {
                        return !left.is_empty();
                    }
                }
            };
            assert!(!circular(3));
            assert!(circular(2) && circular(1));
        }
    }
}
