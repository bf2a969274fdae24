//! Which NICs carry how many bytes of a transfer.

use crate::kv::{pairs, part};
use crate::network::Message;
use crate::spec::{Instance, Rails, Transfer};
use std::collections::BTreeMap;

/// The messages of a transfer of so many bytes, without numbers: one per pair of NICs and queue pair. `under_way` has the bytes that each
/// NIC of the sender has sent and that have not arrived; `turn` is the number of slices that it has sent before.
pub(crate) fn messages(
    transfer: &Transfer,
    (from, to): (&Instance, &Instance),
    bytes: u64,
    under_way: &BTreeMap<u32, u64>,
    turn: &mut u64,
) -> Vec<Message> {
    let mut of: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let rails = from.server_nics.iter().zip(&to.server_nics);
    match transfer.rails {
        Rails::Own => {
            let (ranks, peers) = (from.nics.len() as u64, to.nics.len() as u64);
            for (n, (i, j)) in (0..).zip(pairs(ranks, peers)) {
                let pair = (from.nics[i as usize], to.nics[j as usize]);
                *of.entry(pair).or_default() += part(bytes, n, ranks.max(peers));
            }
        }
        Rails::RoundRobin | Rails::LeastInflight => {
            let rails: Vec<(u32, u32)> = rails.map(|(&from, &to)| (from, to)).collect();
            let slices = bytes.div_ceil(transfer.slice.max(1));
            let busy: Vec<u64> = match transfer.rails {
                Rails::LeastInflight => {
                    let bytes = |rail: &(u32, u32)| under_way.get(&rail.0).copied().unwrap_or(0);
                    rails.iter().map(|rail| bytes(rail).div_ceil(transfer.slice.max(1))).collect()
                }
                _ => vec![0; rails.len()],
            };
            let first = *turn as usize % rails.len().max(1);
            *turn += slices;
            let counts = filled(&busy, slices, first);
            // The last slice is short.
            let mut left = bytes;
            for (rail, count) in rails.into_iter().zip(counts) {
                let mine = (count * transfer.slice).min(left);
                left -= mine;
                *of.entry(rail).or_default() += mine;
            }
        }
    }
    let by_qp = |((from, to), bytes): ((u32, u32), u64)| {
        let qps = transfer.qps.max(1);
        (0..qps).map(move |tag| Message { id: 0, from, to, bytes: part(bytes, tag, qps), tag: tag as u32 })
    };
    of.into_iter().flat_map(by_qp).filter(|message| message.bytes > 0).collect()
}

/// Slices for each rail, which has so many already, so that the largest number grows least. Of equal rails, those from `first` on get one
/// more.
fn filled(busy: &[u64], slices: u64, first: usize) -> Vec<u64> {
    let rails = busy.len();
    let mut order: Vec<usize> = (0..rails).map(|i| (first + i) % rails).collect();
    order.sort_by_key(|rail| busy[*rail]);
    let mut counts = vec![0; rails];
    let mut sum = 0;
    for (i, &rail) in order.iter().enumerate() {
        sum += busy[rail];
        let share = i as u64 + 1;
        let level = (slices + sum) / share;
        if order.get(i + 1).is_some_and(|next| busy[*next] < level) {
            continue;
        }
        let mut left = slices;
        for &rail in &order[..=i] {
            counts[rail] = level.saturating_sub(busy[rail]).min(left);
            left -= counts[rail];
        }
        for &rail in order[..=i].iter().cycle().take(left as usize) {
            counts[rail] += 1;
        }
        break;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn instance(nics: &[u32], server: &[u32]) -> Instance {
        Instance { nics: nics.to_vec(), server_nics: server.to_vec() }
    }

    fn transfer(rails: Rails) -> Transfer {
        Transfer { rails, qps: 1, slice: 10, ..crate::program::tests::TRANSFER }
    }

    fn sent(rails: Rails, bytes: u64, under_way: &[(u32, u64)], turn: u64) -> Vec<(u32, u32, u64)> {
        let (p, d) = (instance(&[0, 1], &[0, 1, 2, 3]), instance(&[8, 9], &[8, 9, 10, 11]));
        let under_way = under_way.iter().copied().collect();
        let all = messages(&transfer(rails), (&p, &d), bytes, &under_way, &mut turn.clone());
        all.iter().map(|m| (m.from, m.to, m.bytes)).collect()
    }

    #[test]
    fn ranks_send_over_their_own_nics_and_those_that_share_one_send_one_message() {
        assert_eq!(sent(Rails::Own, 101, &[], 0), [(0, 8, 51), (1, 9, 50)]);
        let (p, d) = (instance(&[0, 0, 2, 2], &[0, 2]), instance(&[8, 8], &[8]));
        let all = messages(&transfer(Rails::Own), (&p, &d), 100, &BTreeMap::new(), &mut 0);
        assert_eq!(all.iter().map(|m| (m.from, m.to, m.bytes)).collect::<Vec<_>>(), [(0, 8, 50), (2, 8, 50)]);
    }

    #[test]
    fn slices_go_round_all_nics_of_the_server_or_to_those_with_the_least_under_way() {
        let each = [(0, 8, 30), (1, 9, 20), (2, 10, 20), (3, 11, 20)];
        assert_eq!(sent(Rails::RoundRobin, 90, &[(0, 1000)], 0), each);
        let later = [(0, 8, 20), (1, 9, 30), (2, 10, 20), (3, 11, 20)];
        assert_eq!(sent(Rails::RoundRobin, 90, &[], 5), later);
        let least = sent(Rails::LeastInflight, 90, &[(0, 1000), (2, 30)], 0);
        assert_eq!(least, [(1, 9, 40), (2, 10, 10), (3, 11, 40)]);
    }

    #[test]
    fn queue_pairs_of_a_pair_share_its_bytes() {
        let two = Transfer { qps: 2, ..transfer(Rails::Own) };
        let (p, d) = (instance(&[0], &[0]), instance(&[8], &[8]));
        let all = messages(&two, (&p, &d), 7, &BTreeMap::new(), &mut 0);
        assert_eq!(all.iter().map(|m| (m.tag, m.bytes)).collect::<Vec<_>>(), [(0, 4), (1, 3)]);
    }

    proptest! {
        #[test]
        fn every_byte_is_sent_once_whatever_is_under_way(
            bytes in 1..5000_u64, busy in prop::collection::vec(0..400_u64, 4), turn in 0..9_u64, spread in any::<bool>()
        ) {
            let rails = if spread { Rails::RoundRobin } else { Rails::LeastInflight };
            let under_way: Vec<(u32, u64)> = (0..4).zip(busy).collect();
            let all = sent(rails, bytes, &under_way, turn);
            prop_assert_eq!(all.iter().map(|(.., bytes)| bytes).sum::<u64>(), bytes);
        }
    }
}
