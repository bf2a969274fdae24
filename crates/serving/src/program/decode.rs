//! Decode instances: memory for KV, and steps in which every request gets a token.

use super::state::{Event, Program};
use crate::network::Network;
use crate::spec::{FirstToken, Request};
use model::Time;

impl<N: Network> Program<N> {
    /// A request waits for memory behind those that came before.
    pub(super) fn ask_memory(&mut self, now: Time, instance: usize, request: usize, need: u64) {
        let Request { input, output, .. } = self.spec.requests[request];
        let one = &mut self.decodes[instance];
        one.placed += 1;
        one.load += input + output;
        if self.spec.open {
            one.cache.keep(&self.spec.requests[request].blocks);
            return self.granted(now, request);
        }
        one.waiting.push_back((request, need));
        self.grant(now, instance);
    }

    /// Grants memory in the order of the requests, while it is free.
    fn grant(&mut self, now: Time, instance: usize) {
        while let Some(&(request, need)) = self.decodes[instance].waiting.front() {
            let one = &mut self.decodes[instance];
            let Some(free) = one.free.checked_sub(need) else { return };
            one.free = free;
            one.waiting.pop_front();
            self.granted(now, request);
        }
    }

    /// All KV of a request has arrived.
    pub(super) fn kv_arrived(&mut self, now: Time, instance: usize, request: usize) {
        if !self.spec.open {
            self.decodes[instance].cache.keep(&self.spec.requests[request].blocks);
        }
        self.decodes[instance].ready.push_back(request);
        if self.decodes[instance].step.is_none() {
            self.start_step(now, instance);
        }
    }

    /// Admits requests to free slots, and starts a step of all that run.
    fn start_step(&mut self, now: Time, instance: usize) {
        let one = &mut self.decodes[instance];
        one.step = None;
        while one.running.len() < self.spec.slots {
            let Some(request) = one.ready.pop_front() else { break };
            self.going[request].times.admitted = now;
            one.running.push(request);
        }
        if one.running.is_empty() {
            return;
        }
        let context = |request: &usize| self.spec.requests[*request].input + self.going[*request].tokens;
        let (requests, context) = (one.running.len() as u64, one.running.iter().map(context).sum());
        let time = self.spec.decode.time(requests, context).max(Time(1));
        let end = Time(now.ps().saturating_add(time.ps()));
        one.step = Some((end, time));
        self.at(end, Event::Step(instance));
    }

    /// Every request of a step has a token more.
    pub(super) fn step_ends(&mut self, now: Time, instance: usize) {
        let running = std::mem::take(&mut self.decodes[instance].running);
        let mut left = Vec::with_capacity(running.len());
        for request in running {
            if self.records[request].parts.is_none() {
                self.records[request].parts = Some(self.parts(now, request));
            }
            let going = &mut self.going[request];
            going.tokens += 1;
            match going.tokens {
                1 => self.records[request].first = Some(now),
                _ => *self.gaps.entry(now.since(going.last_token).ps()).or_default() += 1,
            }
            going.last_token = now;
            if going.tokens < self.spec.requests[request].output {
                left.push(request);
                continue;
            }
            self.end(now, request);
            if self.spec.open {
                continue;
            }
            let need = self.spec.need(&self.spec.requests[request]);
            let Request { input, output, .. } = self.spec.requests[request];
            let one = &mut self.decodes[instance];
            one.free += need;
            one.placed -= 1;
            one.load -= input + output;
        }
        self.decodes[instance].running = left;
        self.start_step(now, instance);
        self.grant(now, instance);
    }
}

impl FirstToken {
    /// The name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            FirstToken::Decode => "decode",
            FirstToken::Prefill => "prefill",
        }
    }
}
