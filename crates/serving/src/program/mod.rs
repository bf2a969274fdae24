//! The program: requests come, prefill instances compute batches, KV crosses, decode instances make steps.
//!
//! It has a clock of its own events, and two calls from outside: [`Program::wake`] at the time of its next event, and
//! [`Program::received`] when a message has arrived.

mod decode;
mod instances;
mod prefill;
mod state;
#[cfg(test)]
pub(crate) mod tests;
mod transfer;

use crate::network::{Message, Network};
use crate::place::{Candidate, Rates, choose};
use crate::record::{Parts, Record, Served};
use crate::spec::{FirstToken, Place, Request, Reserve, Spec, Way};
use instances::{DecodeInstance, PrefillInstance};
use model::Time;
pub use state::Program;
use state::{Event, Going};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

impl<N: Network> Program<N> {
    /// The program before its first event.
    pub fn new(spec: Spec, network: N) -> Self {
        let period = match spec.place_decode {
            Place::NetworkAware(period) => period,
            _ => Time::NEVER,
        };
        let prefix = spec.prefix_block.max(1);
        let record = |request: &crate::spec::Request| Record {
            input: request.input,
            output: request.output,
            arrival: request.at,
            ..Record::default()
        };
        let mut program = Program {
            events: BinaryHeap::new(),
            set: 0,
            going: vec![Going::default(); spec.requests.len()],
            records: spec.requests.iter().map(record).collect(),
            prefills: vec![PrefillInstance::new(spec.caches.0 / prefix); spec.prefills.len()],
            decodes: vec![DecodeInstance::new(spec.memory, spec.caches.1 / prefix); spec.decodes.len()],
            flights: BTreeMap::new(),
            promised: BTreeMap::new(),
            sent: 0,
            under_way: BTreeMap::new(),
            slices: vec![0; spec.prefills.len()],
            out: Vec::new(),
            turns: (0, 0),
            rates: Rates::new(period),
            gaps: BTreeMap::new(),
            ended: (0, 0),
            spec,
            network,
        };
        for i in 0..program.spec.requests.len() {
            program.at(program.spec.requests[i].at, Event::Arrive(i));
        }
        program
    }

    /// Time of its next event, if it has one of its own.
    pub fn next(&self) -> Option<Time> {
        self.events.peek().map(|Reverse((at, ..))| *at)
    }

    /// Plays its events up to `now`, and returns the messages that start now.
    pub fn wake(&mut self, now: Time) -> Vec<Message> {
        while let Some(&Reverse((at, _, event))) = self.events.peek() {
            if at > now {
                break;
            }
            self.events.pop();
            match event {
                Event::Arrive(request) => self.arrive(now, request),
                Event::Computed(instance, groups) => self.computed(now, instance, groups),
                Event::Post(request, group) => self.post(now, request, group),
                Event::Step(instance) => self.step_ends(now, instance),
            }
        }
        std::mem::take(&mut self.out)
    }

    /// Takes note that a message has arrived, and returns the messages that start now.
    pub fn received(&mut self, now: Time, id: u64) -> Vec<Message> {
        self.arrived(now, id);
        self.wake(now)
    }

    /// Requests that have ended, and all of them.
    pub fn progress(&self) -> (u64, u64) {
        (self.ended.0, self.records.len() as u64)
    }

    /// What became of all requests.
    pub fn finish(self) -> Served {
        Served {
            requests: self.records,
            gaps: self.gaps.into_iter().collect(),
            slo: self.spec.slo,
            first_token: self.spec.first_token,
            assumed: Vec::new(),
            job: None,
        }
    }

    /// A request comes: it gets a prefill instance, and memory at a decode instance if that is reserved early.
    fn arrive(&mut self, now: Time, request: usize) {
        let Request { input, ref blocks, .. } = self.spec.requests[request];
        let of = |instance: &PrefillInstance| {
            let hit = instance.hit(blocks, self.spec.prefix_block, input);
            Candidate { load: instance.load, hit, ..Candidate::default() }
        };
        let candidates: Vec<Candidate> = self.prefills.iter().map(of).collect();
        let prefill = choose(self.spec.place_prefill, &candidates, &mut self.turns.0);
        self.going[request] = Going { prefill, ..Going::default() };
        self.records[request].prefill = prefill as u32;
        match self.spec.transfer.reserve {
            Reserve::Early if self.decodes_anything(request) => self.place(now, request),
            _ => self.queue(now, request),
        }
    }

    /// False if the prefill makes the only token of the answer.
    fn decodes_anything(&self, request: usize) -> bool {
        self.spec.first_token == FirstToken::Decode || self.spec.requests[request].output > 1
    }

    /// Chooses the decode instance of a request, which then waits for memory.
    fn place(&mut self, now: Time, request: usize) {
        let Spec { place_decode, prefix_block, kv, .. } = self.spec;
        let Request { input, ref blocks, .. } = self.spec.requests[request];
        let hits: Vec<u64> = self.decodes.iter().map(|one| one.hit(blocks, prefix_block, input)).collect();
        let need = self.spec.need(&self.spec.requests[request]);
        let mean = self.ended.1.checked_div(self.ended.0).unwrap_or(0);
        let mut candidates = Vec::new();
        for (instance, hit) in (0..).zip(&hits) {
            let switches = if place_decode == Place::SameTier { self.switches(request, instance) } else { 0 };
            let one = &self.decodes[instance];
            let mut candidate = Candidate { load: one.load, hit: *hit, delay: Time::ZERO, switches };
            if let Place::NetworkAware(_) | Place::Oracle = place_decode {
                let start = one.start_in(now, need, self.spec.slots, mean);
                let blocks = kv.blocks(input) - hit / kv.block;
                let bytes = kv.bytes(blocks, self.spec.tp().1);
                let moving = match place_decode {
                    Place::Oracle => self.beside_flights(self.messages(request, instance, bytes)),
                    _ => self.expected(now, request, instance, bytes),
                };
                candidate.delay = Time(start.ps().saturating_add(moving.ps()));
            }
            candidates.push(candidate);
        }
        let decode = choose(place_decode, &candidates, &mut self.turns.1);
        let blocks = kv.blocks(input) - hits.get(decode).copied().unwrap_or(0) / kv.block;
        let bytes = kv.bytes(blocks, self.spec.tp().1);
        let groups = self.groups();
        if let Place::NetworkAware(_) = place_decode {
            self.promised.insert(request, self.messages(request, decode, bytes));
        }
        let going = &mut self.going[request];
        (going.decode, going.blocks, going.bytes, going.groups) = (Some(decode), blocks, bytes, groups);
        self.records[request].decode = Some(decode as u32);
        self.ask_memory(now, decode, request, need);
    }

    /// Switches between a request's prefill instance and a decode instance.
    fn switches(&mut self, request: usize, decode: usize) -> u32 {
        let prefill = self.going[request].prefill;
        self.network.switches(self.spec.prefills[prefill].nics[0], self.spec.decodes[decode].nics[0])
    }

    /// The messages of a transfer to a decode instance, without numbers.
    fn messages(&self, request: usize, decode: usize, bytes: u64) -> Vec<Message> {
        let ends = (&self.spec.prefills[self.going[request].prefill], &self.spec.decodes[decode]);
        crate::lanes::messages(&self.spec.transfer, ends, bytes, &self.under_way, &mut 0)
    }

    /// The time that these messages take beside those of others at their NICs, if all start now.
    fn beside(&mut self, mut messages: Vec<Message>, others: impl Fn(&Self) -> Vec<Message>) -> Time {
        let froms: BTreeSet<u32> = messages.iter().map(|message| message.from).collect();
        let tos: BTreeSet<u32> = messages.iter().map(|message| message.to).collect();
        let shares = |other: &Message| froms.contains(&other.from) || tos.contains(&other.to);
        messages.extend(others(self).into_iter().filter(shares));
        self.network.alone(&messages)
    }

    /// The time that messages take beside all that are under way, if those start now.
    fn beside_flights(&mut self, messages: Vec<Message>) -> Time {
        self.beside(messages, |program| program.flights.values().map(|flight| flight.message).collect())
    }

    /// The time that a transfer to a decode instance is expected to take: its NICs carry all that the program has placed and that has not
    /// arrived, and transfers over as many switches took so much longer than their NICs alone.
    fn expected(&mut self, now: Time, request: usize, decode: usize, bytes: u64) -> Time {
        let switches = self.switches(request, decode);
        let messages = self.messages(request, decode, bytes);
        let by_nics = self.beside(messages, |program| program.promised.values().flatten().copied().collect());
        self.rates.time(now, switches, by_nics)
    }

    /// Memory was granted to a request.
    fn granted(&mut self, now: Time, request: usize) {
        self.going[request].times.granted = now;
        match self.spec.transfer.reserve {
            Reserve::Early => self.queue(now, request),
            Reserve::AtTransfer => self.begin_transfer(now, request, 0),
        }
    }

    /// A prompt is computed.
    fn prefilled(&mut self, now: Time, request: usize) {
        let early = self.spec.transfer.reserve == Reserve::Early;
        if self.spec.first_token == FirstToken::Prefill {
            self.records[request].first = Some(now);
            let going = &mut self.going[request];
            (going.tokens, going.last_token) = (1, now);
            if !self.decodes_anything(request) {
                let times = self.going[request].times;
                let parts = Parts {
                    queue: times.prefill_start.since(self.spec.requests[request].at),
                    prefill: now.since(times.prefill_start),
                    ..Parts::default()
                };
                self.records[request].parts = Some(parts);
                self.end(now, request);
                return;
            }
        }
        match (early, self.spec.transfer.way) {
            (true, Way::Layers(_)) => {}
            (true, _) => self.begin_transfer(now, request, 0),
            (false, _) => self.place(now, request),
        }
    }

    /// The parts of a transfer that has ended: host software, alone on the fabric, and beyond that.
    fn transfer(&self, request: usize) -> [Time; 3] {
        let times = self.going[request].times;
        let begun = match self.spec.transfer.reserve {
            Reserve::Early => times.prefill_end,
            Reserve::AtTransfer => times.granted,
        };
        // A transfer alone may end a packet later than it did: its bound is that of the busiest port.
        let ideal = times.with_host.min(times.received);
        let host = times.with_host.since(times.alone).min(ideal.since(begun));
        [host, ideal.since(begun) - host, times.received.since(ideal)]
    }

    /// The parts of the time to the first token by decoding, which ends now.
    fn parts(&self, now: Time, request: usize) -> Parts {
        let times = self.going[request].times;
        let arrival = self.spec.requests[request].at;
        let (queued, memory) = match self.spec.transfer.reserve {
            Reserve::Early => (times.granted, times.granted.since(arrival)),
            Reserve::AtTransfer => (arrival, times.granted.since(times.prefill_end)),
        };
        let [host, alone, excess] = self.transfer(request);
        Parts {
            queue: times.prefill_start.since(queued),
            prefill: times.prefill_end.since(times.prefill_start),
            memory,
            host,
            alone,
            excess,
            wait: times.admitted.since(times.received),
            first_step: now.since(times.admitted),
        }
    }

    /// The last token of a request.
    fn end(&mut self, now: Time, request: usize) {
        self.records[request].end = Some(now);
        self.ended = (self.ended.0 + 1, self.ended.1 + self.spec.requests[request].output);
    }
}
