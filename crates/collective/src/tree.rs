//! Double binary trees of servers (NCCL, `trees.cc`), with a chain of GPUs inside each server.
//!
//! The trees come in pairs, and each tree reduces and broadcasts its share of the buffer. An inner server of one tree is a leaf of
//! the other, and both use the same NICs, so that every NIC sends at most twice its share.

use super::{After, Builder, Call, Protocol, Schedule, Way};
use std::ops::Range;

/// The place of a server in a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The server above; `None` for the root.
    pub(super) parent: Option<u32>,
    /// The servers below.
    pub(super) children: Vec<u32>,
}

/// The places of `n` servers in the first or second tree.
pub(super) fn places(n: u32, second: bool) -> Vec<Place> {
    let map = |server: u32| match (second, n.is_multiple_of(2)) {
        (false, _) => server,
        (true, true) => n - 1 - server,
        (true, false) => (server + n - 1) % n,
    };
    let back = |server: u32| match (second, n.is_multiple_of(2)) {
        (false, _) => server,
        (true, true) => n - 1 - server,
        (true, false) => (server + 1) % n,
    };
    (0..n)
        .map(|server| {
            let Place { parent, children } = first_tree(n, map(server));
            Place { parent: parent.map(back), children: children.into_iter().map(back).collect() }
        })
        .collect()
}

/// The place of server `r` in the first tree of `n` servers.
fn first_tree(n: u32, r: u32) -> Place {
    let bit = if r == 0 { n.next_power_of_two() } else { r & r.wrapping_neg() };
    let parent = (r > 0).then(|| {
        let up = (r ^ bit) | (bit << 1);
        if up >= n { r ^ bit } else { up }
    });
    let mut children = Vec::new();
    if bit > 1 {
        if r > 0 {
            children.push(r - bit / 2);
            let mut offset = bit / 2;
            while offset > 0 && r + offset >= n {
                offset /= 2;
            }
            if offset > 0 {
                children.push(r + offset);
            }
        } else if bit / 2 < n {
            children.push(bit / 2);
        }
    }
    Place { parent, children }
}

pub(super) fn schedule(call: &Call) -> Result<Schedule, String> {
    let mut builder = Builder::new(call.ranks());
    let trees = trees(call).into_iter().zip(0..);
    let count = 2 * pairs(call);
    let first: Vec<u32> = call
        .servers
        .iter()
        .scan(0, |sum, &members| {
            *sum += members;
            Some(*sum - members)
        })
        .collect();
    for ((channel, second), tree) in trees {
        let range = call.part(call.bytes, count.into(), tree);
        let places = places(call.servers.len() as u32, second);
        // The GPU of each server on the tree, then the others of its chain.
        let chain = |server: u32| -> Vec<u32> {
            let (first, members) = (first[server as usize], call.servers[server as usize]);
            (0..members).map(|i| first + (channel + i) % members.max(1)).collect()
        };
        for data in call.pieces(range) {
            one_piece(&mut builder, &places, &chain, channel, &data);
        }
    }
    Ok(builder.done())
}

/// The longest message: with LL128, NCCL shortens it for a buffer that would fill the pipeline too little.
pub(super) fn chunk(call: &Call) -> u64 {
    let mut chunk = call.protocol.step();
    if call.protocol == Protocol::Ll128 {
        let servers = call.servers.len().max(1) as u32;
        let each = f64::from(call.ranks()) / f64::from(servers);
        let steps = f64::from(1 + servers.ilog2()) + 0.1 * each;
        for (depth, least) in [(64.0, 131_072), (16.0, 32_768)] {
            let few = |chunk: u64| {
                ((call.bytes / (u64::from(2 * pairs(call)) * chunk)) as f64) < steps * depth / each
            };
            while few(chunk) && chunk > least {
                chunk /= 2;
            }
        }
    }
    chunk
}

/// Number of pairs of trees: one per channel. If there are more channels than GPUs in a server, NCCL has doubled its rings, and
/// a pair takes two of them.
pub(super) fn pairs(call: &Call) -> u32 {
    if call.channels <= call.most() { call.channels } else { call.channels.div_ceil(2) }
}

/// The channel of every tree, and whether it is the second of its pair. Both leave a server by the same GPU.
fn trees(call: &Call) -> Vec<(u32, bool)> {
    let pairs = pairs(call);
    let apart = pairs.next_multiple_of(call.most());
    (0..pairs).map(|c| (c, false)).chain((0..pairs).map(|c| (c + apart, true))).collect()
}

/// One piece of the buffer goes up the tree and down again.
fn one_piece(
    builder: &mut Builder,
    places: &[Place],
    chain: &impl Fn(u32) -> Vec<u32>,
    channel: u32,
    data: &Range<u64>,
) {
    let order = from_leaves(places);
    // Arrivals at each server's GPU on the tree.
    let mut arrived: Vec<Vec<After>> = vec![Vec::new(); places.len()];
    for &server in &order {
        let members = chain(server);
        let mut before = Vec::new();
        for ends in members.windows(2).rev() {
            let step = builder.step((ends[1], ends[0]), data.clone(), Way::Reduce, channel, before);
            before = vec![After::Arrived(step)];
        }
        arrived[server as usize].extend(before);
        if let Some(parent) = places[server as usize].parent {
            let ends = (members[0], chain(parent)[0]);
            let after = arrived[server as usize].clone();
            let step = builder.step(ends, data.clone(), Way::Reduce, channel, after);
            arrived[parent as usize].push(After::Arrived(step));
        }
    }
    // The sum on its way down: what each server waits for.
    let mut sum: Vec<Vec<After>> = vec![Vec::new(); places.len()];
    for &server in order.iter().rev() {
        let members = chain(server);
        let here = match places[server as usize].parent {
            None => arrived[server as usize].clone(),
            Some(_) => sum[server as usize].clone(),
        };
        here.iter().for_each(|&after| builder.leave(members[0], after));
        for &child in &places[server as usize].children {
            let ends = (members[0], chain(child)[0]);
            let step = builder.step(ends, data.clone(), Way::Copy, channel, here.clone());
            sum[child as usize] = vec![After::Arrived(step)];
        }
        let mut before = here;
        for ends in members.windows(2) {
            let step = builder.step((ends[0], ends[1]), data.clone(), Way::Copy, channel, before);
            before = vec![After::Arrived(step)];
            builder.leave(ends[1], After::Arrived(step));
        }
    }
}

/// The servers, each after all servers below it.
fn from_leaves(places: &[Place]) -> Vec<u32> {
    let mut order: Vec<u32> =
        (0..places.len() as u32).filter(|&s| places[s as usize].parent.is_none()).collect();
    let mut next = 0;
    while next < order.len() {
        order.extend(&places[order[next] as usize].children);
        next += 1;
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parents(n: u32, second: bool) -> Vec<Option<u32>> {
        places(n, second).into_iter().map(|place| place.parent).collect()
    }

    #[test]
    fn small_trees_are_nccls() {
        let none = None;
        let some = |list: &[i64]| list.iter().map(|&p| u32::try_from(p).ok()).collect::<Vec<_>>();
        assert_eq!(parents(1, false), [none]);
        for (n, first, second) in [
            (2, vec![-1, 0], vec![1, -1]),
            (3, vec![-1, 2, 0], vec![1, -1, 0]),
            (4, vec![-1, 2, 0, 2], vec![1, 3, 1, -1]),
            (6, vec![-1, 2, 4, 2, 0, 4], vec![1, 5, 3, 1, 3, -1]),
            (8, vec![-1, 2, 4, 2, 0, 6, 4, 6], vec![1, 3, 1, 7, 5, 3, 5, -1]),
        ] {
            assert_eq!((parents(n, false), parents(n, true)), (some(&first), some(&second)), "{n} servers");
        }
    }

    #[test]
    fn for_2_to_256_servers_trees_are_shallow_and_share_the_work() {
        for n in 2..=256u32 {
            let both = [places(n, false), places(n, true)];
            for tree in &both {
                let depth = |mut server: u32| {
                    let mut depth = 0;
                    while let Some(parent) = tree[server as usize].parent {
                        (server, depth) = (parent, depth + 1);
                        assert!(depth <= n);
                    }
                    depth
                };
                let deepest = (0..n).map(depth).max().unwrap();
                assert_eq!(deepest, n.next_power_of_two().trailing_zeros(), "{n} servers");
                for (server, place) in (0..n).zip(tree) {
                    for &child in &place.children {
                        assert_eq!(tree[child as usize].parent, Some(server), "{n} servers");
                    }
                }
                assert_eq!(tree.iter().map(|place| place.children.len()).sum::<usize>(), n as usize - 1);
            }
            let inner = |server: u32| both.iter().all(|tree| !tree[server as usize].children.is_empty());
            let in_both = (0..n).filter(|&server| inner(server)).count();
            assert_eq!(in_both, usize::from(n % 2 == 1 && n > 1), "{n} servers");
        }
    }
}
