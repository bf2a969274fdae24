//! Why nothing moves: the messages that wait, and the cycle of pauses if there is one.

use crate::host::Host;
use crate::outcome::Stall;
use crate::setup::Setup;
use model::{LinkId, NodeId, Parts, PortIndex, Time};

/// How many waiting messages are named.
const NAMED: usize = 20;

/// True if messages have been posted, none is still to start by the clock, and no packet has been accepted
/// and none posted for `patience`, nor a link come back, nor is one still to come back.
pub(crate) fn stuck<P: Parts>(setup: &Setup<'_>, hosts: &[Host<P>], now: u64) -> bool {
    let patience = setup.plan.no_progress;
    let last = hosts.iter().map(|h| h.last_progress()).max().unwrap_or(0).max(setup.failing.last_repair);
    now.saturating_sub(last) > patience.ps() && hosts.iter().all(|h| h.pending_starts() == 0)
}

/// Collects what a user needs to understand a stall. `port` tells of a port whether it is paused and where
/// the data that waits there came in.
pub(crate) fn explain<P: Parts>(
    setup: &Setup<'_>,
    hosts: &[&Host<P>],
    port: impl Fn(usize) -> (bool, Vec<PortIndex>),
) -> Stall {
    let mut waiting: Vec<_> = hosts.iter().flat_map(|h| h.waiting(setup)).collect();
    waiting.sort_by_key(|(id, _)| *id);
    let count = waiting.len() as u64;
    waiting.truncate(NAMED);
    let links = setup.fabric().links();
    let state: Vec<(bool, Vec<PortIndex>)> = (0..links.len()).map(port).collect();
    let paused: Vec<LinkId> =
        (0..links.len()).filter(|gp| state[*gp].0).map(|gp| LinkId(gp as u32)).collect();
    // A paused link waits for those paused ports of its far end that hold packets which came over it.
    let waits_for = |gp: usize| -> Vec<usize> {
        let far = links[gp].to;
        if setup.fabric().is_host(far) {
            return Vec::new();
        }
        let base = setup.fabric().base(far) as usize;
        (base..base + setup.fabric().ports(far).len())
            .filter(|next| state[*next].0 && state[*next].1.contains(&links[gp].peer_port))
            .collect()
    };
    let since = Time(hosts.iter().map(|h| h.last_progress()).max().unwrap_or(0));
    Stall { since, waiting, count, pfc_cycle: cycle(links.len(), &paused, waits_for), paused }
}

/// A cycle of the relation `next` among the `paused` links, if there is one.
fn cycle(links: usize, paused: &[LinkId], next: impl Fn(usize) -> Vec<usize>) -> Vec<LinkId> {
    let mut done = vec![false; links];
    for start in paused {
        let mut path: Vec<(usize, Vec<usize>)> = vec![(start.index(), next(start.index()))];
        let mut on_path = vec![false; links];
        on_path[start.index()] = true;
        while let Some((at, todo)) = path.last_mut() {
            match todo.pop() {
                Some(to) if on_path[to] => {
                    let from = path.iter().position(|(p, _)| *p == to).unwrap_or(0);
                    return path[from..].iter().map(|(p, _)| LinkId(*p as u32)).collect();
                }
                Some(to) if !done[to] => {
                    on_path[to] = true;
                    path.push((to, next(to)));
                }
                Some(_) => {}
                None => {
                    done[*at] = true;
                    on_path[*at] = false;
                    path.pop();
                }
            }
        }
    }
    Vec::new()
}

/// The name of a link for messages: `leaf0 -> spine1`.
pub fn link_name(fabric: &model::Fabric, link: LinkId) -> String {
    let l = &fabric.links()[link.index()];
    let name = |n: NodeId| fabric.name(n).to_owned();
    format!("{} -> {}", name(l.from), name(l.to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_pauses_is_found_and_a_chain_is_not() {
        let ring = [1, 2, 0, 0];
        let all: Vec<LinkId> = (0..4).map(LinkId).collect();
        let found = cycle(4, &all, |l| vec![ring[l]]);
        assert_eq!(found.len(), 3);
        assert!(cycle(4, &all, |l| if l < 3 { vec![l + 1] } else { vec![] }).is_empty());
    }
}
