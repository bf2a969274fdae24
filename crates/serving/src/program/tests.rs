use super::*;
use crate::compute::{Decode, Prefill, Step};
use crate::kv::{Copies, Heads, Keeps, Kv};
use crate::models::Model;
use crate::spec::{Instance, Rails, Slo, Transfer};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// One message for each pair of NICs, at once.
pub(crate) const TRANSFER: Transfer = Transfer {
    way: Way::Push,
    rails: Rails::Own,
    qps: 1,
    slice: 65_536,
    host: Time::ZERO,
    descriptor: Time::ZERO,
    by_block: false,
    reserve: Reserve::AtTransfer,
};

/// Two prefill and two decode instances of one GPU; a token has 1,000 B of KV and takes 1 us to compute, a step takes 1 ms.
fn spec(requests: &[(u64, u64, u64)]) -> Spec {
    let request = |&(ms, input, output): &(u64, u64, u64)| Request {
        at: Time::from_ms(ms),
        input,
        output,
        blocks: Vec::new(),
    };
    let instance = |rank: u32| Instance { nics: vec![rank], server_nics: vec![rank] };
    let keeps = Keeps::Heads(Heads { kv: 1, width: 50 });
    Spec {
        requests: requests.iter().map(request).collect(),
        kv: Kv { layers: 5, keeps, value: 2, block: 1, copies: Copies::One },
        prefix_block: 100,
        prefills: vec![instance(0), instance(1)],
        decodes: vec![instance(2), instance(3)],
        prefill: Prefill::Formula(Model { layers: 5, hidden: 0, keeps, active: 500 }, 1_000_000_000),
        decode: Decode {
            step: Step::Formula { weights: 0, token: 0, bandwidth: 1 },
            floor: Time::from_ms(1),
        },
        batch_tokens: 1000,
        memory: 10_000_000,
        slots: 4,
        caches: (0, 0),
        transfer: TRANSFER,
        open: false,
        place_prefill: Place::RoundRobin,
        place_decode: Place::RoundRobin,
        first_token: FirstToken::Decode,
        slo: Slo::default(),
    }
}

/// A network in which each receiver takes 1,000 B per us, one message after the other, 1 us after it was sent.
#[derive(Clone, Copy)]
struct Fifo;

impl Network for Fifo {
    fn alone(&mut self, messages: &[Message]) -> Time {
        let mut to: BTreeMap<u32, u64> = BTreeMap::new();
        messages.iter().for_each(|message| *to.entry(message.to).or_default() += message.bytes);
        Time(to.values().max().map_or(0, |bytes| bytes * 1000) + 1_000_000)
    }

    fn switches(&mut self, from: u32, to: u32) -> u32 {
        1 + u32::from(from % 2 != to % 2)
    }
}

/// Plays the program; returns what became of the requests, and all messages.
fn play(spec: Spec) -> (Served, Vec<Message>) {
    let (program, sent) = played(spec);
    (program.finish(), sent)
}

/// The program after its last event, and all messages.
fn played(spec: Spec) -> (Program<Fifo>, Vec<Message>) {
    let (program, sent) = played_on(1000, spec);
    (program, sent.into_iter().map(|(_, message)| message).collect())
}

/// The same on a network that takes so many ps for a byte, with the starts of all messages.
fn played_on(byte: u64, spec: Spec) -> (Program<Fifo>, Vec<(Time, Message)>) {
    let mut program = Program::new(spec, Fifo);
    let mut under_way: BTreeMap<(Time, u64), Message> = BTreeMap::new();
    let mut free: BTreeMap<u32, Time> = BTreeMap::new();
    let mut sent = Vec::new();
    loop {
        let arrival = under_way.keys().next().copied();
        let (now, out) = match (arrival, program.next()) {
            (Some((at, id)), next) if next.is_none_or(|next| at <= next) => {
                under_way.remove(&(at, id));
                (at, program.received(at, id))
            }
            (_, Some(at)) => (at, program.wake(at)),
            _ => return (program, sent),
        };
        for message in out {
            let free = free.entry(message.to).or_insert(Time::ZERO);
            *free = Time((*free).max(now).ps() + message.bytes * byte);
            under_way.insert((*free + Time::from_us(1), message.id), message);
            sent.push((now, message));
        }
    }
}

fn us(time: Time) -> u64 {
    time.ps() / 1_000_000
}

/// The parts of a request's time to its first token, us, without those that are 0.
fn parts(record: &Record) -> Vec<(&'static str, u64)> {
    let named = record.parts.unwrap().named();
    named.into_iter().filter(|(_, time)| *time > Time::ZERO).map(|(name, time)| (name, us(time))).collect()
}

#[test]
fn one_request_computes_crosses_and_decodes() {
    let (served, sent) = play(spec(&[(5, 300, 3)]));
    let record = served.requests[0];
    assert_eq!(parts(&record), [("prefill", 300), ("alone", 301), ("first_step", 1000)]);
    assert_eq!(us(record.ttft().unwrap()), 1601);
    assert_eq!((us(record.tpot().unwrap()), record.bytes), (1000, 300_000));
    assert_eq!(served.gaps, [(1_000_000_000, 2)]);
    assert_eq!((sent.len(), sent[0].from, sent[0].to), (1, 0, 2));
}

#[test]
fn an_answer_of_one_token_ends_with_its_first_step_or_with_its_prefill() {
    let (served, _) = play(spec(&[(0, 300, 1)]));
    assert_eq!(served.requests[0].end, served.requests[0].first);
    let by_prefill = Spec { first_token: FirstToken::Prefill, ..spec(&[(0, 300, 1), (0, 300, 2)]) };
    let (served, sent) = play(by_prefill);
    assert_eq!((us(served.requests[0].ttft().unwrap()), sent.len()), (300, 1), "nothing is left to decode");
    assert_eq!(
        us(served.requests[1].tpot().unwrap()),
        301 + 1000,
        "the transfer lies before the second token"
    );
}

#[test]
fn requests_wait_for_the_batch_before_theirs_and_a_batch_ends_as_a_whole() {
    // All go to one instance: 600 + 300 tokens fit into a batch of 1,000, the third request does not.
    let one = Spec {
        prefills: spec(&[]).prefills[..1].to_vec(),
        ..spec(&[(0, 100, 1), (0, 600, 1), (0, 300, 1), (0, 200, 1)])
    };
    let (served, _) = play(one);
    let of = |i: usize| served.requests[i].parts.unwrap();
    assert_eq!((us(of(0).queue), us(of(0).prefill)), (0, 100), "an idle instance starts at once");
    assert_eq!((us(of(1).queue), us(of(1).prefill)), (100, 900));
    assert_eq!((us(of(2).queue), us(of(2).prefill)), (100, 900));
    assert_eq!((us(of(3).queue), us(of(3).prefill)), (1000, 200));
}

#[test]
fn two_transfers_to_one_instance_share_its_nic_and_the_network_is_named() {
    let one = Spec { decodes: spec(&[]).decodes[..1].to_vec(), ..spec(&[(0, 300, 1), (0, 300, 1)]) };
    let (served, _) = play(one);
    assert_eq!(parts(&served.requests[0]), [("prefill", 300), ("alone", 301), ("first_step", 1000)]);
    let second = parts(&served.requests[1]);
    assert_eq!(
        second,
        [("prefill", 300), ("alone", 301), ("excess", 300), ("wait", 700), ("first_step", 1000)]
    );
}

#[test]
fn memory_is_granted_in_order_when_the_transfer_begins_or_before_the_prefill() {
    let requests = [(0, 300, 2), (0, 300, 2)];
    let one = || Spec { memory: 400_000, decodes: spec(&[]).decodes[..1].to_vec(), ..spec(&requests) };
    let (served, _) = play(one());
    // The first request ends at 300 + 301 + 2,000 us.
    assert_eq!(us(served.requests[1].parts.unwrap().memory), 2301);
    let early = Spec { transfer: Transfer { reserve: Reserve::Early, ..TRANSFER }, ..one() };
    let (served, _) = play(early);
    let second = parts(&served.requests[1]);
    assert_eq!(second, [("prefill", 300), ("memory", 2601), ("alone", 301), ("first_step", 1000)]);
}

#[test]
fn kv_counts_as_sent_when_its_messages_start() {
    let requests = [(0, 300, 2), (0, 300, 2)];
    let one = Spec { memory: 400_000, decodes: spec(&[]).decodes[..1].to_vec(), ..spec(&requests) };
    let mut program = Program::new(one, Fifo);
    while let Some(next) = program.next() {
        program.wake(next);
    }
    // No message arrives, so the second request waits for the memory of the first.
    let sent: Vec<u64> = program.finish().requests.iter().map(|record| record.bytes).collect();
    assert_eq!(sent, [300_000, 0]);
}

#[test]
fn a_transfer_has_its_time_when_its_last_byte_arrives() {
    let mut program = Program::new(spec(&[(0, 300, 1)]), Fifo);
    let at = program.next().unwrap();
    program.wake(at);
    let message = program.wake(Time::from_us(300))[0];
    program.received(Time::from_us(300 + 350), message.id);
    let record = program.finish().requests[0];
    assert_eq!((record.parts, record.crossed), (None, Some((Time::from_us(301), Time::from_us(49)))));
}

#[test]
fn a_full_step_makes_others_wait_for_a_slot() {
    let one =
        Spec { slots: 1, decodes: spec(&[]).decodes[..1].to_vec(), ..spec(&[(0, 300, 4), (0, 100, 1)]) };
    let (served, _) = play(one);
    // The second request's KV has arrived at 201 us; the first request's steps end at 201 + 1,000 and after.
    assert_eq!(us(served.requests[0].parts.unwrap().wait), 1000 + 201 - 601);
    assert_eq!(us(served.requests[1].parts.unwrap().wait), 0);
}

#[test]
fn host_software_comes_before_the_bytes_and_is_counted_apart() {
    let transfer = Transfer { host: Time::from_us(40), descriptor: Time::from_us(2), ..TRANSFER };
    let of = |by_block| {
        let (served, _) = play(Spec { transfer: Transfer { by_block, ..transfer }, ..spec(&[(0, 300, 1)]) });
        us(served.requests[0].parts.unwrap().host)
    };
    // Five layers, of 300 blocks each.
    assert_eq!((of(false), of(true)), (40 + 5 * 2, 40 + 5 * 300 * 2));
}

#[test]
fn a_pull_asks_first_and_its_request_belongs_to_the_transfer() {
    let (served, sent) =
        play(Spec { transfer: Transfer { way: Way::Pull, ..TRANSFER }, ..spec(&[(0, 300, 1)]) });
    assert_eq!((sent[0].from, sent[0].to, sent[0].bytes), (2, 0, 64));
    assert_eq!((sent[1].from, sent[1].to, sent[1].bytes), (0, 2, 300_000));
    // 64 B take 64 ns; both ways have 1 us.
    assert_eq!(served.requests[0].parts.unwrap().alone, Time(64_000 + 300_000_000 + 2_000_000));
    assert_eq!(served.requests[0].parts.unwrap().excess, Time::ZERO);
}

#[test]
fn layers_that_are_sent_when_they_are_computed_hide_behind_the_prefill() {
    let layers = Transfer { way: Way::Layers(5), reserve: Reserve::Early, ..TRANSFER };
    let (served, sent) = play(Spec { transfer: layers, ..spec(&[(0, 300, 1)]) });
    assert!(sent.iter().map(|message| message.bytes).eq([60_000; 5]));
    // A layer computes for 60 us and crosses in 60: only the last one is left when the prefill ends.
    assert_eq!(parts(&served.requests[0]), [("prefill", 300), ("alone", 61), ("first_step", 1000)]);
}

#[test]
fn rates_of_transfers_by_layers_leave_the_prefill_out() {
    let layers = Transfer { way: Way::Layers(5), reserve: Reserve::Early, ..TRANSFER };
    let place_decode = Place::NetworkAware(Time::from_ms(1));
    let keeps = spec(&[]).kv.keeps;
    let slow = Spec {
        prefill: Prefill::Formula(Model { layers: 5, hidden: 0, keeps, active: 500 }, 10_000_000),
        transfer: layers,
        place_decode,
        ..spec(&[(0, 300, 1)])
    };
    let (mut program, sent) = played(slow);
    let switches = Fifo.switches(sent[0].from, sent[0].to);
    // The last group of 60,000 B crosses in 61 us, however long the prompt takes to compute.
    let expected = program.rates.time(Time::from_ms(1000), switches, Time::from_us(61));
    assert_eq!(expected, Time::from_us(61), "neither slower nor faster than its NICs");
}

#[test]
fn prefixes_in_caches_are_neither_computed_nor_sent_again() {
    let mut cached = Spec { caches: (10_000, 10_000), ..spec(&[(0, 300, 1), (10, 300, 1), (20, 300, 1)]) };
    for (request, blocks) in cached.requests.iter_mut().zip([[1, 2, 3], [1, 2, 4], [1, 2, 3]]) {
        request.blocks = blocks.to_vec();
    }
    cached.prefills.truncate(1);
    cached.decodes.truncate(1);
    let (served, _) = play(cached);
    let of = |i: usize| (served.requests[i].cached, served.requests[i].bytes);
    assert_eq!(of(0), (0, 300_000));
    assert_eq!(of(1), (200, 100_000));
    assert_eq!(of(2), (299, 1000), "the last token is computed always");
}

#[test]
fn a_placement_that_knows_the_network_avoids_the_far_instance() {
    // Rank 2 is near rank 0 and rank 3 near rank 1. By turns, two requests of instance 0 would go to both.
    let of = |place_decode| {
        let spec = Spec { place_decode, ..spec(&[(0, 300, 1), (5, 300, 1), (10, 300, 1)]) };
        let (served, _) = play(Spec { prefills: spec.prefills[..1].to_vec(), ..spec });
        served.requests.iter().map(|record| record.decode.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of(Place::RoundRobin), [0, 1, 0]);
    assert_eq!(of(Place::NetworkAware(Time::from_ms(1))), [0, 0, 0]);
}

/// With a network that is ten times as slow, an open loop sends the same at the same times, and a closed one waits for memory.
#[test]
fn in_an_open_loop_the_network_moves_no_start() {
    let requests: Vec<(u64, u64, u64)> = (0..12).map(|i| (i, 300, 3)).collect();
    let sent = |byte, open, place_decode| {
        let mut spec = Spec { open, memory: 700_000, caches: (0, 10_000), place_decode, ..spec(&requests) };
        for (i, request) in (0..).zip(&mut spec.requests) {
            request.blocks = vec![i % 3, 10 + i % 2];
        }
        let (program, sent) = played_on(byte, spec);
        assert!(program.finish().requests.iter().all(|record| record.end.is_some()));
        sent
    };
    for place in [Place::RoundRobin, Place::LeastLoaded, Place::CacheAware(0.5), Place::SameTier] {
        assert_eq!(sent(1000, true, place), sent(10_000, true, place), "{place:?}");
        assert_ne!(sent(1000, false, place), sent(10_000, false, place), "{place:?}");
    }
}

fn ways() -> impl Strategy<Value = Way> {
    prop_oneof![Just(Way::Push), Just(Way::Pull), (1..9_u64).prop_map(Way::Layers)]
}

fn places() -> impl Strategy<Value = Place> {
    prop_oneof![
        Just(Place::RoundRobin),
        Just(Place::LeastLoaded),
        Just(Place::CacheAware(0.5)),
        (1..9_u64).prop_map(|ms| Place::NetworkAware(Time::from_ms(ms)))
    ]
}

proptest! {
    /// Every request ends, its parts add up to its time to the first token to the picosecond, and no memory is lost.
    #[test]
    fn the_parts_of_every_request_add_up(
        requests in prop::collection::vec((0..9_u64, 1..400_u64, 1..6_u64), 1..30),
        (way, place_prefill, place_decode) in (ways(), places(), places()),
        (host, early, by_prefill, rails) in (0..3_u64, any::<bool>(), any::<bool>(), 0..3_usize),
        (slots, memory, cache) in (1..4_usize, 410..2000_u64, 0..1000_u64),
    ) {
        let mut requests = requests;
        requests.sort_unstable();
        let transfer = Transfer {
            way,
            rails: [Rails::Own, Rails::RoundRobin, Rails::LeastInflight][rails],
            host: Time::from_us(host),
            reserve: if early || matches!(way, Way::Layers(_)) { Reserve::Early } else { Reserve::AtTransfer },
            ..TRANSFER
        };
        let first_token = if by_prefill { FirstToken::Prefill } else { FirstToken::Decode };
        let mut all = Spec {
            transfer, place_prefill, place_decode, first_token, slots,
            memory: memory * 1000, caches: (cache, cache), ..spec(&requests)
        };
        for (i, request) in (0..).zip(&mut all.requests) {
            request.blocks = (0..request.input.div_ceil(100)).map(|block| block * (i % 3)).collect();
        }
        let bytes: Vec<u64> = all.requests.iter().map(|request| all.need(request)).collect();
        let (served, sent) = play(all);
        let data: u64 = sent.iter().filter(|m| m.from < 2).map(|m| m.bytes).sum();
        prop_assert_eq!(data, served.requests.iter().map(|record| record.bytes).sum::<u64>());
        for (record, need) in served.requests.iter().zip(bytes) {
            prop_assert!(record.end.is_some() && record.bytes <= need);
            let parts = record.parts.unwrap();
            if by_prefill {
                let early = if early || matches!(way, Way::Layers(_)) { parts.memory } else { Time::ZERO };
                prop_assert_eq!(early + parts.queue + parts.prefill, record.ttft().unwrap());
            } else {
                prop_assert_eq!(parts.sum(), record.ttft().unwrap());
            }
        }
    }
}
