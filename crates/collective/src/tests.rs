//! Claim: after a collective, every rank has the bytes that the collective promises, in whatever order its steps happen.

use super::{After, Algorithm, Call, Kind, Machine, Schedule, Step, Way};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A call with one channel and whole messages.
pub(super) fn call(kind: Kind, servers: Vec<u32>, bytes: u64) -> Call {
    let machine = Machine { nics: 8, nic: 400_000_000_000, nvlink: 2_966_400_000_000, ..Machine::default() };
    Call { machine, ..Call::plain(kind, servers, bytes) }
}

/// What a member knows about a range of bytes: whose contributions are in it.
type Known = Vec<(Range<u64>, BTreeSet<u32>)>;

/// The steps that must have happened before each step: those that it waits for, and the step before it on its connection, on
/// which bytes arrive in order.
fn causes(schedule: &Schedule) -> Vec<Vec<u32>> {
    let mut last = BTreeMap::new();
    let of = |(number, step): (u32, &Step)| {
        let before = last.insert((step.from, step.to, step.channel), number);
        let after = step.after.iter().filter_map(|after| match *after {
            After::Arrived(s) | After::Sent(s) => Some(s),
            After::Entered(_) => None,
        });
        after.chain(before).collect()
    };
    (0..).zip(&schedule.steps).map(of).collect()
}

/// A run of a schedule on sets instead of bytes.
struct Play<'s> {
    schedule: &'s Schedule,
    call: &'s Call,
    /// By member.
    known: Vec<Known>,
    /// Ends of all ranges, between which a member knows the same about all bytes.
    cuts: Vec<u64>,
}

impl<'s> Play<'s> {
    fn new(call: &'s Call, schedule: &'s Schedule) -> Self {
        let n = call.ranks();
        let shares = (0..n).flat_map(|m| {
            let part = call.part(call.bytes, n.into(), m.into());
            [part.start, part.end]
        });
        let ranges = schedule.steps.iter().flat_map(Step::ranges).flat_map(|range| [range.start, range.end]);
        let mut cuts: Vec<u64> = shares.chain(ranges).chain([0, call.bytes]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let known = (0..n)
            .map(|member| {
                let own = call.part(call.bytes, n.into(), member.into());
                let has = |range: &Range<u64>| match call.kind {
                    Kind::AllGather => own.start <= range.start && range.end <= own.end,
                    Kind::Broadcast => member == 0,
                    _ => true,
                };
                let cells = cuts.windows(2).map(|cut| cut[0]..cut[1]);
                cells
                    .map(|r| (r.clone(), if has(&r) { BTreeSet::from([member]) } else { BTreeSet::new() }))
                    .collect()
            })
            .collect();
        Play { schedule, call, known, cuts }
    }

    /// Runs the steps in an order that draws from `draws`, as far as their conditions allow.
    fn run(mut self, mut draw: impl FnMut(usize) -> usize) -> Vec<Known> {
        let steps = &self.schedule.steps;
        let causes = causes(self.schedule);
        let mut needs: Vec<usize> = causes.iter().map(Vec::len).collect();
        let mut effects: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
        for (step, causes) in causes.iter().enumerate() {
            causes.iter().for_each(|&cause| effects[cause as usize].push(step));
        }
        let mut open: Vec<usize> = (0..steps.len()).filter(|&step| needs[step] == 0).collect();
        let mut done = 0;
        while !open.is_empty() {
            let next = open.swap_remove(draw(open.len()));
            self.step(&steps[next]);
            done += 1;
            for &effect in &effects[next] {
                needs[effect] -= 1;
                if needs[effect] == 0 {
                    open.push(effect);
                }
            }
        }
        assert_eq!(done, steps.len(), "the other steps wait for each other");
        self.known
    }

    fn step(&mut self, step: &Step) {
        let (from, to) = (step.from as usize, step.to as usize);
        let returned = if step.way == Way::SwitchReduce { 1 } else { usize::MAX };
        for range in step.ranges().take(returned) {
            for cell in 0..self.cuts.len() - 1 {
                let bytes = &self.known[from][cell].0;
                if bytes.start < range.start || bytes.end > range.end {
                    continue;
                }
                match step.way {
                    Way::Reduce => {
                        let mine = self.known[from][cell].1.clone();
                        let sum = &mut self.known[to][cell].1;
                        // A contribution that is added twice makes a wrong sum.
                        let twice = self.call.kind != Kind::AllReduce && !sum.is_disjoint(&mine);
                        assert!(!twice, "{step:?} adds a contribution twice");
                        sum.extend(mine);
                    }
                    Way::Copy => {
                        let copy = self.known[from][cell].1.clone();
                        assert!(!copy.is_empty(), "{step:?} copies bytes that its sender does not have");
                        self.known[to][cell].1 = copy;
                    }
                    Way::Switch | Way::SwitchReduce | Way::SwitchCopy => self.through_the_switch(to, cell),
                }
            }
        }
    }

    /// The switch gives a member the sum of all members of its server, or what any of them has.
    fn through_the_switch(&mut self, to: usize, cell: usize) {
        let mut first = 0;
        for &members in &self.call.servers {
            if (first..first + members).contains(&(to as u32)) {
                let all =
                    (first..first + members).flat_map(|m| self.known[m as usize][cell].1.clone()).collect();
                self.known[to][cell].1 = all;
            }
            first += members;
        }
    }
}

/// Checks what every member knows at the end.
fn promised(algorithm: Algorithm, call: &Call, known: &[Known]) {
    let n = call.ranks();
    let all: BTreeSet<u32> = (0..n).collect();
    for (member, known) in (0..n).zip(known) {
        let own = call.part(call.bytes, n.into(), member.into());
        for (range, has) in known {
            let owner = (0..n).find(|&m| {
                let part = call.part(call.bytes, n.into(), m.into());
                part.start <= range.start && range.end <= part.end
            });
            let mine = own.start <= range.start && range.end <= own.end;
            match call.kind {
                Kind::AllReduce => {
                    assert_eq!(has, &all, "{algorithm:?}: member {member}, bytes {range:?} of {call:?}")
                }
                Kind::ReduceScatter if mine => {
                    assert_eq!(has, &all, "{algorithm:?}: member {member}, bytes {range:?} of {call:?}")
                }
                Kind::AllGather => assert_eq!(
                    has.iter().copied().next(),
                    owner,
                    "{algorithm:?}: member {member}, bytes {range:?} of {call:?}"
                ),
                Kind::Broadcast => {
                    assert!(has.contains(&0), "{algorithm:?}: member {member}, bytes {range:?} of {call:?}")
                }
                Kind::Reduce if member == 0 => assert_eq!(has, &all),
                _ => {}
            }
        }
    }
}

/// All schedules among these servers: each kind with each algorithm that can do it.
fn all(
    servers: &[u32],
    bytes: u64,
    channels: u32,
    chunk: u64,
    grain: u64,
) -> Vec<(Algorithm, Call, Schedule)> {
    let mut found = Vec::new();
    for &algorithm in Algorithm::ALL {
        for &kind in algorithm.kinds() {
            // A range per member is what the check of all-gather and reduce-scatter understands.
            let slices = grain == 1;
            let channels = if matches!(kind, Kind::AllGather | Kind::ReduceScatter) { 1 } else { channels };
            let call =
                Call { channels, chunk, slices, grain, nvlink: true, ..call(kind, servers.to_vec(), bytes) };
            let Ok((algorithm, call)) = algorithm.resolve(&call) else { continue };
            if let Ok(schedule) = algorithm.schedule(&call) {
                found.push((algorithm, call, schedule));
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_rank_gets_what_it_is_promised_in_any_order_of_steps(
        servers in prop_oneof![
            (1..7u32).prop_map(|n| vec![n]),
            (2..9usize).prop_map(|n| vec![1; n]),
            (2..5usize, 1..5u32).prop_map(|(n, each)| vec![each; n]),
            proptest::collection::vec(1..4u32, 2..4),
        ],
        bytes in prop_oneof![Just(1u64), 2..40u64, 1_000..1_000_000u64],
        channels in 1..4u32,
        pieces in 1..4u64,
        grain in prop_oneof![Just(1u64), Just(16u64)],
        order in any::<u64>(),
    ) {
        let members: u32 = servers.iter().sum();
        prop_assume!(members > 1);
        let chunk = (bytes / u64::from(members) / pieces).max(16);
        for (algorithm, call, schedule) in all(&servers, bytes, channels, chunk, grain) {
            let least = algorithm.least_steps(&call);
            assert!(least > 0 && least <= schedule.steps.len() as u64, "{algorithm:?} {call:?}: {least}");
            let mut draws = order;
            let known = Play::new(&call, &schedule).run(|n| {
                draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (draws >> 33) as usize % n
            });
            if call.kind != Kind::AllToAll {
                promised(algorithm, &call, &known);
            }
            let causes = causes(&schedule);
            // A member leaves only after everything has arrived that is sent to it.
            for (member, leave) in (0..).zip(&schedule.leave) {
                let mut seen = vec![false; schedule.steps.len()];
                let mut open: Vec<u32> = leave.iter().filter_map(|after| match *after {
                    After::Arrived(s) | After::Sent(s) => Some(s),
                    After::Entered(_) => None,
                }).collect();
                while let Some(s) = open.pop() {
                    if !std::mem::replace(&mut seen[s as usize], true) {
                        open.extend(&causes[s as usize]);
                    }
                }
                let own = (0..).zip(&schedule.steps).filter(|(_, step)| step.to == member && !step.over_switch());
                for (number, _) in own {
                    let waited = seen[number];
                    prop_assert!(waited, "{} {:?}: member {member} leaves before step {number}", algorithm.name(), call);
                }
            }
        }
    }
}

/// Bytes that every member sends to others.
fn sent(call: &Call, schedule: &Schedule) -> Vec<u64> {
    let mut sent = vec![0; call.ranks() as usize];
    for step in schedule.steps.iter().filter(|step| !step.over_switch()) {
        sent[step.from as usize] += step.bytes();
    }
    sent
}

const SIZES: [u64; 4] = [1, 7, 1_000_000, 1_000_000_007];

#[test]
fn ranks_send_the_bytes_of_the_closed_forms() {
    for n in [2u32, 3, 4, 7, 8, 16] {
        for bytes in SIZES.into_iter().chain([u64::from(n) - 1]) {
            let of = |kind, algorithm: Algorithm| {
                let call = call(kind, vec![1; n as usize], bytes);
                let schedule = algorithm.schedule(&call).ok()?;
                let all = sent(&call, &schedule);
                let messages = schedule.steps.len() as u64;
                Some((all.iter().sum::<u64>(), all.into_iter().max()?, messages))
            };
            let (peers, share) = (u64::from(n) - 1, bytes.div_ceil(n.into()));
            let ring = of(Kind::AllReduce, Algorithm::Ring).unwrap();
            assert_eq!((ring.0, ring.2), (2 * peers * bytes, 2 * peers * u64::from(n)));
            assert!(ring.1 <= 2 * peers * share);
            for kind in [Kind::AllGather, Kind::ReduceScatter] {
                for algorithm in [Algorithm::Ring, Algorithm::Direct, Algorithm::Pat] {
                    assert_eq!(
                        of(kind, algorithm).unwrap().0,
                        peers * bytes,
                        "{algorithm:?} {kind:?} {n} {bytes}"
                    );
                }
            }
            assert_eq!(of(Kind::AllToAll, Algorithm::Direct).unwrap().0, peers * bytes);
            let chain = of(Kind::Broadcast, Algorithm::Chain).unwrap();
            assert_eq!((chain.0, chain.1), (peers * bytes, bytes));
            let tree = of(Kind::AllReduce, Algorithm::Tree).unwrap();
            assert_eq!(tree.0, 2 * peers * bytes);
            let most = match n {
                2 => bytes,
                3 => bytes + bytes.div_ceil(2),
                _ => 2 * bytes,
            };
            assert!(tree.1 <= most + 1, "a server sends {} of {bytes} bytes among {n}", tree.1);
            if n.is_power_of_two() {
                let halving = of(Kind::AllReduce, Algorithm::HalvingDoubling).unwrap();
                assert_eq!((halving.0, halving.2), (2 * peers * bytes, u64::from(n * 2 * n.ilog2())));
                let doubling = of(Kind::AllReduce, Algorithm::RecursiveDoubling).unwrap();
                assert_eq!(doubling.1, u64::from(n.ilog2()) * bytes);
            }
        }
    }
}

#[test]
fn pat_with_six_ranks_sends_1_1_and_3_blocks() {
    let call = call(Kind::AllGather, vec![1; 6], 600);
    let schedule = Algorithm::Pat.schedule(&call).unwrap();
    let of_first: Vec<u64> =
        schedule.steps.iter().filter(|step| step.from == 0).map(|step| step.bytes() / 100).collect();
    assert_eq!(of_first, [1, 1, 3]);
}

#[test]
fn channels_of_a_ring_leave_and_enter_servers_by_different_gpus() {
    let call = Call { channels: 8, ..call(Kind::AllReduce, vec![8, 8], 8_000_000) };
    let schedule = Algorithm::Ring.schedule(&call).unwrap();
    let into: BTreeSet<(u32, u32)> = schedule
        .steps
        .iter()
        .filter(|step| step.from / 8 != step.to / 8)
        .map(|step| (step.channel, step.to % 8))
        .collect();
    assert!(into.into_iter().eq((0..8).map(|channel| (channel, channel))));
}
