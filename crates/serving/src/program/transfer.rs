//! Transfers: from the host software to the last byte.

use super::state::{Event, Flight, Program};
use crate::lanes;
use crate::network::{Message, Network};
use crate::spec::{Place, Way};
use model::Time;

/// Bytes of the request of a READ for each pair of NICs. Our choice: a header with an address, a key and a length.
const READ_REQUEST: u64 = 64;

impl<N: Network> Program<N> {
    /// A group of a request's KV can be sent: the host software begins.
    pub(super) fn begin_transfer(&mut self, now: Time, request: usize, group: u64) {
        let host = self.host_time(request, group);
        match host {
            Time::ZERO => self.post(now, request, group),
            _ => self.at(Time(now.ps().saturating_add(host.ps())), Event::Post(request, group)),
        }
    }

    pub(super) fn groups(&self) -> u64 {
        if let Way::Layers(groups) = self.spec.transfer.way { groups.max(1) } else { 1 }
    }

    /// Bytes of all groups before this one.
    fn before(&self, request: usize, group: u64) -> u64 {
        let layers = u128::from(self.spec.kv.layers.max(1));
        let done = layers * u128::from(group) / u128::from(self.groups());
        (u128::from(self.going[request].bytes) * done / layers) as u64
    }

    /// Time of the host software for a group.
    fn host_time(&self, request: usize, group: u64) -> Time {
        let (transfer, groups) = (&self.spec.transfer, self.groups());
        let layers = |group: u64| self.spec.kv.layers * group / groups;
        let mine = layers(group + 1) - layers(group);
        let each = if transfer.by_block { self.going[request].blocks } else { 1 };
        let descriptors = mine.saturating_mul(each);
        Time(transfer.host.ps().saturating_add(transfer.descriptor.ps().saturating_mul(descriptors)))
    }

    /// The host software is ready: the messages of a group start.
    pub(super) fn post(&mut self, now: Time, request: usize, group: u64) {
        let Some(decode) = self.going[request].decode else { return };
        let prefill = self.going[request].prefill;
        let (start, end) = (self.before(request, group), self.before(request, group + 1));
        let ends = (&self.spec.prefills[prefill], &self.spec.decodes[decode]);
        let turn = &mut self.slices[prefill];
        // What is left of the request crosses one after the other.
        let rest = self.going[request].bytes - start;
        let left = lanes::messages(&self.spec.transfer, ends, rest, &self.under_way, &mut turn.clone());
        let mut messages = left.clone();
        if end < self.going[request].bytes {
            messages = lanes::messages(&self.spec.transfer, ends, end - start, &self.under_way, turn);
        } else {
            *turn += rest.div_ceil(self.spec.transfer.slice.max(1));
        }
        if let Place::NetworkAware(_) = self.spec.place_decode {
            self.going[request].times.by_nics = self.beside_flights(messages.clone());
        }
        let mut alone = self.network.alone(&left);
        let pulls = self.spec.transfer.way == Way::Pull;
        if pulls {
            let asked: Vec<Message> = messages.iter().map(asked).collect();
            alone = Time(alone.ps().saturating_add(self.network.asked(&asked).ps()));
        }
        let host = self.host_time(request, group);
        let times = &mut self.going[request].times;
        times.posted = now;
        times.with_host = times.with_host.max(Time(now.ps().saturating_add(alone.ps())));
        let without = Time((now - host).ps().saturating_add(alone.ps()));
        times.alone = times.alone.max(without);
        let going = &mut self.going[request];
        (going.groups, going.messages) = (going.groups - 1, going.messages + messages.len() as u64);
        for message in messages {
            match pulls {
                true => self.send(request, asked(&message), Some(message.bytes)),
                false => self.send(request, message, None),
            }
        }
    }

    fn send(&mut self, request: usize, message: Message, answer: Option<u64>) {
        if answer.is_none() {
            self.records[request].bytes += message.bytes;
        }
        let message = Message { id: self.sent, ..message };
        self.sent += 1;
        *self.under_way.entry(message.from).or_default() += message.bytes;
        self.flights.insert(message.id, Flight { request, message, answer });
        self.out.push(message);
    }

    /// A message has arrived.
    pub(super) fn arrived(&mut self, now: Time, id: u64) {
        let Some(Flight { request, message, answer }) = self.flights.remove(&id) else { return };
        if let Some(under_way) = self.under_way.get_mut(&message.from) {
            *under_way -= message.bytes;
        }
        if let Some(bytes) = answer {
            let Message { from, to, tag, .. } = message;
            self.send(request, Message { id: 0, from: to, to: from, bytes, tag }, None);
            return;
        }
        let going = &mut self.going[request];
        going.messages -= 1;
        if going.messages > 0 || going.groups > 0 {
            return;
        }
        going.times.received = now;
        let Some(decode) = going.decode else { return };
        let (by_nics, posted) = (going.times.by_nics, going.times.posted);
        let (from, to) = (self.spec.prefills[going.prefill].nics[0], self.spec.decodes[decode].nics[0]);
        let switches = self.network.switches(from, to);
        // Groups before the last one wait for the prefill, so their time says nothing about the network.
        self.rates.note(now, switches, by_nics, now.since(posted));
        self.promised.remove(&request);
        let [_, alone, excess] = self.transfer(request);
        self.records[request].crossed = Some((alone, excess));
        self.records[request].received = Some(now);
        self.kv_arrived(now, decode, request);
    }
}

/// The request of a READ.
fn asked(message: &Message) -> Message {
    let Message { id, from, to, tag, .. } = *message;
    Message { id, from: to, to: from, bytes: READ_REQUEST, tag }
}
