//! Claim: with credits on its links, a lossless class loses nothing to congestion and sends no pause. A sender never has more in the far
//! end's buffer than its credits, and stops for want of credits alone. Both engines agree.

use crate::lab::{agreed_on, lay, leaf_spine, total};
use engine::Outcome;
use engine::outcome::Ending;
use model::Time;

/// Eleven hosts send to one host, or as `traffic` has it.
fn incast(switch: &str, more: &str) -> (String, Outcome) {
    let fabric = leaf_spine(4, 2, 3, "rate = \"100Gbps\"\ndelay = \"500ns\"");
    let text = format!(
        "{fabric}[switch]\n{switch}\n{more}\n[[workload]]\nincast = {{ senders = 11, bytes = \"300kB\" }}\n"
    );
    let run = agreed_on(&lay(&text), &text);
    assert_eq!((run.ending.clone(), run.violations.len()), (Ending::Finished, 0), "{text}");
    assert_eq!((run.broke_lossless.len(), run.data.dropped_buffer), (0, 0), "{text}");
    (text, run)
}

#[test]
fn credits_protect_a_heavy_incast_without_a_pause() {
    for scheme in ["ecmp", "rps", "ar", "themis", "conweave"] {
        for congestion in ["none", "dcqcn"] {
            let parts = format!("[scheme.{scheme}]\n[nic.congestion.{congestion}]");
            let (_, run) = incast("cbfc = \"on\"", &parts);
            assert_eq!((run.control.pause, run.control.resume), (0, 0), "{scheme}");
            assert!(total(&run, |link| link.pauses) > 0, "{scheme}: some ports were out of credits");
            assert!(run.links.iter().all(|link| (link.paused.ps() > 0) == (link.pauses > 0)));
        }
    }
}

#[test]
fn queues_hold_no_more_than_the_credits_of_the_ports_before_them() {
    let credits = 32 * 1_536;
    let (text, run) = incast(&format!("cbfc.credits = \"{credits}B\""), "[nic.congestion.none]");
    let checked = lay(&text);
    let fabric = &checked.plan.fabric;
    for link in fabric.links().iter().filter(|link| !fabric.is_host(link.from)) {
        let ports = fabric.ports(link.from).len() as u64;
        let most = run.links[fabric.link(link.from, link.port).index()].max_queue;
        assert!(most <= ports * credits, "{most} B");
    }
    let (_, pool) = incast("", "[nic.congestion.none]");
    let longest = |run: &Outcome| run.links.iter().map(|link| link.max_queue).max();
    assert!(longest(&run) < longest(&pool), "a shared pool lets one port take more");
}

/// The end of one flow of `packets` packets of 1500 B over two switches at 100 Gb/s.
fn lone(packets: u64, switch: &str) -> Time {
    let text = format!(
        "[switch]\n{switch}\n[nic.congestion.none]\n[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"s\", \"t\"]\n\
         rate = \"100Gbps\"\ndelay = \"2us\"\nlinks = [[\"a\", \"s\"], [\"s\", \"t\"], [\"t\", \"b\"]]\n\
         [[workload]]\nflows = {{ list = [{{ from = \"a\", to = \"b\", bytes = \"{}B\" }}] }}\n",
        packets * 1_438
    );
    let run = agreed_on(&lay(&text), &text);
    assert_eq!(run.ending, Ending::Finished, "{text}");
    run.messages[0].received
}

#[test]
fn the_credits_by_default_keep_a_link_at_its_rate() {
    for spacing in [800, 6_400, 50_000] {
        let keys = format!("cbfc.spacing = \"{spacing}B\"");
        assert_eq!(lone(2_000, &keys), lone(2_000, "pfc = \"on\""), "{spacing} B between words");
    }
}

/// A frame takes 121.6 ns and 2 us, and leaves the next buffer at once. Its credits are back after 2 us more.
#[test]
fn with_credits_for_one_frame_each_frame_costs_a_round_trip_of_its_link() {
    let one = |packets| lone(packets, "cbfc = { credits = \"1536B\", spacing = \"0B\" }").ps();
    let (wire, delay) = (121_600, 2_000_000);
    assert_eq!(one(101) - one(1), 100 * (wire + 2 * delay));
    // With credits for four frames, four of them share a round trip.
    let four = |packets| lone(packets, "cbfc = { credits = \"6144B\", spacing = \"0B\" }").ps();
    assert_eq!(four(401) - four(1), 100 * (wire + 2 * delay));
}

/// A word tells at most once in its spacing what is free: 6 us for 75 kB at 100 Gb/s.
#[test]
fn words_that_come_rarely_slow_a_sender_with_few_credits() {
    let keys = "cbfc = { credits = \"1536B\", spacing = \"75kB\" }";
    // The first word has none before it.
    let period = (lone(102, keys) - lone(2, keys)).ps() / 100;
    assert_eq!(period, 6_000_000);
}

#[test]
fn lost_frames_and_lost_words_cost_no_credits_for_good() {
    let few = "cbfc.credits = \"4608B\"";
    let quick = "[nic]\ntimeout = { fixed = \"100us\" }\n[nic.congestion.none]\n";
    let (_, gray) = incast(few, &format!("{quick}[links]\nloss = 0.05"));
    let most = gray.links.iter().map(|link| link.lost).max();
    assert!(most > Some(3 * 3), "a link has lost far more frames than its credits hold: {most:?}");
    let flap = "[routing]\ndetection = \"never\"\n[[failure]]\nlinks = [[\"leaf*\", \"spine0\"]]\nuntil = \"3ms\"\n\
                flaps = { up = \"50us\", down = \"5us\" }";
    let (_, flaps) = incast(few, &format!("{quick}{flap}"));
    assert!(flaps.data.in_outages > 20, "{:?}", flaps.data);
    let learned = flap.replace("\"never\"", "{ local = \"1us\", per-hop = \"3us\", install = \"20us\" }");
    let (_, loops) = incast(few, &format!("{quick}{learned}"));
    assert!(loops.data.in_outages > 0, "{:?}", loops.data);
}

#[test]
fn each_virtual_channel_and_each_lossless_queue_has_credits_of_its_own() {
    let text = "switch = { cbfc = \"on\" }\nscheme.valiant = {}\nnic.congestion.none = {}\n\
                topology.dragonfly = { groups = 3, routers-per-group = 4, hosts-per-router = 2, links-per-pair = 2, rate = \"100Gbps\" }\n\
                [[workload]]\npermutation = { bytes = \"200kB\" }\n";
    let run = agreed_on(&lay(text), text);
    assert_eq!((run.ending.clone(), run.control.pause, run.broke_lossless.len()), (Ending::Finished, 0, 0));
    assert!(total(&run, |link| link.pauses) > 0);

    let queues = "cbfc = \"on\"\ndscp-map = \"sonic\"\n";
    let (_, run) = incast(queues, "[nic]\ndscp = 3\n[nic.congestion.none]\n");
    assert!(total(&run, |link| link.pauses) > 0 && run.control.pause == 0);
}

/// A switch that stops its source by pauses may do so beside credits.
#[test]
fn a_scheme_may_still_pause() {
    let (_, run) = incast("cbfc = \"on\"", "[scheme.flowcut]\ndeployment = \"full\"\n[nic.congestion.none]");
    assert!(total(&run, |link| link.pauses) > 0);
}

/// A frame that a switch drops by a `cap` has never been in its buffer, so its credits are free at once. A link has credits for three
/// frames, and some links lose more than that.
#[test]
fn frames_that_a_cap_drops_cost_no_credits_for_good() {
    for scheme in ["ecmp", "rps", "conweave"] {
        let fabric = leaf_spine(2, 1, 12, "rate = \"100Gbps\"\ndelay = \"200ns\"");
        let text = format!(
            "{fabric}[switch]\ncbfc = {{ credits = \"4608B\", spacing = \"0B\" }}\n\
             classes = [{{ kinds = [\"data\"], cap = \"6kB\" }}]\n\
             [scheme.{scheme}]\n[nic]\ntimeout = {{ fixed = \"100us\" }}\n[nic.congestion.none]\n\
             [[workload]]\nincast = {{ senders = 11, bytes = \"300kB\" }}\n"
        );
        let run = agreed_on(&lay(&text), &text);
        let drops = run.links.iter().map(|link| link.drops).max();
        assert_eq!((run.ending.clone(), run.violations.len()), (Ending::Finished, 0), "{drops:?}: {text}");
        assert!(run.messages.iter().all(|message| message.acked != Time::NEVER), "{text}");
        assert!(drops > Some(11 * 3), "{scheme}: {drops:?} drops at a port");
        assert!(run.broke_lossless.is_empty(), "the cap drops, not the credits");
        assert_eq!((run.control.pause, run.control.resume), (0, 0));
    }
}
