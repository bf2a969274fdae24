//! Routing of tokens to experts, and how kernels send them.

mod exchange;
mod measured;
mod skew;

pub(in crate::workload) use exchange::Sent;
pub use skew::{Gini, Skew};

use super::collective::{NicChoice, Tuning};
use super::communicator::MOST_CHANNELS;
use super::cost::{CostConfig, Profile};
use super::training::Moe;
use finding::{Finding, code};
use model::draw::{Key, below};
use model::{Bytes, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Routing of tokens to experts, and what a token takes on the wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Routing {
    /// Skew of experts: an exponent z, so that the j-th most popular one gets tokens in proportion to (j + 1)^-z, or `{ gini = 0.24 }`, the
    /// Gini coefficient of their tokens. Default 0 (our choice: all experts get the same).
    pub skew: Skew,
    /// Measured routing, in place of `skew`: a CSV file with the columns `layer`, `source_rank`, `expert` and `tokens`; a path relative to
    /// the scenario's file. The first layer that is run has the routing of the file's first layer, and so on. Only of `experts`.
    /// Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Digest of the file, which the results record. A scenario with a digest refuses a file that has changed. Default: the digest of
    /// the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What changes the popular experts: `"step"` (in every training step others), `"layer"` (in every layer, too) or
    /// `"never"`. Default `"layer"` (our choice).
    pub seed_by: SeedBy,
    /// Capacity factor: an expert takes at most this many times its even share of a rank's tokens; the rest is dropped. Default:
    /// no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<f64>,
    /// Kernels that send the tokens: `"deepep-low-latency"`, `"deepep-normal"` or `"none"`. They decide the defaults of the keys below, and
    /// of `nic`, `cost` and `message` in the tuning of dispatch and combine. Default `"none"` (our choice: the ideal fabric).
    pub kernel: Kernel,
    /// Whether a token goes only once to each server with experts of its own, to the GPU of the sender's number, and from
    /// there over NVLink (DeepEP's normal kernels). Where experts differ, those of a token are dealt at random (our choice: only sums are
    /// known). Default: the kernel's; without one, false (our choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub once_per_server: Option<bool>,
    /// Most servers to which a token goes, with `once-per-server` (node-limited routing of DeepSeek-V3: 4). Where experts
    /// differ, it saves the share that it saves for even ones (our choice). Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers_per_token: Option<u32>,
    /// Bytes of a token's value on its way to experts, and back. Default: `[1, 2]` with a kernel (FP8 and BF16: DeepSeek-V3), else `[2, 2]`
    /// (BF16).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_bytes: Option<[u64; 2]>,
    /// Bytes of a token beside its values, on its way to experts, and back: scales and headers. Default: none without a kernel (our
    /// choice), else 4 B for each 128 values on the way to experts, and with low latency 16 B more (`internode_ll.cu` of DeepEP):
    /// `[240, 0]` for 7,168 values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_bytes: Option<[u64; 2]>,
    /// Tokens that travel as one message. Unless these are all of a pair of ranks, each expert has a queue pair of its own, as in DeepEP's
    /// low-latency kernels, whose messages are single tokens.
    /// Default: the kernel's; without one, `"pair"` (our choice; a message per token lengthens a dispatch among 64 ranks by 3 %).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<TokenMessage>,
    /// The file's layers, once it is read.
    #[serde(skip)]
    read: Option<measured::Measured>,
}

/// Kernels that send tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// None: messages cost nothing but their bytes.
    #[default]
    None,
    /// DeepEP's low-latency kernels: a message per token and expert, from the NIC of the sender to that of the receiver, with the costs
    /// `"deepep-dispatch"` and `"deepep-combine"`.
    DeepepLowLatency,
    /// DeepEP's normal kernels: a token goes once to each server, in messages of 32 tokens, and on over NVLink, with the costs
    /// `"deepep-normal"`.
    DeepepNormal,
}

/// First number of the draws that route tokens.
const EXPERTS: u64 = 1 << 40;

/// Rate of the NICs on which the costs of kernels were measured (deepseek-ai/DeepEP, README: ConnectX-7).
const MEASURED: Rate = Rate::from_gbps(400);

/// Tokens of a message of DeepEP's normal kernels. Our choice: the longest of 4 to 32, which DeepEP's tuned settings have.
const CHUNK: u64 = 32;

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

/// Tokens that a rank sends to each expert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::workload) struct Load {
    pub(in crate::workload) tokens: Vec<u64>,
    /// Tokens beyond the capacity of experts.
    pub(in crate::workload) dropped: u64,
}

impl Routing {
    /// What the times of a kernel rest on, for the answer.
    pub fn fitted(&self) -> Option<&'static str> {
        match self.kernel {
            Kernel::None => None,
            Kernel::DeepepLowLatency => Some(
                "two constants of the kernel for each way are fitted to DeepEP's table of ten times (H800, NICs of 400 Gb/s)",
            ),
            Kernel::DeepepNormal => Some(
                "one constant of the kernel, 0.9 of 400 Gb/s, is fitted to DeepEP's table of bandwidths (H800, NICs of 400 Gb/s)",
            ),
        }
    }

    /// Checks the settings for experts that so many ranks share; paths start at `routing`.
    pub(in crate::workload) fn check(&self, moe: Option<Moe>, ranks: u32) -> Result<(), Finding> {
        self.skew.check(moe.map_or(1, |moe| moe.experts))?;
        if self.file.is_some() && !(self.skew.is_even() && self.capacity.is_none()) {
            let text = "set either `file`, or `skew` and `capacity`";
            return Err(code::CONFLICT.at("file", text));
        }
        if self.capacity.is_some_and(|c| !(c > 0.0 && c <= 1000.0)) {
            return Err(code::RANGE.at("capacity", "expected a factor above 0 and up to 1000"));
        }
        if self.once_per_server() && self.message() != TokenMessage::Pair {
            let text = "`once-per-server` sends one message to each server: message = \"pair\"";
            return Err(code::NEEDS.at("message", text));
        }
        let each = moe.map_or(0, |moe| moe.experts / u64::from(ranks));
        if self.message() != TokenMessage::Pair && each > MOST_CHANNELS.into() {
            let text = format!(
                "expected at most {MOST_CHANNELS} experts of a rank, each with a queue pair, found {each}"
            );
            return Err(code::RANGE.at("message", text));
        }
        if self.token_bytes.is_some_and(|all| all.iter().any(|&bytes| bytes > 1 << 20)) {
            return Err(code::RANGE.at("token-bytes", "expected at most 1 MiB"));
        }
        if self.servers_per_token.is_some() && !self.once_per_server() {
            return Err(code::NEEDS.at("servers-per-token", "needs `once-per-server = true`"));
        }
        if self.value_bytes.is_some_and(|all| all.iter().any(|&bytes| bytes == 0 || bytes > 16)) {
            return Err(code::RANGE.at("value-bytes", "expected 1 to 16 bytes"));
        }
        Ok(())
    }

    pub(in crate::workload) fn message(&self) -> TokenMessage {
        self.message.unwrap_or(match self.kernel {
            Kernel::DeepepLowLatency => TokenMessage::Token,
            Kernel::None | Kernel::DeepepNormal => TokenMessage::Pair,
        })
    }

    pub(in crate::workload) fn once_per_server(&self) -> bool {
        self.once_per_server.unwrap_or(self.kernel == Kernel::DeepepNormal)
    }

    /// Bytes of a token of so many values on its way to an expert, or back.
    pub(in crate::workload) fn token(&self, hidden: u64, back: bool) -> u64 {
        let (value, scales) = match self.kernel {
            Kernel::None => ([2, 2], 0),
            Kernel::DeepepLowLatency => ([1, 2], 4 * hidden.div_ceil(128) + 16),
            Kernel::DeepepNormal => ([1, 2], 4 * hidden.div_ceil(128)),
        };
        let way = usize::from(back);
        hidden * self.value_bytes.unwrap_or(value)[way] + self.token_bytes.unwrap_or([scales, 0])[way]
    }

    /// What is taken as it is on NICs of this rate; paths start at the workload's settings.
    pub(in crate::workload) fn doubts(&self, line: Rate) -> Vec<Finding> {
        let mut doubts = Vec::new();
        if self.kernel != Kernel::None && line != MEASURED {
            let text = format!(
                "costs of kernels were measured on NICs of {MEASURED}, and these have {line}: they are taken as they are"
            );
            let help = "set `tuning.cost` to what your kernels attain";
            doubts.push(code::READ_AS.at("routing.kernel", text).with_help(help));
        }
        if self.once_per_server() && self.file.is_some() {
            let text =
                "the file does not say which experts a token has together, so they are dealt at random";
            doubts.push(code::READ_AS.at("routing.file", text));
        }
        doubts
    }

    /// The tuning of dispatch or combine, in which tokens have so many bytes.
    pub(in crate::workload) fn tuning(&self, own: &Tuning, token: u64, back: bool) -> Tuning {
        let mut tuning = own.clone();
        let cost = match self.kernel {
            Kernel::None => return tuning,
            Kernel::DeepepLowLatency if back => Profile::DeepepCombine,
            Kernel::DeepepLowLatency => Profile::DeepepDispatch,
            Kernel::DeepepNormal => Profile::DeepepNormal,
        };
        tuning.cost = tuning.cost.or(Some(CostConfig::Named(cost)));
        tuning.nic = tuning.nic.or(Some(NicChoice::Own));
        if self.kernel == Kernel::DeepepNormal {
            tuning.message = tuning.message.or(Some(Bytes(CHUNK * token)));
        }
        tuning
    }

    /// Whether all experts get the same.
    pub(in crate::workload) fn is_even(&self) -> bool {
        self.skew.is_even() && self.capacity.is_none() && self.file.is_none()
    }

    /// The key that draws the popular experts of a layer in a step.
    pub(in crate::workload) fn key(&self, job: Key, step: u32, layer: u32) -> Key {
        let seed = match self.seed_by {
            SeedBy::Never => 0,
            SeedBy::Step => 1 + u64::from(step),
            SeedBy::Layer => (1 + u64::from(step)) << 32 | u64::from(layer),
        };
        Key::from_salt(job.draw2(EXPERTS, seed))
    }

    /// The load of the experts by `tokens` tokens of a rank; `key` draws the order of their popularity.
    pub(in crate::workload) fn load(&self, moe: Moe, tokens: u64, key: Key) -> Load {
        let (all, experts) = (tokens * moe.top_k, moe.experts as usize);
        let (order, exact) = self.shares(moe, all, key);
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
        let most = self.most(moe, all);
        let kept: Vec<u64> = by_expert.iter().map(|&count| count.min(most)).collect();
        let dropped = all - kept.iter().sum::<u64>();
        Load { tokens: kept, dropped }
    }

    /// What so many ranks send, each `tokens` tokens, and the tokens that one of them drops. A rank's numbers are rounded so that they
    /// add up, and those of all ranks so that no expert gains by it; [`Routing::load`] rounds for all ranks alike.
    pub(in crate::workload) fn sent(&self, moe: Moe, tokens: u64, ranks: u32, key: Key) -> (Sent, u64) {
        let all = tokens * moe.top_k;
        let (order, exact) = self.shares(moe, all, key);
        let most = self.most(moe, all);
        let row = |rank: u32| {
            let mut row = vec![0; order.len()];
            let (mut sum, mut before) = (f64::from(rank) / f64::from(ranks), 0);
            for (place, (&expert, exact)) in order.iter().zip(&exact).enumerate() {
                sum += exact;
                let last = place + 1 == order.len();
                let up_to = if last { all } else { (sum.floor() as u64).clamp(before, all) };
                row[expert] = (up_to - before).min(most);
                before = up_to;
            }
            row
        };
        let mut rows: Vec<Vec<u64>> = (0..ranks).map(row).collect();
        let dropped = all - rows.first().map_or(all, |row| row.iter().sum());
        if rows.windows(2).all(|pair| pair[0] == pair[1]) {
            return (Sent::alike(rows.swap_remove(0), ranks), dropped);
        }
        (Sent::by_rank(rows), dropped)
    }

    /// The experts in the order of their popularity, and the shares of so many tokens that the places of this order have.
    fn shares(&self, moe: Moe, all: u64, key: Key) -> (Vec<usize>, Vec<f64>) {
        let experts = moe.experts as usize;
        let mut order: Vec<usize> = (0..experts).collect();
        let z = self.skew.exponent(moe.experts);
        if !self.skew.is_even() {
            for i in (1..experts).rev() {
                order.swap(i, below(key.draw(i as u64), i + 1));
            }
        }
        let weight = |place| skew::weight(z, place);
        let sum: f64 = (0..experts).map(weight).sum();
        let exact = (0..experts).map(|place| all as f64 * weight(place) / sum).collect();
        (order, exact)
    }

    /// Most tokens of a rank that an expert takes.
    fn most(&self, moe: Moe, all: u64) -> u64 {
        self.capacity.map_or(u64::MAX, |c| (c * all as f64 / moe.experts as f64).ceil() as u64)
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
        for skew in [0.0, 0.5, 1.0, 2.0].map(Skew::Exponent) {
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
        let routing = Routing { skew: Skew::Exponent(1.0), capacity: Some(1.25), ..Routing::default() };
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
    fn few_tokens_of_many_ranks_load_all_even_experts() {
        // One token of each of 64 ranks to eight of 256 experts: two for each expert.
        let (sent, _) = Routing::default().sent(DEEPSEEK, 1, 64, key());
        for to in 0..64 {
            let tokens: u64 = (0..64).map(|from| sent.between(from, to).iter().sum::<u64>()).sum();
            assert_eq!(tokens, 8, "four experts of rank {to}");
        }
        // Numbers that can be divided are those of every rank.
        assert_eq!(Routing::default().sent(DEEPSEEK, 128, 64, key()).0, Sent::alike(vec![4; 256], 64));
        let skewed = Routing { skew: Skew::Exponent(0.5), ..Routing::default() };
        assert_eq!(skewed.sent(DEEPSEEK, 100, 64, key()).0.mean(), 800);
    }
}
