//! Claim: noise on a link loses frames of all kinds in bursts or with their codewords, equally in every engine, and each loss has its
//! cause in the books.

use crate::lab::{agreed_on, lay, leaf_spine};
use engine::Outcome;
use engine::outcome::{Data, Ending, LossCause, Losses};
use model::Time;

fn flow(keys: &str, bytes: &str) -> Outcome {
    let text = format!(
        "{}[nic]\ntimeout = {{ fixed = \"100us\" }}\n[nic.congestion.none]\n[nic.transport.nic-sr]\n{keys}\n\
         [[workload]]\nflows = {{ list = [{{ from = \"host0\", to = \"host1\", bytes = \"{bytes}\" }}] }}\n",
        leaf_spine(2, 2, 1, "rate = \"400Gbps\"\ndelay = \"500ns\"")
    );
    let run = agreed_on(&lay(&text), &text);
    assert_eq!(run.ending, Ending::Finished, "{text}");
    run
}

/// The losses by cause: by chance, with a codeword, in bursts, in outages.
fn causes(data: &Data) -> [u64; 4] {
    [data.by_chance, data.by_codeword, data.in_bursts, data.in_outages]
}

/// 10,000 packets of 1520 B cross four links. A packet touches 1520 / 1280 + 1 pairs of codewords on average.
#[test]
fn a_codeword_that_fec_cannot_repair_takes_frames_of_all_kinds_with_it() {
    let run = flow("[links]\ncodeword-loss = 1e-3", "14.38MB");
    let expected = run.data.sent as f64 * 4.0 * 1e-3 * (1520.0 / 1280.0 + 1.0);
    let lost = run.data.by_codeword as f64;
    assert!((lost / expected - 1.0).abs() < 0.35, "{lost} {expected}");
    assert_eq!(causes(&run.data), [0, run.data.dropped_link, 0, 0]);
    assert!(run.control.dropped > 0, "ACKs touch pairs, too");
}

/// A link that is bad for ten packets on average, and loses half of them then.
#[test]
fn a_burst_hits_one_link_and_leaves_the_others_alone() {
    let gilbert = "gilbert = { good-to-bad = 2e-3, bad-to-good = 0.1, loss-in-bad = 0.5 }";
    let run = flow(&format!("[links]\n{gilbert}\nnoisy = [[\"host0\", \"leaf0\"]]"), "14.38MB");
    let expected = run.data.sent as f64 * 0.5 * 2e-3 / (2e-3 + 0.1);
    let lost = run.data.in_bursts as f64;
    assert!((lost / expected - 1.0).abs() < 0.4, "{lost} {expected}");
    assert_eq!(causes(&run.data), [0, 0, run.data.dropped_link, 0]);
    let lossy: Vec<_> = run.links.iter().filter(|link| link.lost > 0).collect();
    assert!(lossy.len() <= 2, "both directions of one link: {}", lossy.len());
    assert!(lossy.iter().all(|link| link.lost_by(LossCause::Burst) == link.lost), "{lossy:?}");
}

/// All causes at once: the books tell them apart, and they add up.
#[test]
fn every_cause_of_loss_has_its_own_count() {
    let run = flow(
        "[links]\nloss = 1e-3\ncodeword-loss = 5e-4\ngilbert = \"dirty\"\nlose-replies = true\n\
         [routing]\ndetection = \"20us\"\n[[failure]]\nlinks = [[\"host0\", \"leaf0\"]]\nuntil = \"300us\"\n\
         flaps = { up = \"100us\", down = \"10us\" }",
        "14.38MB",
    );
    let all = causes(&run.data);
    assert!(all[0] > 0 && all[1] > 0 && all[3] > 0, "{all:?}");
    assert_eq!(all.iter().sum::<u64>(), run.data.dropped_link);
    // The links tell them apart, too, for packets of all kinds.
    let on_links = |cause| run.links.iter().map(|link| link.lost_by(cause)).sum::<u64>();
    let by_link = LossCause::ALL.map(on_links);
    assert_eq!(by_link.iter().sum::<u64>(), run.data.dropped_link + run.control.dropped);
    let of_data = [all[0], all[1], all[2], all[3] - run.data.black_hole, run.data.black_hole];
    assert!(of_data.iter().zip(by_link).all(|(data, all)| *data <= all), "{of_data:?} {by_link:?}");
}

/// A link is gray from the start on and down for a while. Each entry has the packets that it cost, with the first and the last one.
#[test]
fn a_gray_link_and_an_outage_each_answer_for_their_own_losses() {
    let text = format!(
        "{}[nic]\ntimeout = {{ fixed = \"100us\" }}\n[nic.congestion.none]\n[nic.transport.nic-sr]\n\
         [[failure]]\nlinks = [[\"host0\", \"leaf0\"]]\nloss = 0.02\none-way = true\nuntil = \"250us\"\n\
         [[failure]]\nlinks = [[\"host0\", \"leaf0\"]]\nat = \"50us\"\nuntil = \"52us\"\none-way = true\n\
         [routing]\ndetection = \"never\"\n\
         [[workload]]\nflows = {{ list = [{{ from = \"host0\", to = \"host1\", bytes = \"14.38MB\" }}] }}\n",
        leaf_spine(2, 2, 1, "rate = \"400Gbps\"\ndelay = \"500ns\"")
    );
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    let [gray, outage] = run.losses[..] else { panic!("{:?}", run.losses) };
    let entry = |losses: &Losses| checked.plan.failures.entry_of(losses.link, losses.gray, losses.since);
    assert_eq!([entry(&outage), entry(&gray)], [1, 0]);
    assert_eq!([outage.packets, gray.packets], [run.data.in_outages, run.data.by_chance]);
    let us = Time::from_us;
    // What was on its way for 500 ns when the link went down is lost, too.
    assert!(outage.first >= us(49) && outage.last < us(52), "{outage:?}");
    assert!(gray.first < us(49) && gray.last > us(52) && gray.last < us(250), "{gray:?}");
}

/// A cable of 5 m at 400 Gb/s loses one frame in a hundred. A frame of 1520 B takes 30.4 ns, and so does the next one, by which the
/// receiver sees the gap; then a control word of 8 B asks for a replay. No packet is sent again from end to end.
#[test]
fn a_link_with_retry_pays_one_round_trip_of_wire_for_each_lost_frame() {
    let story = |llr: &str| {
        let text = format!(
            "[topology.links]\nhosts = [\"a\", \"b\"]\nlinks = [[\"a\", \"b\"]]\nrate = \"400Gbps\"\ndelay = \"25ns\"\n\
             [nic.congestion.none]\n[links]\nloss = 0.01\nllr = {llr}\n[[workload]]\n\
             flows = {{ list = [{{ from = \"a\", to = \"b\", bytes = \"14.38MB\" }}] }}\n"
        );
        agreed_on(&lay(&text), &text)
    };
    let run = story("{ replays = 9 }");
    let replays = run.links[0].replays;
    assert!((60..140).contains(&replays), "{replays} of 10,000");
    let round_trip = 30_400 + 30_400 + 160 + 2 * 25_000;
    assert_eq!(run.messages[0].received.ps(), 10_000 * 30_400 + 25_000 + replays * round_trip);
    assert_eq!((run.data.sent, run.data.retransmitted, run.data.dropped_link), (10_000, 0, 0));
    assert_eq!((run.control.nack, run.control.timeout), (0, 0));
    let run = story("\"off\"");
    assert!(run.data.retransmitted > 0 && run.links[0].replays == 0);
    // A frame that is lost once more than it may be sent again is lost.
    let run = story("{ replays = 0 }");
    assert!(run.data.dropped_link > 0 && run.ending == Ending::Finished);
}

/// A noisy cable repeats ACKs for longer than its headroom lasts. Pauses are not among the frames that it repeats, so they come in time.
#[test]
fn a_pause_does_not_wait_for_replays() {
    for seed in [2, 4] {
        let text = format!(
            "seed = {seed}\ncompat = \"ns3\"\n[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"s\"]\n\
             links = [[\"a\", \"s\"], [\"b\", \"s\"]]\n[links]\nloss = 0.1\nlose-replies = true\nllr = {{ replays = 9 }}\n\
             [switch]\nbuffer = \"100kB\"\n[[workload]]\nfan-in = {{ receivers = 1, senders = 1 }}\n"
        );
        let run = agreed_on(&lay(&text), &text);
        let replays: u64 = run.links.iter().map(|link| link.replays).sum();
        assert!(replays > 0 && run.control.pause > 0, "{replays} replays, {} pauses", run.control.pause);
        assert_eq!((run.data.dropped_buffer, run.broke_lossless.len()), (0, 0), "seed {seed}");
    }
}
