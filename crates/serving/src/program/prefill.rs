//! Prefill instances: requests in the order of their arrival, in batches up to a number of tokens.

use super::state::{Event, Program};
use crate::network::Network;
use crate::spec::{Request, Way};
use model::Time;

impl<N: Network> Program<N> {
    /// A request waits for its prefill instance.
    pub(super) fn queue(&mut self, now: Time, request: usize) {
        let instance = self.going[request].prefill;
        self.prefills[instance].waiting.push_back(request);
        self.prefills[instance].load += self.spec.requests[request].input;
        self.start_batch(now, instance);
    }

    /// An idle instance takes the requests that wait, up to its number of tokens.
    fn start_batch(&mut self, now: Time, instance: usize) {
        let one = &mut self.prefills[instance];
        if !one.batch.is_empty() || one.waiting.is_empty() {
            return;
        }
        let (mut tokens, mut time) = (0_u64, Time::ZERO);
        while let Some(&request) = one.waiting.front() {
            let Request { input, ref blocks, .. } = self.spec.requests[request];
            let cached = one.hit(blocks, self.spec.prefix_block, input);
            tokens += input - cached;
            if !one.batch.is_empty() && tokens > self.spec.batch_tokens {
                break;
            }
            one.waiting.pop_front();
            one.batch.push(request);
            time = Time(time.ps().saturating_add(self.spec.prefill.time(input, cached).ps()));
            let going = &mut self.going[request];
            (going.cached, going.times.prefill_start) = (cached, now);
            self.records[request].cached = cached;
        }
        one.began = now;
        let groups = if let Way::Layers(groups) = self.spec.transfer.way { groups.max(1) } else { 1 };
        for group in 1..=groups {
            let part = u128::from(time.ps()) * u128::from(group) / u128::from(groups);
            self.at(Time(now.ps().saturating_add(part as u64)), Event::Computed(instance, group));
        }
    }

    /// So many groups of layers of the batch are computed.
    pub(super) fn computed(&mut self, now: Time, instance: usize, groups: u64) {
        let batch = self.prefills[instance].batch.clone();
        let is_last = match self.spec.transfer.way {
            Way::Layers(all) => {
                for &request in &batch {
                    if self.going[request].decode.is_some() {
                        self.begin_transfer(now, request, groups - 1);
                    }
                }
                groups == all.max(1)
            }
            _ => true,
        };
        if !is_last {
            return;
        }
        self.prefills[instance].batch.clear();
        for request in batch {
            let Request { input, ref blocks, .. } = self.spec.requests[request];
            self.prefills[instance].cache.keep(blocks);
            self.prefills[instance].load -= input;
            self.going[request].times.prefill_end = now;
            self.prefilled(now, request);
        }
        self.start_batch(now, instance);
    }
}
