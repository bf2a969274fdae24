//! Routing of tokens to experts.

use super::training::Moe;
use crate::rounded::{exp, ln};
use collective::{After, Builder, Schedule, Way};
use model::draw::{Key, below};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Routing of tokens to experts, and what a token takes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Routing {
    /// Skew z of experts: the j-th most popular one gets tokens in proportion to (j + 1)^-z. Default 0 (our choice: all
    /// experts get the same).
    pub skew: f64,
    /// What changes the popular experts: `"step"` (in every training step others), `"layer"` (in every layer, too) or
    /// `"never"`. Default `"layer"` (our choice).
    pub seed_by: SeedBy,
    /// Capacity factor: an expert takes at most this many times its even share of a rank's tokens; the rest is dropped. Default:
    /// no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<f64>,
    /// Whether a token goes only once to each server with experts of its own, to the GPU of the sender's number, and from
    /// there over NVLink (DeepEP). Only for experts that get the same. Default false (our choice).
    pub once_per_server: bool,
    /// Most servers to which a token goes, with `once-per-server` (node-limited routing of DeepSeek-V3: 4). Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers_per_token: Option<u32>,
    /// Bytes of a token's value on its way to experts, and back. Default 2 and 2 (BF16); DeepSeek-V3 dispatches FP8: `[1, 2]`.
    pub value_bytes: [u64; 2],
    /// Bytes of a token beside its values, on its way to experts, and back: scales and headers. Default 0 and 0 (our choice); DeepEP's
    /// low-latency kernels dispatch 4 B for each 128 values, and 16 B: `[240, 0]` for 7,168 values.
    pub token_bytes: [u64; 2],
    /// Tokens that travel as one message. Unless these are all of a pair of ranks, each expert has a queue pair of its own, as in DeepEP's
    /// low-latency kernels, whose messages are single tokens.
    /// Default `"pair"` (our choice; a message per token lengthens a dispatch among 64 ranks by 5 %).
    pub message: TokenMessage,
}

/// Tokens that travel as one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TokenMessage {
    /// All tokens of a rank for another rank.
    #[default]
    Pair,
    /// All tokens of a rank for one expert.
    Expert,
    /// One token for one expert.
    Token,
}

/// What changes the popular experts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SeedBy {
    /// The training step.
    Step,
    /// The training step and the layer.
    #[default]
    Layer,
    /// Nothing.
    Never,
}

impl Default for Routing {
    fn default() -> Self {
        Routing {
            skew: 0.0,
            seed_by: SeedBy::Layer,
            capacity: None,
            once_per_server: false,
            servers_per_token: None,
            value_bytes: [2, 2],
            token_bytes: [0, 0],
            message: TokenMessage::Pair,
        }
    }
}

/// Tokens that a rank sends to each expert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::workload) struct Load {
    pub(in crate::workload) tokens: Vec<u64>,
    /// Tokens beyond the capacity of experts.
    pub(in crate::workload) dropped: u64,
}

impl Routing {
    /// The load of the experts by `tokens` tokens of a rank; `key` draws the order of their popularity.
    pub(in crate::workload) fn load(&self, moe: Moe, tokens: u64, key: Key) -> Load {
        let experts = moe.experts as usize;
        let mut order: Vec<usize> = (0..experts).collect();
        if self.skew > 0.0 {
            for i in (1..experts).rev() {
                order.swap(i, below(key.draw(i as u64), i + 1));
            }
        }
        let weight = |place: usize| exp(-self.skew * ln(place as f64 + 1.0));
        let sum: f64 = (0..experts).map(weight).sum();
        let all = tokens * moe.top_k;
        let exact: Vec<f64> = (0..experts).map(|place| all as f64 * weight(place) / sum).collect();
        let mut counts: Vec<u64> = exact.iter().map(|share| share.floor() as u64).collect();
        // The largest remainders get the tokens that are left; of equal ones, the lower places do.
        let mut places: Vec<usize> = (0..experts).collect();
        places.sort_by(|&a, &b| {
            (exact[b] - exact[b].floor()).total_cmp(&(exact[a] - exact[a].floor())).then(a.cmp(&b))
        });
        let left = all - counts.iter().sum::<u64>().min(all);
        for &place in places.iter().take(left as usize) {
            counts[place] += 1;
        }
        let mut by_expert = vec![0; experts];
        for (place, &expert) in order.iter().enumerate() {
            by_expert[expert] = counts[place];
        }
        let most = self.capacity.map_or(u64::MAX, |c| (c * all as f64 / experts as f64).ceil() as u64);
        let kept: Vec<u64> = by_expert.iter().map(|&count| count.min(most)).collect();
        let dropped = all - kept.iter().sum::<u64>();
        Load { tokens: kept, dropped }
    }

    /// Expected number of servers with an expert of a token, of `servers` servers with the same numbers of experts.
    pub(in crate::workload) fn servers_of_token(&self, moe: Moe, servers: u64) -> f64 {
        let limit = self.servers_per_token.map_or(servers, u64::from).clamp(1, servers.max(1));
        let experts = moe.experts / servers.max(1) * limit;
        let elsewhere = experts - experts / limit;
        // The probability that none of the token's experts is in one server.
        let none: f64 = (0..moe.top_k)
            .map(|i| elsewhere.saturating_sub(i) as f64 / experts.saturating_sub(i).max(1) as f64)
            .product();
        limit as f64 * (1.0 - none)
    }
}

/// The schedule of an exchange in which each member sends so many `tokens` of so many `bytes` to every expert of all others;
/// backwards, they come back. `tokens` is by member and by expert of the member. The peers come in ascending order from the sender on.
pub(in crate::workload) fn exchange(
    tokens: &[Vec<u64>],
    bytes: u64,
    message: TokenMessage,
    back: bool,
) -> Schedule {
    let n = tokens.len() as u32;
    let mut builder = Builder::new(n);
    for distance in 1..n {
        for from in 0..n {
            let to = (from + distance) % n;
            let experts = &tokens[if back { from } else { to } as usize];
            let mut send = |channel: u32, tokens: u64| {
                if tokens > 0 {
                    let step = builder.step((from, to), 0..tokens * bytes, Way::Copy, channel, Vec::new());
                    builder.leave(to, After::Arrived(step));
                }
            };
            match message {
                TokenMessage::Pair => send(0, experts.iter().sum()),
                TokenMessage::Expert => (0..).zip(experts).for_each(|(expert, &tokens)| send(expert, tokens)),
                TokenMessage::Token => {
                    let each =
                        (0..).zip(experts).flat_map(|(expert, &tokens)| (0..tokens).map(move |_| expert));
                    each.for_each(|expert| send(expert, 1));
                }
            }
        }
    }
    builder.done()
}

/// The schedule of an exchange over servers of `each` members: every member sends `across` bytes to the member of its number in
/// each other server, which forwards `inside` bytes to each other member of its server. Backwards, the order is reversed.
pub(in crate::workload) fn over_servers(
    servers: u32,
    each: u32,
    across: u64,
    inside: u64,
    back: bool,
) -> Schedule {
    let mut builder = Builder::new(servers * each);
    let mut arrived: Vec<Vec<After>> = vec![Vec::new(); (servers * each) as usize];
    for phase in 0..2 {
        let between = (phase == 0) != back;
        let before = std::mem::replace(&mut arrived, vec![Vec::new(); (servers * each) as usize]);
        for member in 0..servers * each {
            let (server, gpu) = (member / each, member % each);
            let peers: Vec<u32> = match between {
                true => (1..servers).map(|d| (server + d) % servers * each + gpu).collect(),
                false => (1..each).map(|d| server * each + (gpu + d) % each).collect(),
            };
            for to in peers {
                let amount = if between { across } else { inside };
                let step =
                    builder.step((member, to), 0..amount, Way::Copy, 0, before[member as usize].clone());
                arrived[to as usize].push(After::Arrived(step));
                builder.leave(to, After::Arrived(step));
            }
        }
    }
    builder.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::draw::Purpose;

    fn key() -> Key {
        Key::new(1, Purpose::Workload, 7)
    }

    const DEEPSEEK: Moe = Moe { experts: 256, top_k: 8, shared: 1, dense_layers: 3, dense_ffn: None };

    #[test]
    fn every_token_goes_to_top_k_experts_whatever_the_skew() {
        for skew in [0.0, 0.5, 1.0, 2.0] {
            for tokens in [1, 7, 4096] {
                let load = Routing { skew, ..Routing::default() }.load(DEEPSEEK, tokens, key());
                assert_eq!(load.tokens.iter().sum::<u64>(), tokens * 8);
                assert_eq!(load.dropped, 0);
            }
        }
        let even = Routing::default().load(DEEPSEEK, 4096, key());
        assert!(even.tokens.iter().all(|&tokens| tokens == 128));
    }

    #[test]
    fn a_capacity_drops_what_popular_experts_cannot_take() {
        let routing = Routing { skew: 1.0, capacity: Some(1.25), ..Routing::default() };
        let load = routing.load(DEEPSEEK, 4096, key());
        assert_eq!(load.tokens.iter().max(), Some(&160), "1.25 times 128");
        assert_eq!(load.tokens.iter().sum::<u64>() + load.dropped, 4096 * 8);
        assert!(load.dropped > 0);
    }

    #[test]
    fn a_token_reaches_the_expected_number_of_servers() {
        let all = Routing::default().servers_of_token(DEEPSEEK, 8);
        let four = Routing { servers_per_token: Some(4), ..Routing::default() }.servers_of_token(DEEPSEEK, 8);
        assert!((all - 5.294_652).abs() < 1e-6 && (four - 3.629_011).abs() < 1e-6, "{all} {four}");
        // 4096 tokens of 7168 values in FP8: seven of eight servers are others.
        assert_eq!((four * 7.0 / 8.0 * 4096.0 * 7168.0).round(), 93_229_697.0);
    }

    #[test]
    fn combine_is_the_transpose_of_dispatch() {
        let tokens = [vec![4, 6], vec![20, 0], vec![15, 15]];
        let sent = |schedule: &Schedule, from: u32, to: u32| -> u64 {
            schedule.steps.iter().filter(|s| (s.from, s.to) == (from, to)).map(|s| s.bytes()).sum()
        };
        for message in [TokenMessage::Pair, TokenMessage::Expert, TokenMessage::Token] {
            let [there, back] = [false, true].map(|back| exchange(&tokens, 3, message, back));
            for from in 0..3 {
                for to in (0..3).filter(|&to| to != from) {
                    let bytes = 3 * tokens[to as usize].iter().sum::<u64>();
                    assert_eq!((sent(&there, from, to), sent(&back, to, from)), (bytes, bytes));
                }
            }
        }
    }

    #[test]
    fn a_low_latency_dispatch_sends_every_token_to_every_expert_by_itself() {
        // 128 tokens to 8 of 256 experts, four on each of 64 ranks: four tokens for each expert, and 7,168 B, scales and header.
        let tokens = vec![vec![4; 4]; 64];
        let steps = |message| exchange(&tokens, 7_408, message, false).steps;
        let few = steps(TokenMessage::Pair);
        assert_eq!((few.len(), few[0].bytes()), (64 * 63, 16 * 7_408));
        let queues = steps(TokenMessage::Expert);
        assert_eq!((queues.len(), queues[3].bytes(), queues[3].channel), (64 * 63 * 4, 4 * 7_408, 3));
        let all = steps(TokenMessage::Token);
        assert!(all.len() == 64 * 63 * 16 && all.iter().all(|step| step.bytes() == 7_408));
    }
}
