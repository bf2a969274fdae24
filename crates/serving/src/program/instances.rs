//! Instances: what waits, what runs, and what they remember.

use crate::cache::Cache;
use model::Time;
use std::collections::VecDeque;

/// A prefill instance.
#[derive(Clone, Debug)]
pub(super) struct PrefillInstance {
    pub(super) waiting: VecDeque<usize>,
    /// The batch that it computes, and the time at which the batch began.
    pub(super) batch: Vec<usize>,
    pub(super) began: Time,
    /// Tokens of prompts that wait or are computed.
    pub(super) load: u64,
    pub(super) cache: Cache,
}

impl PrefillInstance {
    pub(super) fn new(cache: u64) -> Self {
        PrefillInstance {
            waiting: VecDeque::new(),
            batch: Vec::new(),
            began: Time::ZERO,
            load: 0,
            cache: Cache::new(cache),
        }
    }

    /// Tokens of a prompt that are known. The last one is computed always.
    pub(super) fn hit(&self, blocks: &[u64], block: u64, input: u64) -> u64 {
        (self.cache.hit(blocks) * block).min(input - 1)
    }
}

/// A decode instance.
#[derive(Clone, Debug)]
pub(super) struct DecodeInstance {
    /// Bytes of KV that are free.
    pub(super) free: u64,
    /// Requests that wait for memory, with their bytes.
    pub(super) waiting: VecDeque<(usize, u64)>,
    /// Requests whose KV has arrived, and that wait for a slot.
    pub(super) ready: VecDeque<usize>,
    /// Requests of the step.
    pub(super) running: Vec<usize>,
    /// Requests that were placed here and have not ended.
    pub(super) placed: usize,
    /// Tokens that these hold at most.
    pub(super) load: u64,
    /// End of the step, and its time.
    pub(super) step: Option<(Time, Time)>,
    pub(super) cache: Cache,
}

impl DecodeInstance {
    pub(super) fn new(memory: u64, cache: u64) -> Self {
        DecodeInstance {
            free: memory,
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            running: Vec::new(),
            placed: 0,
            load: 0,
            step: None,
            cache: Cache::new(cache),
        }
    }

    /// Tokens of a prompt that are known. The KV of the last one is always sent.
    pub(super) fn hit(&self, blocks: &[u64], block: u64, input: u64) -> u64 {
        (self.cache.hit(blocks) * block).min(input - 1)
    }

    /// Expected time until a request that needs so much memory could start. Requests in front leave at the pace of the present step, whose
    /// answers have `mean` tokens. Our choice: the formula of NetKV is unpublished.
    pub(super) fn start_in(&self, now: Time, need: u64, slots: usize, mean: u64) -> Time {
        let (end, step) = self.step.unwrap_or((now, Time::ZERO));
        let over = (self.placed + 1).saturating_sub(slots);
        let short = if need > self.free { self.waiting.len() + 1 } else { 0 };
        let in_front = over.max(short) as u64;
        let turns = in_front.saturating_mul(mean).div_ceil(slots.max(1) as u64);
        Time(end.since(now).ps().saturating_add(step.ps().saturating_mul(turns)))
    }
}
