//! The ports by which packets leave their group in a fabric of groups.

use super::groups::{Groups, MinimalPaths};
use super::port_sets::PortSets;
use super::topology::{FabricError, Link, Topology};
use crate::PortIndex;

/// By switch and group: entries of port sets, like those of a row of routes.
#[derive(Clone, Debug)]
pub(super) struct Gateways {
    groups: usize,
    /// All ports on minimal paths to the group.
    toward: Vec<u32>,
    /// The global links among these ports.
    global: Vec<u32>,
}

impl Gateways {
    /// Finds the ports that lead from every switch to every other group.
    pub(super) fn find(
        topology: &Topology,
        groups: &Groups,
        sets: &mut PortSets,
    ) -> Result<Self, FabricError> {
        let global_ports = global_ports(topology, groups)?;
        let count = groups.count();
        let (mut toward, mut global) = (Vec::new(), Vec::new());
        for switch in 0..groups.switches() {
            let own = groups.of(switch).group;
            for group in 0..count {
                let at = |switch: usize| &global_ports[switch * count + group];
                let mut ports = at(switch).clone();
                let global_entry = sets.entry(ports.iter().copied())?;
                if group != usize::from(own) && (ports.is_empty() || groups.minimal == MinimalPaths::AnyLink)
                {
                    let gateways = links_between_switches(topology, switch).filter(|link| {
                        let next = topology.switch_number(link.to);
                        groups.of(next).group == own && !at(next).is_empty()
                    });
                    ports.extend(gateways.map(|link| link.port));
                    ports.sort_unstable();
                    if ports.is_empty() {
                        return Err(FabricError::GroupsApart(usize::from(own), group));
                    }
                }
                toward.push(sets.entry(ports.iter().copied())?);
                global.push(global_entry);
            }
        }
        Ok(Gateways { groups: count, toward, global })
    }

    /// The entry of all ports on minimal paths to a group.
    #[inline]
    pub(super) fn toward(&self, switch: usize, group: u16) -> u32 {
        self.toward[switch * self.groups + usize::from(group)]
    }

    /// The entry of the switch's own global links to a group; 0 if it has none.
    #[inline]
    pub(super) fn global(&self, switch: usize, group: u16) -> u32 {
        self.global[switch * self.groups + usize::from(group)]
    }
}

fn links_between_switches(topology: &Topology, switch: usize) -> impl Iterator<Item = &Link> {
    topology.ports(topology.switch(switch)).iter().filter(|link| !topology.is_host(link.to))
}

/// The ports of global links, by switch and group. Fails if two switches of a group share no link.
fn global_ports(topology: &Topology, groups: &Groups) -> Result<Vec<Vec<PortIndex>>, FabricError> {
    let name = |switch: usize| topology.name(topology.switch(switch)).to_owned();
    let mut global = vec![Vec::new(); groups.switches() * groups.count()];
    for switch in 0..groups.switches() {
        let own = groups.of(switch);
        let mut met = vec![false; groups.size(own.group)];
        for link in links_between_switches(topology, switch) {
            let next = groups.of(topology.switch_number(link.to));
            match next.group == own.group {
                true => met[usize::from(next.number)] = true,
                false => global[switch * groups.count() + usize::from(next.group)].push(link.port),
            }
        }
        met[usize::from(own.number)] = true;
        if let Some(number) = met.iter().position(|met| !met) {
            let is_missing = |&other: &usize| {
                let other = groups.of(other);
                other.group == own.group && usize::from(other.number) == number
            };
            let other = (0..groups.switches()).find(is_missing).unwrap_or(switch);
            return Err(FabricError::NotMeshed(name(switch), name(other)));
        }
    }
    Ok(global)
}
