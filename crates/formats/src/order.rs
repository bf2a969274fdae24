//! Topological order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Orders nodes so that every edge (first, then) leads forward; of several possible nodes, the lowest number comes first.
///
/// # Errors
/// The edges of a cycle, as indices, in the order of the cycle.
pub fn order(nodes: usize, edges: &[(u32, u32)]) -> Result<Vec<u32>, Vec<usize>> {
    let mut waits = vec![0u32; nodes];
    let mut starts = vec![0u32; nodes + 1];
    for &(first, then) in edges {
        waits[then as usize] += 1;
        starts[first as usize + 1] += 1;
    }
    for i in 0..nodes {
        starts[i + 1] += starts[i];
    }
    let mut next = starts.clone();
    let mut followers = vec![0u32; edges.len()];
    for &(first, then) in edges {
        let at = &mut next[first as usize];
        followers[*at as usize] = then;
        *at += 1;
    }
    let mut free: BinaryHeap<Reverse<u32>> =
        (0..nodes as u32).filter(|&i| waits[i as usize] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(nodes);
    while let Some(Reverse(i)) = free.pop() {
        order.push(i);
        for &then in &followers[starts[i as usize] as usize..starts[i as usize + 1] as usize] {
            let left = &mut waits[then as usize];
            *left -= 1;
            if *left == 0 {
                free.push(Reverse(then));
            }
        }
    }
    if order.len() == nodes {
        return Ok(order);
    }
    Err(cycle(&waits, edges))
}

/// A cycle among the nodes that still wait.
fn cycle(waits: &[u32], edges: &[(u32, u32)]) -> Vec<usize> {
    // Every node that waits has an edge from another one that waits: following these edges backwards ends in a cycle.
    let mut into = vec![usize::MAX; waits.len()];
    for (e, &(first, then)) in edges.iter().enumerate().rev() {
        if waits[first as usize] > 0 {
            into[then as usize] = e;
        }
    }
    let mut seen = vec![false; waits.len()];
    let mut at = waits.iter().position(|&left| left > 0).unwrap_or_default();
    while !seen[at] {
        seen[at] = true;
        at = edges[into[at]].0 as usize;
    }
    let (end, mut cycle) = (at, Vec::new());
    loop {
        cycle.push(into[at]);
        at = edges[into[at]].0 as usize;
        if at == end {
            cycle.reverse();
            return cycle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_follow_their_edges_and_else_their_numbers() {
        assert_eq!(order(4, &[(3, 0), (0, 2)]), Ok(vec![1, 3, 0, 2]));
        assert_eq!(order(0, &[]), Ok(vec![]));
    }

    #[test]
    fn a_cycle_is_named_by_its_edges_and_without_the_nodes_behind_it() {
        // 0 waits for the cycle 1 -> 2 -> 3 -> 1.
        let edges = [(3, 0), (1, 2), (2, 3), (4, 1), (3, 1)];
        let cycle = order(5, &edges).unwrap_err();
        let pairs: Vec<_> = cycle.iter().map(|&e| edges[e]).collect();
        assert_eq!(pairs, [(3, 1), (1, 2), (2, 3)]);
        assert_eq!(order(1, &[(0, 0)]), Err(vec![0]));
    }
}
