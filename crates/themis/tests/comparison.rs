//! Literal against sound, and what the watch is worth, on the same traffic: one QP at line rate,
//! 400 Gb/s and 1500 B (30 ns a packet), last hop 1 us each way, up to 2 us of jitter in the fabric.
//! Open loop: a rate that reacts, or other QPs on the port, would make the numbers smaller.

mod common;

use common::{Rescue, Story, Weather, tell};
use std::collections::BTreeSet;
use themis::{Mode, Settings, Width};

const PACKETS: u64 = 30_000;
/// 1 us in packets.
const LAST_HOP: u32 = 33;

fn weather(jitter: u64, fabric_per_mille: u64, last_hop_per_mille: u64) -> Weather {
    let mut draws = Draws(0x9E37_79B9_7F4A_7C15);
    let delays = (0..2 * PACKETS).map(|_| draws.below(jitter + 1) as u32).collect();
    let mut losses =
        |per_mille| (0..PACKETS).filter(|_| draws.below(1000) < per_mille).collect::<BTreeSet<u64>>();
    Weather {
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
fn run(mode: Mode, watch: bool, slots: u16, weather: &Weather) -> Story {
    let sound = Settings { age_limit: weather.age_limit(), watch, ..Settings::sound(slots, 100) };
    tell(Settings { mode, width: Width::W24, ..sound }, weather)
}

#[test]
fn where_nothing_is_lost_sound_sends_no_nack_and_literal_thousands() {
    let lossless = weather(67, 0, 0);
    println!("   N   blocked  made by literal  let through  | sound: blocked  made  let through");
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
        assert_eq!(literal.forwarded(), 0, "N {slots}: blocking itself is right in both");
        // The next packet of the late one's slot comes N packets after it, less what it was late: beyond jitter
        // and the last hop's round trip (67 packets each) the blocked NACK has always been disarmed by then.
        let falsely = 100 * literal.made / literal.blocked;
        assert!(if slots <= 64 { falsely >= 10 } else { falsely <= 5 }, "N {slots}: {falsely} %");
        assert!(slots < 256 || literal.made == 0);
    }
}

#[test]
fn eight_bits_are_enough_for_sound_while_nothing_is_lost() {
    let lossless = weather(20, 0, 0);
    let narrow = Settings { width: Width::W8, age_limit: lossless.age_limit(), ..Settings::sound(16, 100) };
    let story = tell(narrow, &lossless);
    assert!(story.blocked > 1000);
    assert_eq!(story.made + story.forwarded(), 0, "{story:?}");
}

#[test]
fn losses_in_the_fabric_are_found_by_both() {
    let lossy = weather(67, 1, 0);
    println!(
        "   N  lost | literal: let through  made  spurious  timeouts | sound: let through  made  spurious  timeouts"
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
        assert_eq!(sound.forwarded() + sound.made, sound.lost, "N {slots}: one NACK for each loss");
        assert!(literal.spurious() > 100, "N {slots}");
    }
}

#[test]
fn losses_on_the_last_hop_need_the_watch() {
    let lossy = weather(67, 0, 1);
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
fn short_messages_lose_their_tails_to_the_timeout() {
    let mut draws = Draws(88_172_645_463_325_252);
    println!("packets  messages with a loss  timeouts: tail  repeat  missed");
    for packets in [16, 64, 256] {
        let (mut hit, mut rescues) = (0, [0; 3]);
        for _ in 0..400 {
            let mut losses = || (0..packets).filter(|_| draws.below(100) == 0).collect();
            let (fabric_loss, last_hop_loss) = (losses(), losses());
            let delays = (0..2 * packets).map(|_| draws.below(20) as u32).collect();
            let weather = Weather { packets, fabric_loss, last_hop_loss, delays, ..weather(0, 0, 0) };
            let story = run(Mode::Sound, true, 16, &weather);
            hit += u32::from(story.lost > 0);
            for (count, rescue) in rescues.iter_mut().zip([Rescue::Tail, Rescue::Repeat, Rescue::Missed]) {
                *count += story.timeouts.get(&rescue).unwrap_or(&0);
            }
            assert_eq!(story.spurious(), 0);
        }
        let [tail, repeat, missed] = rescues;
        println!("{packets:7} {hit:21} {tail:15} {repeat:7} {missed:7}");
        assert!(tail > 0, "a loss near the end has no proof behind it");
        assert_eq!(missed, 0);
    }
}

fn timeouts(story: &Story) -> u64 {
    story.timeouts.values().sum()
}

/// Numbers that look random and are the same every time (xorshift64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}
