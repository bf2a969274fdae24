//! The literal and the sound mode, with and without the watch, on the same traffic: one QP at line rate, 400 Gb/s and
//! 1500 B (30 ns per packet), last hop 1 us each way, up to 2 us of jitter in the fabric. The sender does not react to
//! congestion. A reacting sender, or other QPs on the port, would make all numbers smaller.

use crate::common::{Conditions, Outcome, Rescue, simulate};
use std::collections::BTreeSet;
use themis::{Mode, Settings, Width};

const PACKETS: u64 = 30_000;
/// Delay of the last hop, 1 us, in packets.
const LAST_HOP: u32 = 33;

fn conditions(jitter: u64, fabric_per_mille: u64, last_hop_per_mille: u64) -> Conditions {
    let mut draws = Draws(0x9E37_79B9_7F4A_7C15);
    let delays = (0..2 * PACKETS).map(|_| draws.below(jitter + 1) as u32).collect();
    let mut losses =
        |per_mille| (0..PACKETS).filter(|_| draws.below(1000) < per_mille).collect::<BTreeSet<u64>>();
    Conditions {
        first: 1 << 20,
        packets: PACKETS,
        delays,
        fabric_loss: losses(fabric_per_mille),
        last_hop_loss: losses(last_hop_per_mille),
        last_hop: LAST_HOP,
        link_busy: vec![],
        ack_every: 1,
        port_busy: vec![],
    }
}

/// The paper's ring of 100, whole PSNs in both modes, so that only the rules differ.
fn run(mode: Mode, watch: bool, slots: u16, conditions: &Conditions) -> Outcome {
    let sound = Settings { age_limit: conditions.age_limit(), watch, ..Settings::sound(slots, 100) };
    simulate(Settings { mode, width: Width::W24, ..sound }, conditions)
}

#[test]
fn without_losses_sound_sends_no_nack_and_literal_sends_thousands() {
    let lossless = conditions(67, 0, 0);
    println!("   N   blocked  sent by literal    forwarded  | sound: blocked  sent    forwarded");
    for slots in [2, 4, 8, 16, 32, 64, 128, 256] {
        let literal = run(Mode::Literal, false, slots, &lossless);
        let sound = run(Mode::Sound, true, slots, &lossless);
        println!(
            "{slots:4} {:9} {:16} {:12}  | {:14} {:5} {:12}",
            literal.blocked,
            literal.made,
            literal.forwarded(),
            sound.blocked,
            sound.made,
            sound.forwarded()
        );
        assert_eq!((sound.made, sound.forwarded()), (0, 0), "N {slots}");
        assert_eq!(literal.forwarded(), 0, "N {slots}: both modes block correctly");
        // The next packet of a late packet's slot comes N packets after it, less its lateness. If N exceeds jitter and the
        // last hop's round trip (67 packets each), the late packet has always disarmed the flow by then.
        let falsely = 100 * literal.made / literal.blocked;
        assert!(if slots <= 64 { falsely >= 10 } else { falsely <= 5 }, "N {slots}: {falsely} %");
        assert!(slots < 256 || literal.made == 0);
    }
}

#[test]
fn without_losses_eight_bits_are_enough_for_sound() {
    let lossless = conditions(20, 0, 0);
    let narrow = Settings { width: Width::W8, age_limit: lossless.age_limit(), ..Settings::sound(16, 100) };
    let outcome = simulate(narrow, &lossless);
    assert!(outcome.blocked > 1000);
    assert_eq!(outcome.made + outcome.forwarded(), 0, "{outcome:?}");
}

#[test]
fn both_modes_find_losses_in_the_fabric() {
    let lossy = conditions(67, 1, 0);
    println!(
        "   N  lost | literal:   forwarded  sent  spurious  timeouts | sound:   forwarded  sent  spurious  timeouts"
    );
    for slots in [4, 16, 64] {
        let literal = run(Mode::Literal, false, slots, &lossy);
        let sound = run(Mode::Sound, true, slots, &lossy);
        println!(
            "{slots:4} {:5} | {:20} {:5} {:9} {:9} | {:18} {:5} {:9} {:9}",
            sound.lost,
            literal.forwarded(),
            literal.made,
            literal.spurious(),
            timeouts(&literal),
            sound.forwarded(),
            sound.made,
            sound.spurious(),
            timeouts(&sound)
        );
        assert_eq!(sound.spurious(), 0, "N {slots}");
        assert_eq!(timeouts(&sound), 0, "N {slots}: {sound:?}");
        assert_eq!(sound.forwarded() + sound.made, sound.lost, "N {slots}: one NACK per loss");
        assert!(literal.spurious() > 100, "N {slots}");
    }
}

#[test]
fn the_watch_finds_losses_on_the_last_hop() {
    let lossy = conditions(67, 0, 1);
    println!("   N  lost  timeouts: literal  sound  sound with watch");
    for slots in [4, 16, 64] {
        let literal = run(Mode::Literal, false, slots, &lossy);
        let unwatched = run(Mode::Sound, false, slots, &lossy);
        let watched = run(Mode::Sound, true, slots, &lossy);
        println!(
            "{slots:4} {:5} {:18} {:6} {:17}",
            watched.lost,
            timeouts(&literal),
            timeouts(&unwatched),
            timeouts(&watched)
        );
        assert_eq!(watched.spurious() + unwatched.spurious(), 0, "N {slots}");
        assert_eq!(watched.timeouts.get(&Rescue::Missed), None, "N {slots}");
        assert!(timeouts(&watched) < timeouts(&unwatched), "N {slots}");
    }
}

#[test]
fn only_the_timeout_repairs_losses_at_the_end_of_short_messages() {
    let mut draws = Draws(88_172_645_463_325_252);
    println!("packets  messages with a loss  timeouts: tail  repeat  missed");
    for packets in [16, 64, 256] {
        let (mut hit, mut rescues) = (0, [0; 3]);
        for _ in 0..400 {
            let mut losses = || (0..packets).filter(|_| draws.below(100) == 0).collect();
            let (fabric_loss, last_hop_loss) = (losses(), losses());
            let delays = (0..2 * packets).map(|_| draws.below(20) as u32).collect();
            let conditions =
                Conditions { packets, fabric_loss, last_hop_loss, delays, ..conditions(0, 0, 0) };
            let outcome = run(Mode::Sound, true, 16, &conditions);
            hit += u32::from(outcome.lost > 0);
            for (count, rescue) in rescues.iter_mut().zip([Rescue::Tail, Rescue::Repeat, Rescue::Missed]) {
                *count += outcome.timeouts.get(&rescue).unwrap_or(&0);
            }
            assert_eq!(outcome.spurious(), 0);
        }
        let [tail, repeat, missed] = rescues;
        println!("{packets:7} {hit:21} {tail:15} {repeat:7} {missed:7}");
        assert!(tail > 0, "no later packet proves a loss near the end");
        assert_eq!(missed, 0);
    }
}

fn timeouts(outcome: &Outcome) -> u64 {
    outcome.timeouts.values().sum()
}

/// Reproducible pseudo-random numbers (xorshift64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}
