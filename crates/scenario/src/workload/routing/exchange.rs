//! Schedules of dispatch and combine.

use super::skew::dealt;
use super::{Routing, TokenMessage};
use crate::footprint::{MemoryBudget, STEP};
use crate::workload::laid::part;
use crate::workload::planned::Planned;
use crate::workload::training::Moe;
use collective::{After, Algorithm, Builder, Call, Schedule, Way};
use finding::{Finding, code};
use model::draw::{Key, below};
use std::ops::Range;

/// Key of the order in which a rank sends tokens. Our choice: any number, since no order is known.
const ORDER: u64 = 0x746f_6b65_6e73;

/// Tokens that ranks send to experts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::workload) struct Sent {
    /// Tokens to each expert: a row for each sender, or one row for all of them.
    rows: Vec<Vec<u64>>,
    /// Experts of a rank.
    each: usize,
}

impl Sent {
    /// All of so many ranks send these tokens to each expert.
    pub(in crate::workload) fn alike(tokens: Vec<u64>, ranks: u32) -> Self {
        Sent { each: tokens.len() / ranks as usize, rows: vec![tokens] }
    }

    /// The tokens of each rank to each expert.
    pub(in crate::workload) fn by_rank(rows: Vec<Vec<u64>>) -> Self {
        Sent { each: rows.first().map_or(0, Vec::len) / rows.len().max(1), rows }
    }

    /// What a micro-batch has of it, of so many. Which one gets what cannot be divided goes around from expert to expert.
    pub(in crate::workload) fn part(&self, (parts, i): (usize, usize)) -> Self {
        let of = |row: &Vec<u64>| {
            (0..).zip(row).map(|(e, &tokens)| part(tokens, parts, (i + e) % parts.max(1))).collect()
        };
        Sent { each: self.each, rows: self.rows.iter().map(of).collect() }
    }

    /// Tokens from one member to each expert of another.
    pub(super) fn between(&self, from: u32, to: u32) -> &[u64] {
        let first = to as usize * self.each;
        &self.rows[from as usize % self.rows.len()][first..first + self.each]
    }

    /// Most tokens of a sender, counted for each expert.
    fn most(&self) -> u64 {
        self.rows.iter().map(|row| row.iter().sum()).max().unwrap_or(0)
    }

    /// Tokens that a sender has in the mean, counted for each expert.
    pub(in crate::workload) fn mean(&self) -> u64 {
        self.rows.iter().flatten().sum::<u64>() / self.rows.len().max(1) as u64
    }
}

/// Deals of experts to tokens, of which the mean counts. Our choice: the mean of even experts is within 2 % of its expectation.
const DEALS: u64 = 16;

impl Routing {
    /// The exchange in which each rank sends `sent` of its `mine` tokens of so many bytes, or gets them back. Paths of errors start at `routing`.
    pub(in crate::workload) fn planned(
        &self,
        memory: &mut MemoryBudget,
        path: &str,
        call: Call,
        sent: &Sent,
        (token, mine, back): (u64, u64, bool),
        moe: Moe,
    ) -> Result<Planned, Finding> {
        let n = u64::from(call.ranks());
        let (each, key) = match (self.once_per_server(), self.message()) {
            (true, _) => (n * (sent.most() * token).div_ceil(call.chunk).max(n), "once-per-server"),
            (false, TokenMessage::Token) => (sent.most(), "message"),
            (false, _) => (n * sent.each as u64, "message"),
        };
        memory.steps_fit(n * each).map_err(|text| code::RANGE.at(key, text))?;
        memory.outline(n * each * STEP, path)?;
        let schedule = match (self.once_per_server(), call.servers.as_slice()) {
            (true, [first, rest @ ..]) if !rest.is_empty() && rest.iter().all(|n| n == first) => {
                let across = self.across(sent, (mine, call.servers.len()), moe);
                let across: Vec<Vec<u64>> = across
                    .into_iter()
                    .map(|row| row.into_iter().map(|copies| (copies * token as f64).round() as u64).collect())
                    .collect();
                over_servers((call.servers.len() as u32, *first), &across, call.chunk, sent, token, back)
            }
            (true, _) => {
                let text = "needs several servers with the same number of ranks in each group";
                return Err(code::NEEDS.at("once-per-server", text));
            }
            (false, _) => exchange(&call, sent, token, self.message(), (back, Key::from_salt(ORDER))),
        };
        Ok(Planned::with(Algorithm::Direct, call, schedule))
    }
}

impl Routing {
    /// Tokens that go to each server at least once: a row for each sender, or one row for all of them.
    fn across(&self, sent: &Sent, (mine, servers): (u64, usize), moe: Moe) -> Vec<Vec<f64>> {
        let limited = self.servers_of_token(moe, servers as u64);
        if self.is_even() {
            return vec![vec![limited * mine as f64 / servers as f64; servers]];
        }
        let all = Routing { servers_per_token: None, ..self.clone() }.servers_of_token(moe, servers as u64);
        let deal = |(sender, row): (u64, &Vec<u64>)| {
            let mut order: Vec<usize> = (0..row.len()).collect();
            let mut copies = vec![0; servers];
            for deal in 0..DEALS {
                let key = Key::from_salt(Key::from_salt(ORDER).draw2(!sender, deal));
                for i in (1..order.len()).rev() {
                    order.swap(i, below(key.draw(i as u64), i + 1));
                }
                let more = dealt(mine, row, &order, servers);
                copies.iter_mut().zip(more).for_each(|(copies, more)| *copies += more);
            }
            copies.into_iter().map(|copies| copies as f64 / DEALS as f64 * limited / all).collect()
        };
        (0..).zip(&sent.rows).map(deal).collect()
    }
}

/// The schedule of an exchange in which members send tokens of so many `bytes` to the experts of all others; backwards, they come
/// back. If messages are single tokens, those of a sender come in an order that `key` draws, as a token's experts have no order.
fn exchange(
    call: &Call,
    sent: &Sent,
    bytes: u64,
    message: TokenMessage,
    (back, key): (bool, Key),
) -> Schedule {
    let n = call.ranks();
    let mut builder = Builder::new(n);
    let mut send = |from: u32, to: u32, channel: u32, tokens: u64| {
        if tokens > 0 {
            let step = builder.step((from, to), 0..tokens * bytes, Way::Copy, channel, Vec::new());
            builder.leave(to, After::Arrived(step));
        }
    };
    let experts = |from, to| if back { sent.between(to, from) } else { sent.between(from, to) };
    let peers: Vec<Vec<u32>> = (0..n).map(|from| peers(call, from)).collect();
    match message {
        TokenMessage::Pair | TokenMessage::Expert => {
            for i in 0..n as usize - 1 {
                for (from, peers) in (0..).zip(&peers) {
                    let experts = experts(from, peers[i]);
                    match message {
                        TokenMessage::Pair => send(from, peers[i], 0, experts.iter().sum()),
                        _ => (0..)
                            .zip(experts)
                            .for_each(|(expert, &tokens)| send(from, peers[i], expert, tokens)),
                    }
                }
            }
        }
        TokenMessage::Token => {
            let drawn = |(from, peers): (u32, &Vec<u32>)| {
                let to =
                    peers.iter().flat_map(|&to| (0..).zip(experts(from, to)).map(move |(e, &n)| (to, e, n)));
                let mut all: Vec<(u32, u32)> =
                    to.flat_map(|(to, expert, tokens)| (0..tokens).map(move |_| (to, expert))).collect();
                for i in (1..all.len()).rev() {
                    all.swap(i, below(key.draw2(from.into(), i as u64), i + 1));
                }
                all
            };
            for (from, tokens) in (0..).zip((0..).zip(&peers).map(drawn)) {
                tokens.into_iter().for_each(|(to, expert)| send(from, to, expert, 1));
            }
        }
    }
    builder.done()
}

/// The peers of a member, in an order in which no two members of servers of one size have the same peer at the same time: rail by rail,
/// the own server first.
fn peers(call: &Call, from: u32) -> Vec<u32> {
    let n = call.ranks();
    match call.servers.as_slice() {
        [each, rest @ ..] if rest.iter().all(|n| n == each) => {
            let (servers, first) = (n / each, from / each * each);
            let place = |d: u32, gpu: u32| (first + d * each) % n + (from + gpu) % each;
            let own = (1..*each).map(|gpu| place(0, gpu));
            own.chain((0..*each).flat_map(|gpu| (1..servers).map(move |d| place(d, gpu)))).collect()
        }
        _ => (1..n).map(|distance| (from + distance) % n).collect(),
    }
}

/// The schedule of an exchange over `servers` of `each` members: every member sends the bytes that `across` has for a server to the member
/// of its number there, in messages of at most `chunk`. As each arrives, that member passes on to every other one of its server a part
/// of the tokens for that one's experts. Each server's own tokens cross NVLink in as many parts. Backwards, the order is reversed.
fn over_servers(
    (servers, each): (u32, u32),
    across: &[Vec<u64>],
    chunk: u64,
    sent: &Sent,
    token: u64,
    back: bool,
) -> Schedule {
    let mut builder = Builder::new(servers * each);
    let mut step = |(from, to): (u32, u32), amount: Range<u64>, after: Vec<After>| {
        (!amount.is_empty()).then(|| {
            let (from, to) = if back { (to, from) } else { (from, to) };
            let after = After::Arrived(builder.step((from, to), amount, Way::Copy, 0, after));
            builder.leave(to, after);
            after
        })
    };
    let most = across.iter().flatten().copied().max().unwrap_or(0);
    let chunks = most.div_ceil(chunk.min(most.max(1))).max(1);
    let piece = |all: u64, i: u64| all * i / chunks..all * (i + 1) / chunks;
    // The others of a member's server, and the bytes for their experts that come from one member.
    let others = |relay: u32, from: u32| {
        let first = relay / each * each;
        (1..each).map(move |d| {
            let to = first + (relay % each + d) % each;
            (to, token * sent.between(from, to).iter().sum::<u64>())
        })
    };
    for i in 0..chunks {
        for distance in 0..servers {
            for member in 0..servers * each {
                let relay = (member + distance * each) % (servers * each);
                let across = across[member as usize % across.len()][(relay / each) as usize];
                if distance == 0 {
                    for (to, bytes) in others(member, member) {
                        step((member, to), piece(bytes, i), Vec::new());
                    }
                } else if back {
                    let passed = others(relay, member)
                        .filter_map(|(to, bytes)| step((relay, to), piece(bytes, i), Vec::new()));
                    let passed = passed.collect();
                    step((member, relay), piece(across, i), passed);
                } else {
                    let arrived = step((member, relay), piece(across, i), Vec::new());
                    for (to, bytes) in others(relay, member) {
                        step((relay, to), piece(bytes, i), arrived.into_iter().collect());
                    }
                }
            }
        }
    }
    builder.done()
}

#[cfg(test)]
mod tests {
    use super::super::{Gini, Skew};
    use super::*;
    use collective::Kind;
    use std::collections::BTreeSet;

    /// An all-to-all of these servers.
    fn call(servers: Vec<u32>) -> Call {
        Call::plain(Kind::AllToAll, servers, 0)
    }

    fn bytes(schedule: &Schedule, from: u32, to: u32) -> u64 {
        schedule.steps.iter().filter(|s| (s.from, s.to) == (from, to)).map(|s| s.bytes()).sum()
    }

    #[test]
    fn combine_is_the_transpose_of_dispatch() {
        let sent = Sent::alike(vec![4, 6, 20, 0, 15, 15], 3);
        for message in [TokenMessage::Pair, TokenMessage::Expert, TokenMessage::Token] {
            let [there, back] = [false, true]
                .map(|back| exchange(&call(vec![1; 3]), &sent, 3, message, (back, Key::from_salt(1))));
            for from in 0..3 {
                for to in (0..3).filter(|&to| to != from) {
                    let all = 3 * [10, 20, 30][to as usize];
                    assert_eq!((bytes(&there, from, to), bytes(&back, to, from)), (all, all));
                }
            }
        }
    }

    #[test]
    fn a_low_latency_dispatch_sends_every_token_to_every_expert_by_itself() {
        // 128 tokens to 8 of 256 experts, four on each of 64 ranks: four tokens for each expert, and 7,168 B, scales and header.
        let sent = Sent::alike(vec![4; 256], 64);
        let (call, key) = (call(vec![8; 8]), Key::from_salt(1));
        let steps = |message| exchange(&call, &sent, 7_408, message, (false, key)).steps;
        let few = steps(TokenMessage::Pair);
        assert_eq!((few.len(), few[0].bytes()), (64 * 63, 16 * 7_408));
        let queues = steps(TokenMessage::Expert);
        assert_eq!((queues.len(), queues[3].bytes(), queues[3].channel), (64 * 63 * 4, 4 * 7_408, 3));
        for turn in few.chunks(64) {
            let receivers: BTreeSet<u32> = turn.iter().map(|step| step.to).collect();
            assert_eq!(receivers.len(), 64, "every rank is sent to once at a time");
        }
        let all = steps(TokenMessage::Token);
        assert!(all.len() == 64 * 63 * 16 && all.iter().all(|step| step.bytes() == 7_408));
    }

    #[test]
    fn a_token_crosses_once_to_each_server_and_goes_on_over_nvlink_chunk_by_chunk() {
        // Two servers of two; ten tokens of 3 B for each expert; 40 B across.
        let sent = Sent::alike(vec![10; 4], 4);
        for (chunk, chunks) in [(u64::MAX, 1), (16, 3)] {
            let [there, back] =
                [false, true].map(|back| over_servers((2, 2), &[vec![40; 2]], chunk, &sent, 3, back));
            // Rank 0 sends to rank 2, which passes on to rank 3 what is for it; rank 2 also has tokens of its own for rank 3.
            assert_eq!((bytes(&there, 0, 2), bytes(&there, 0, 3), bytes(&there, 2, 3)), (40, 0, 60));
            assert_eq!((bytes(&back, 2, 0), bytes(&back, 3, 0), bytes(&back, 3, 2)), (40, 0, 60));
            for schedule in [&there, &back] {
                assert_eq!(schedule.steps.len() as u64, 3 * 4 * chunks);
                assert_eq!(schedule.steps.iter().filter(|s| s.after.len() == 1).count() as u64, 4 * chunks);
            }
        }
    }

    const DEEPSEEK: Moe = Moe { experts: 256, top_k: 8, shared: 1, dense_layers: 3, dense_ffn: None };

    #[test]
    fn dealing_the_experts_of_tokens_finds_the_expected_number_of_servers() {
        let even = Sent::alike(vec![128; 256], 64);
        // A file with even tokens has no formula.
        let file = Routing { file: Some("r.csv".to_owned()), ..Routing::default() };
        for (limit, expected) in [(None, 5.294_652), (Some(4), 3.629_011)] {
            let routing = Routing { servers_per_token: limit, ..file.clone() };
            let dealt: f64 = routing.across(&even, (4096, 8), DEEPSEEK)[0].iter().sum();
            assert!((dealt / 4096.0 / expected - 1.0).abs() < 0.02, "{dealt}");
        }
    }

    #[test]
    fn popular_experts_draw_more_tokens_to_their_server() {
        let routing = Routing { skew: Skew::Gini(Gini { gini: 0.38 }), ..Routing::default() };
        let sent = Sent::alike(routing.load(DEEPSEEK, 4096, Key::from_salt(1)).tokens, 64);
        let across = routing.across(&sent, (4096, 8), DEEPSEEK);
        let servers: Vec<u64> =
            (0..8).map(|s| (0..8).map(|g| sent.between(0, 8 * s + g).iter().sum::<u64>()).sum()).collect();
        let (most, least) = (servers.iter().max(), servers.iter().min());
        let of = |count: Option<&u64>| across[0][servers.iter().position(|n| Some(n) == count).unwrap()];
        assert!(of(most) > of(least), "{across:?}, {servers:?}");
        assert!(across[0].iter().all(|&copies| copies <= 4096.0));
    }
}
