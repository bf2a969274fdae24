//! Every checker with a capture that passes, and one per rule that fails.
//!
//! A scene is a short story of frames between two hosts, told as a switch sees them: what goes in and what leaves, a microsecond
//! apart. The frames are real: their ICRCs are right, unless a story says otherwise.

use checkers::{Capture, Expect, Frame, Log, Report, Settings, SwitchRule, Way, check};
use std::net::Ipv4Addr;
use wire::aeth::{Nak, Syndrome};
use wire::bth::{Opcode, Qpn};
use wire::ecn::{Ecn, TrafficClass};
use wire::ethernet::Address;
use wire::roce::{Extension, Ip, Repr};
use wire::{Psn, aeth, bth, cnp, ipv4, reth};

/// Requester and responder by number and port: host 1 sends to host 0, as in the lab.
const REQUESTER: u32 = 1;
const RESPONDER: u32 = 0;
const REQUESTER_QP: u32 = 18;
const RESPONDER_QP: u32 = 17;

#[derive(Default)]
struct Scene {
    capture: Capture,
    now: u64,
    ident: u16,
    source_port: u16,
}

#[derive(Clone, Copy)]
enum What {
    Data(u32),
    Marked(u32),
    Read(u32, u32),
    Response(u32),
    Ack(u32),
    Nack(u32),
    Cnp,
}
use What::*;

impl Scene {
    fn new() -> Self {
        let ports = vec!["h1".to_owned(), "h2".to_owned()];
        let capture = Capture { ports, frames: Vec::new() };
        Scene { capture, now: 0, ident: 0, source_port: 0xC121 }
    }

    /// A frame from the requester, or from the responder.
    fn bytes(&mut self, what: What) -> Vec<u8> {
        self.ident += 1;
        let (opcode, psn, extension) = match what {
            Data(psn) | Marked(psn) => (Opcode::SendMiddle, psn, Extension::None),
            Read(psn, length) => {
                (Opcode::ReadRequest, psn, Extension::Reth(reth::Repr { address: 0, key: 1, length }))
            }
            Response(psn) => (Opcode::ReadResponseMiddle, psn, Extension::None),
            Ack(psn) | Nack(psn) => {
                let syndrome =
                    if matches!(what, Ack(_)) { Syndrome::ACK } else { Syndrome::Nak(Nak::PsnSequence) };
                (Opcode::Acknowledge, psn, Extension::Aeth(aeth::Repr { syndrome, msn: 0 }))
            }
            Cnp => (Opcode::Cnp, 0, Extension::Cnp),
        };
        let upwards = matches!(what, Response(_) | Ack(_) | Nack(_) | Cnp);
        let (from, to, qp) = if upwards { (0, 1, REQUESTER_QP) } else { (1, 0, RESPONDER_QP) };
        let address = |host: u8| Address([2, 0, 0, 0, 0, host]);
        let ecn = if matches!(what, Marked(_)) { Ecn::Ce } else { Ecn::Ect0 };
        let ip = ipv4::Repr {
            source: Ipv4Addr::new(10, 0, 0, from + 1),
            destination: Ipv4Addr::new(10, 0, 0, to + 1),
            traffic_class: TrafficClass::new(0, ecn),
            identification: self.ident,
            dont_fragment: true,
            time_to_live: 64,
            // The frame fills in protocol and length.
            protocol: 0,
            payload_len: 0,
        };
        let bth = match what {
            Cnp => cnp::Repr::bth(Qpn::new(qp)),
            _ => bth::Repr::new(opcode, Qpn::new(qp), Psn::new(psn)),
        };
        let (destination, source) = (address(to), address(from));
        let repr =
            Repr { destination, source, ip: Ip::V4(ip), source_port: self.source_port, bth, extension };
        let payload = match what {
            Data(_) | Marked(_) => vec![psn as u8; 64],
            Response(_) => vec![7; 256],
            _ => Vec::new(),
        };
        let mut bytes = vec![0; repr.frame_len(payload.len())];
        repr.emit(&payload, &mut bytes).unwrap();
        bytes
    }

    fn add(&mut self, port: u32, way: Way, bytes: Vec<u8>) -> &mut Self {
        self.now += 1_000;
        let number = Some(self.capture.frames.len() as u64);
        self.capture.frames.push(Frame { at: self.now, port, way, number, bytes });
        self
    }

    /// A frame goes in, and leaves at once.
    fn cross(&mut self, what: What) -> &mut Self {
        let bytes = self.bytes(what);
        let (from, to) = ends(what);
        self.add(from, Way::In, bytes.clone()).add(to, Way::Out, bytes)
    }

    /// A frame goes in; it leaves later, or never.
    fn enter(&mut self, what: What) -> Vec<u8> {
        let bytes = self.bytes(what);
        self.add(ends(what).0, Way::In, bytes.clone());
        bytes
    }

    /// A frame leaves.
    fn leave(&mut self, what: What, bytes: Vec<u8>) -> &mut Self {
        self.add(ends(what).1, Way::Out, bytes)
    }

    /// Data from one PSN to another crosses.
    fn run(&mut self, from: u32, to: u32) -> &mut Self {
        for psn in from..=to {
            self.cross(Data(psn));
        }
        self
    }

    fn wait(&mut self, nanos: u64) -> &mut Self {
        self.now += nanos;
        self
    }

    fn report(&self, settings: &Settings) -> Report {
        check(&self.capture, settings).unwrap()
    }

    /// The rules that the scene breaks.
    fn rules(&self, settings: &Settings) -> Vec<&'static str> {
        let report = self.report(settings);
        assert_eq!(report.holds(), report.rules().is_empty());
        report.rules()
    }
}

fn ends(what: What) -> (u32, u32) {
    match what {
        Data(_) | Marked(_) | Read(..) => (REQUESTER, RESPONDER),
        _ => (RESPONDER, REQUESTER),
    }
}

fn expecting(expect: Expect) -> Settings {
    Settings { expect: Some(expect), ..Settings::default() }
}

fn scene(tell: impl FnOnce(&mut Scene)) -> Scene {
    let mut scene = Scene::new();
    tell(&mut scene);
    scene
}

const NONE: [&str; 0] = [];

// 1. Integrity.

#[test]
fn a_whole_capture_passes() {
    let scene = scene(|s| {
        s.run(100, 110).cross(Ack(110));
    });
    let report = scene.report(&Settings { log: Some(Log::default()), ..Settings::default() });
    assert_eq!(report.rules(), NONE, "{report}");
    assert_eq!(report.verdicts.len(), 1);
}

#[test]
fn a_missing_number_is_a_gap() {
    let mut scene = scene(|s| {
        s.run(100, 110);
    });
    scene.capture.frames.drain(4..6);
    assert_eq!(scene.rules(&Settings::default()), ["sequence-gap"]);
    // At the front, older frames have gone; that is no gap.
    scene.capture.frames.drain(..4);
    assert_eq!(scene.rules(&Settings::default()), NONE);
}

#[test]
fn times_of_a_port_that_run_backwards_are_a_breach() {
    let mut scene = scene(|s| {
        s.run(100, 102);
    });
    scene.capture.frames[4].at = 1;
    assert_eq!(scene.rules(&Settings::default()), ["time-backwards"]);
}

#[test]
fn a_frame_that_stays_inside_needs_an_entry_in_the_log() {
    let scene = scene(|s| {
        s.run(100, 102);
        s.enter(Data(103));
        s.run(104, 105);
    });
    let with = |text: &str| Settings { log: Some(Log::parse(text)), ..Settings::default() };
    // Without a log, a path may have lost it.
    assert_eq!(scene.rules(&Settings::default()), NONE);
    assert_eq!(scene.rules(&with("")), ["frame-lost"]);
    assert_eq!(scene.rules(&with("0.1 lost path=2 why=random qp=0x000011 opcode=0x01 psn=103")), NONE);
    assert_eq!(
        scene.rules(&with("0.1 lost path=2 why=random qp=0x000011 opcode=0x01 psn=104")),
        ["frame-lost"]
    );
    assert_eq!(scene.rules(&with("0.1 injected drop qp=0x000011 opcode=0x01 psn=103")), NONE);
    assert_eq!(scene.rules(&with("0.1 dropped port=1 why=full")), NONE);
}

/// Themis to the letter blocks a NACK and sends one of its own at once. The latter may leave first.
#[test]
fn a_nack_of_the_switch_may_leave_before_the_ack_that_was_a_nack() {
    let acks = |count| {
        scene(|s| {
            s.run(100, 101);
            let nack = s.enter(Nack(102));
            s.leave(Nack(102), nack);
            for _ in 0..count {
                let ack = s.bytes(Ack(101));
                s.leave(Ack(101), ack);
            }
        })
    };
    let report = acks(1).report(&Settings::default());
    assert_eq!(report.rules(), NONE, "{report}");
    assert!(report.to_string().contains("came out as ACKs 1, NACKs sent by the switch 1"), "{report}");
    assert_eq!(acks(2).rules(&Settings::default()), ["frame-made"]);
}

/// The simulator captures one port: what its host sends, and what it gets.
#[test]
fn a_capture_of_one_port_accuses_no_switch() {
    let scene = scene(|s| {
        for psn in 100..103 {
            let data = s.bytes(Data(psn));
            s.add(REQUESTER, Way::In, data);
            let ack = s.bytes(Ack(psn));
            s.add(REQUESTER, Way::Out, ack);
        }
    });
    let report = scene.report(&Settings::default());
    assert_eq!(report.rules(), NONE, "{report}");
    assert!(report.to_string().contains("sides those of one port"), "{report}");
}

#[test]
fn a_frame_that_nobody_sent_is_made() {
    let scene = scene(|s| {
        s.run(100, 102);
        let bytes = s.bytes(Data(103));
        s.leave(Data(103), bytes);
    });
    assert_eq!(scene.rules(&Settings::default()), ["frame-made"]);
    let log = Some(Log::parse("0.1 injected duplicate qp=0x000011 opcode=0x01 psn=103"));
    assert_eq!(scene.rules(&Settings { log, ..Settings::default() }), NONE);
}

// 2. ICRC.

#[test]
fn a_host_that_sends_wrong_checksums_is_named() {
    let scene = scene(|s| {
        s.run(100, 101);
        let mut bytes = s.bytes(Data(102));
        bytes[60] ^= 1;
        s.add(REQUESTER, Way::In, bytes);
    });
    assert_eq!(scene.rules(&Settings::default()), ["icrc-wrong"]);
}

#[test]
fn a_switch_that_breaks_a_checksum_is_named() {
    let scene = scene(|s| {
        s.run(100, 101);
        let mut bytes = s.enter(Data(102));
        let last = bytes.len() - 6;
        bytes[last] ^= 1;
        s.leave(Data(102), bytes);
    });
    assert_eq!(scene.rules(&Settings::default()), ["icrc-broken"]);
    let log = Some(Log::parse("0.1 injected corrupt qp=0x000011 opcode=0x01 psn=102"));
    assert_eq!(scene.rules(&Settings { log, ..Settings::default() }), NONE);
}

#[test]
fn a_corrupted_packet_must_count_as_lost() {
    let told = |ack| {
        scene(|s| {
            s.run(100, 101);
            let mut bytes = s.enter(Data(102));
            let last = bytes.len() - 6;
            bytes[last] ^= 1;
            s.leave(Data(102), bytes).run(103, 103).cross(ack);
        })
    };
    let log = || Some(Log::parse("0.1 injected corrupt qp=0x000011 opcode=0x01 psn=102"));
    assert_eq!(told(Nack(102)).rules(&Settings { log: log(), ..Settings::default() }), NONE);
    assert_eq!(told(Ack(103)).rules(&Settings { log: log(), ..Settings::default() }), ["corrupt-accepted"]);
}

// 3. Go-back-N.

/// PSN 102 is lost; `rest` tells what follows once 103 has arrived.
fn lost(rest: impl FnOnce(&mut Scene)) -> Scene {
    scene(|s| {
        s.run(100, 101);
        s.enter(Data(102));
        s.run(103, 103);
        rest(s);
    })
}

#[test]
fn a_nic_that_goes_back_passes() {
    let scene = lost(|s| {
        s.cross(Nack(102)).run(104, 105).run(102, 110).cross(Ack(110));
    });
    let report = scene.report(&expecting(Expect::GoBackN));
    assert_eq!(report.rules(), NONE, "{report}");
    assert!(report.to_string().contains("went back 1"), "{report}");
}

#[test]
fn going_back_elsewhere_is_a_breach() {
    let scene = lost(|s| {
        s.cross(Nack(102)).run(101, 110);
    });
    assert_eq!(scene.rules(&expecting(Expect::GoBackN)), ["back-elsewhere"]);
}

#[test]
fn a_nack_that_nobody_heeds_is_a_breach() {
    let scene = lost(|s| {
        s.cross(Nack(102)).run(104, 190);
    });
    assert_eq!(scene.rules(&expecting(Expect::GoBackN)), ["nack-ignored"]);
    assert_eq!(scene.rules(&expecting(Expect::NicSr)), ["nack-ignored"]);
}

#[test]
fn a_psn_that_is_left_out_is_a_breach() {
    let scene = scene(|s| {
        s.run(100, 101).run(103, 104);
    });
    assert_eq!(scene.rules(&expecting(Expect::GoBackN)), ["psn-skipped"]);
    assert_eq!(scene.rules(&expecting(Expect::NicSr)), ["psn-skipped"]);
}

#[test]
fn a_nack_must_name_the_missing_packet() {
    let scene = lost(|s| {
        s.cross(Nack(103)).run(103, 103);
    });
    assert!(scene.rules(&expecting(Expect::GoBackN)).contains(&"nack-names-other"));
    assert!(scene.rules(&expecting(Expect::NicSr)).contains(&"nack-names-other"));
}

#[test]
fn a_second_nack_for_one_packet_is_a_breach() {
    let scene = lost(|s| {
        s.cross(Nack(102)).run(104, 104).cross(Nack(102)).run(102, 105);
    });
    assert_eq!(scene.rules(&expecting(Expect::GoBackN)), ["nack-repeated"]);
}

#[test]
fn acks_go_forward() {
    let scene = scene(|s| {
        s.run(100, 105).cross(Ack(105)).cross(Ack(103));
    });
    assert_eq!(scene.rules(&expecting(Expect::GoBackN)), ["ack-backwards"]);
    assert_eq!(scene.rules(&expecting(Expect::NicSr)), ["ack-backwards"]);
}

#[test]
fn a_receiver_that_keeps_packets_does_not_go_back() {
    // 102 comes again alone, and an ACK covers 103, which had come before it.
    let scene = lost(|s| {
        s.cross(Nack(102)).run(102, 102).cross(Ack(103)).run(104, 110);
    });
    assert_eq!(scene.rules(&expecting(Expect::GoBackN)), ["ack-passes-hole", "psn-skipped"]);
    assert_eq!(scene.rules(&expecting(Expect::NicSr)), NONE);
}

#[test]
fn an_ack_past_a_hole_is_a_breach_for_all() {
    let scene = lost(|s| {
        s.cross(Ack(103)).run(104, 104);
    });
    assert_eq!(scene.rules(&expecting(Expect::GoBackN)), ["ack-passes-hole"]);
    assert_eq!(scene.rules(&expecting(Expect::NicSr)), ["ack-passes-hole"]);
}

// 4. Reads.

#[test]
fn reads_that_ask_again_pass() {
    let scene = scene(|s| {
        s.cross(Read(100, 1024)).cross(Response(100));
        s.enter(Response(101));
        s.cross(Response(102)).cross(Read(101, 768));
        for psn in 101..=103 {
            s.cross(Response(psn));
        }
        s.cross(Read(104, 512)).cross(Response(104)).cross(Response(105));
    });
    let report = scene.report(&expecting(Expect::GoBackN));
    assert_eq!(report.rules(), NONE, "{report}");
    assert!(report.to_string().contains("reads repeated after a gap 1"), "{report}");
}

#[test]
fn a_gap_in_responses_needs_a_new_read() {
    let scene = scene(|s| {
        s.cross(Read(100, 1024)).cross(Response(100));
        s.enter(Response(101));
        s.cross(Response(102)).cross(Response(103)).cross(Read(104, 256)).cross(Response(104));
    });
    assert_eq!(scene.rules(&expecting(Expect::GoBackN)), ["read-gap-unanswered"]);
}

#[test]
fn a_new_read_starts_at_the_missing_response() {
    let scene = scene(|s| {
        s.cross(Read(100, 1024)).cross(Response(100));
        s.enter(Response(101));
        s.cross(Response(102)).cross(Read(102, 512)).cross(Response(102)).cross(Response(103));
    });
    assert_eq!(scene.rules(&expecting(Expect::GoBackN)), ["read-elsewhere"]);
}

// 5. NIC-SR.

#[test]
fn a_nic_that_repeats_single_packets_passes() {
    let scene = lost(|s| {
        s.run(104, 106).cross(Nack(102)).run(107, 108).run(102, 102).cross(Ack(108)).run(109, 110);
    });
    let report = scene.report(&expecting(Expect::NicSr));
    assert_eq!(report.rules(), NONE, "{report}");
    assert!(report.to_string().contains("sent again after NACKs 1"), "{report}");
}

#[test]
fn an_ack_may_overtake_a_retransmission() {
    // 102 was only late. Its NACK has left before it arrived, and the ACK comes before the sender repeats it.
    let late = |rest: u32| {
        scene(|s| {
            s.run(100, 101);
            let data = s.enter(Data(102));
            s.run(103, 103).cross(Nack(102)).leave(Data(102), data).cross(Ack(103));
            s.run(104, 103 + rest).run(102, 102);
        })
    };
    assert_eq!(late(6).rules(&expecting(Expect::NicSr)), NONE);
    let few = Settings { under_way: 5, ..expecting(Expect::NicSr) };
    // So late, nothing but a timeout explains it.
    assert!(late(6).report(&few).to_string().contains("timeouts 1"));
    let text = late(6).report(&expecting(Expect::NicSr)).to_string();
    assert!(!text.contains("timeouts") && text.contains("sent again after NACKs 1"), "{text}");
}

#[test]
fn a_nic_that_repeats_another_packet_is_a_breach() {
    let scene = lost(|s| {
        s.cross(Nack(102)).run(103, 103).run(102, 102);
    });
    assert_eq!(scene.rules(&expecting(Expect::NicSr)), ["resent-other"]);
}

#[test]
fn a_packet_gets_one_nack() {
    let scene = lost(|s| {
        s.cross(Nack(102)).run(104, 104).cross(Nack(102)).run(102, 102).cross(Ack(104));
    });
    assert_eq!(scene.rules(&expecting(Expect::NicSr)), ["nack-repeated"]);
}

#[test]
fn what_a_timeout_repeats_is_no_breach() {
    let scene = lost(|s| {
        s.wait(5_000_000).run(102, 103).cross(Ack(103));
    });
    let report = scene.report(&expecting(Expect::NicSr));
    assert_eq!(report.rules(), NONE, "{report}");
    assert!(report.to_string().contains("timeouts 1"), "{report}");
}

// 6. CNPs.

#[test]
fn cnps_that_follow_marks_pass() {
    let scene = scene(|s| {
        s.run(100, 101).cross(Marked(102)).cross(Cnp).cross(Marked(103));
        s.wait(4_000)
            .cross(Marked(104))
            .cross(Cnp)
            .wait(checkers::cnp::PATIENCE)
            .run(105, 105)
            .cross(Ack(105));
    });
    let report = scene.report(&Settings::default());
    assert_eq!(report.rules(), NONE, "{report}");
    assert!(report.to_string().contains("CNPs paced by port"), "{report}");
    assert!(report.to_string().contains("marked 3, CNPs 2"), "{report}");
}

#[test]
fn a_cnp_needs_a_mark() {
    let scene = scene(|s| {
        s.run(100, 101).cross(Ack(101)).cross(Cnp).cross(Marked(102));
    });
    assert_eq!(scene.rules(&Settings::default()), ["cnp-without-mark"]);
}

#[test]
fn a_mark_needs_a_cnp() {
    let scene = scene(|s| {
        s.run(100, 101).cross(Ack(101)).cross(Marked(102)).wait(checkers::cnp::PATIENCE).run(103, 103);
    });
    assert_eq!(scene.rules(&Settings::default()), ["cnp-missing"]);
}

#[test]
fn cnps_keep_their_pace() {
    let scene = scene(|s| {
        s.run(100, 101).cross(Ack(101)).cross(Marked(102)).cross(Cnp).cross(Marked(103)).cross(Cnp);
    });
    let report = scene.report(&Settings { cnp_interval: 5_000, ..Settings::default() });
    assert_eq!(report.rules(), ["cnp-too-soon"]);
    assert!(report.to_string().contains("CNPs paced by nothing"), "{report}");
    assert_eq!(scene.rules(&Settings { cnp_interval: 4_000, ..Settings::default() }), NONE);
}

// 7. Themis over four paths: 102, 106 and 110 share one.

fn themis(log: Option<&str>) -> Settings {
    let log = log.map(Log::parse);
    Settings { expect: Some(Expect::Themis), rule: SwitchRule::sound(4, 256), log, ..Settings::default() }
}

/// PSN 102 is late or lost: 103 leaves, and the receiver sends NACK 102. `rest` gets the NACK.
fn missing(rest: impl FnOnce(&mut Scene, Vec<u8>, Vec<u8>)) -> Scene {
    scene(|s| {
        s.run(100, 101).cross(Ack(101));
        let data = s.enter(Data(102));
        s.run(103, 103);
        let nack = s.enter(Nack(102));
        rest(s, data, nack);
    })
}

#[test]
fn a_switch_that_blocks_and_compensates_passes() {
    // 102 is only late, so its NACK stays.
    let late = missing(|s, data, _| {
        s.leave(Data(102), data).run(104, 110).cross(Ack(110));
    });
    let log = "0.1 nack blocked qp=0x000011 psn=102 why=other-path";
    let report = late.report(&themis(Some(log)));
    assert_eq!(report.rules(), NONE, "{report}");
    assert!(report.to_string().contains("blocked 1"), "{report}");
    assert!(report.to_string().contains("verdicts equal to the log's 1"), "{report}");
    // 102 is lost: 106 of its path proves it, and the NACK leaves then.
    let lost = missing(|s, _, nack| {
        s.run(104, 106).leave(Nack(102), nack).run(102, 102).cross(Ack(106));
    });
    let log = "0.0 lost path=2 why=random qp=0x000011 opcode=0x01 psn=102\n\
               0.1 nack blocked qp=0x000011 psn=102 why=other-path\n0.2 nack sent qp=0x000011 psn=102";
    let report = lost.report(&themis(Some(log)));
    assert_eq!(report.rules(), NONE, "{report}");
    assert!(report.to_string().contains("sent by the switch 1"), "{report}");
}

#[test]
fn a_nack_without_proof_may_not_leave() {
    let scene = missing(|s, data, nack| {
        s.leave(Nack(102), nack).leave(Data(102), data).run(104, 110);
    });
    let report = scene.report(&themis(None));
    assert_eq!(report.rules(), ["nack-left"]);
    assert!(report.to_string().contains("the rule has blocked it: other-path"), "{report}");
    // A switch that does not know the connection yet says so, and is excused.
    let passed = "0.1 nack passed requester=0x000012 psn=102 why=ambiguous";
    assert_eq!(scene.rules(&themis(Some(passed))), NONE);
}

#[test]
fn a_nack_with_proof_must_leave() {
    let scene = missing(|s, _, _| {
        s.run(104, 110);
    });
    let log = "0.0 lost path=2 why=random qp=0x000011 opcode=0x01 psn=102\n0.1 nack blocked qp=0x000011 psn=102 why=other-path\n\
               0.2 nack sent qp=0x000011 psn=102";
    assert_eq!(scene.rules(&themis(Some(log))), ["nack-kept"]);
    // The path to the requester may have lost it.
    let lost = "\n0.3 lost path=0 why=random qp=0x000012 opcode=0x11 psn=102";
    assert_eq!(scene.rules(&themis(Some(&format!("{log}{lost}")))), NONE);
}

#[test]
fn a_log_with_other_verdicts_is_a_breach() {
    let scene = missing(|s, data, _| {
        s.leave(Data(102), data).run(104, 110);
    });
    let log = "0.1 nack blocked qp=0x000011 psn=102 why=on-the-wire";
    assert_eq!(scene.rules(&themis(Some(log))), ["verdict-differs"]);
    let log = "0.1 nack blocked qp=0x000011 psn=102 why=other-path\n0.2 nack blocked qp=0x000011 psn=102 why=other-path";
    assert_eq!(scene.rules(&themis(Some(log))), ["verdict-differs"]);
}

#[test]
fn a_literal_switch_is_held_to_the_paper() {
    // Fig. 4 of the paper's rule: the packet leaves while its NACK comes up, and a later one sets off the NACK.
    let scene = scene(|s| {
        s.run(100, 101).cross(Ack(101));
        let data = s.enter(Data(102));
        s.run(103, 103).leave(Data(102), data);
        let nack = s.enter(Nack(102));
        s.run(104, 106).leave(Nack(102), nack).run(107, 108);
    });
    let literal = Settings { rule: SwitchRule::literal(4, 256), ..themis(None) };
    assert_eq!(scene.rules(&literal), NONE);
    assert_eq!(scene.rules(&themis(None)), ["nack-left"]);
}

// 8. Latency.

#[test]
fn latencies_are_measured() {
    let scene = lost(|s| {
        s.wait(9_000).cross(Nack(102)).wait(20_000).run(102, 102).cross(Ack(103));
    });
    let text = scene.report(&Settings::default()).to_string();
    assert!(text.contains("NACK after gap 10.0 us (median, P99 10.0 us, 1 times)"), "{text}");
    assert!(text.contains("resent after NACK 21.0 us"), "{text}");
}

#[test]
fn timeouts_are_told_by_their_time() {
    // 4.096 us x 2^10 = 4.2 ms.
    let told = |wait| {
        let scene = lost(|s| {
            s.wait(wait).run(102, 103).cross(Ack(103));
        });
        let settings = Settings { ack_timeout: Some(10), ..Settings::default() };
        (scene.rules(&settings), scene.report(&settings).to_string())
    };
    let (rules, text) = told(5_000_000);
    assert_eq!(rules, NONE);
    assert!(text.contains("timeout exponents that fit 9 or 10"), "{text}");
    assert_eq!(told(4_000_000).0, ["timeout-early"]);
    assert_eq!(told(17_000_000).0, ["timeout-late"]);
}

// Connections.

#[test]
fn a_capture_without_anything_to_judge_is_no_proof() {
    assert_eq!(Scene::new().rules(&Settings::default()), NONE);
    assert_eq!(Scene::new().rules(&expecting(Expect::NicSr)), ["nothing-to-check"]);
    let silent = scene(|s| {
        s.run(100, 110);
    });
    assert_eq!(silent.rules(&expecting(Expect::GoBackN)), NONE);
    assert_eq!(silent.rules(&themis(None)), ["nothing-to-check"]);
}

#[test]
fn connections_with_one_source_port_are_told_apart_by_their_psns() {
    let mut scene = scene(|s| {
        s.run(100, 105).cross(Ack(105));
    });
    // A second queue pair of the same hosts, far away in PSNs.
    let more = self::scene(|s| {
        s.run(70_000, 70_005).cross(Ack(70_005));
    });
    for mut frame in more.capture.frames {
        let qp = 14 + 20 + 8 + 7;
        frame.bytes[qp] += 10;
        wire::icrc::fill(&mut frame.bytes[14..]).unwrap();
        scene.add(frame.port, frame.way, frame.bytes);
    }
    let report = scene.report(&expecting(Expect::NicSr));
    assert_eq!(report.rules(), NONE, "{report}");
    assert_eq!(report.verdicts.len(), 2);
    assert!(!report.to_string().contains("unknown"), "{report}");
}

#[test]
fn a_capture_without_sides_counts_every_frame_as_sent_and_delivered() {
    let mut scene = scene(|s| {
        for what in [Data(100), Data(102), Nack(101), Data(101), Ack(102)] {
            let bytes = s.bytes(what);
            s.add(0, Way::Through, bytes);
        }
    });
    scene.capture.frames.iter_mut().for_each(|frame| frame.number = None);
    // The sender seems to leave out 101; that is what such a capture can tell.
    assert_eq!(scene.rules(&expecting(Expect::NicSr)), ["psn-skipped"]);
}

// The decision log.

#[test]
fn a_decision_log_is_read_line_by_line() {
    let log = Log::parse(
        "0.1 nack blocked qp=0x000011 psn=102 why=other-path\n0.2 nack sent qp=0x000011 psn=102\n\
         0.3 nack forwarded qp=0x000012 psn=7 why=proof\n0.4 nack passed requester=0x0000ff psn=9 why=no-flow\n\
         0.5 nack passed requester=0x0000ff psn=9 why=no-flow\n0.6 lost path=1 why=random qp=0x000011 opcode=0x04 psn=3\n\
         0.7 lost path=1 why=down\n0.8 injected stop qp=0x000011 opcode=0x04 psn=3\n0.8 dropped port=0 why=injected\n\
         0.9 injected corrupt qp=0x000011 opcode=0x0A psn=4\n1.0 injected duplicate qp=0x000011 opcode=0x0A psn=5\n\
         1.1 dropped port=0 why=full\n1.2 learnt qp=0x000011 requester=0x000012\n1.3 nack blocked qp=x psn=1\n1.4",
    );
    let decision = |what: &str, psn, why: &str| checkers::log::Decision {
        what: what.into(),
        psn: Psn::new(psn),
        why: why.into(),
    };
    let expected = Log {
        decisions: [
            (0x11, vec![decision("blocked", 102, "other-path"), decision("sent", 102, "")]),
            (0x12, vec![decision("forwarded", 7, "proof")]),
        ]
        .into(),
        passed: [((0xFF, 9), 2)].into(),
        lost: [((0x11, 0x04, 3), 2)].into(),
        dropped: 1,
        corrupted: [((0x11, 0x0A, 4), 1)].into(),
        duplicated: [((0x11, 0x0A, 5), 1)].into(),
    };
    assert_eq!(log, expected);
}

// Marks and CNPs, to the nanosecond.

/// A CNP answers the marks of the interval before it and of the patience after it.
#[test]
fn a_cnp_answers_marks_up_to_an_interval_later_and_a_patience_earlier() {
    let interval = Settings::default().cnp_interval;
    let patience = checkers::cnp::PATIENCE;
    let told = |tell: &dyn Fn(&mut Scene)| {
        scene(|s| {
            s.run(100, 101).cross(Ack(101));
            tell(s);
            s.wait(patience).run(110, 110).cross(Ack(110));
        })
        .rules(&Settings::default())
    };
    // A mark leaves the switch 2 us after the CNP has come in, and a CNP comes in 1 us after the mark has left.
    let before = |wait| told(&move |s| _ = s.cross(Marked(102)).cross(Cnp).wait(wait).cross(Marked(103)));
    assert_eq!((before(interval - 3_000), before(interval - 2_999)), (vec![], vec!["cnp-missing"]));
    let after = |wait| told(&move |s| _ = s.cross(Marked(102)).wait(wait).cross(Cnp));
    assert_eq!((after(patience - 1_000), after(patience - 999)), (vec![], vec!["cnp-missing"]));
}

#[test]
fn nacks_that_come_with_a_cnp_are_told() {
    for (wait, beside) in [(0, true), (7_000, true), (8_001, false)] {
        let scene = lost(|s| {
            s.cross(Marked(104)).cross(Cnp).wait(wait).cross(Nack(102)).run(102, 102).cross(Ack(104));
        });
        let text = scene.report(&Settings::default()).to_string();
        assert_eq!(text.contains("NACKs beside a CNP 1"), beside, "{text}");
    }
}

// Times.

/// T is 4.096 us x 2^n. A timer goes off after T to 4 T, both included.
#[test]
fn the_bounds_of_a_timer_are_allowed() {
    let told = |nanos: u64| {
        // The last progress before the timeout is the departure of the packet itself.
        let scene = scene(|s| {
            s.run(100, 101);
            s.enter(Data(102));
            s.run(103, 103).wait(nanos - 3_000).run(102, 103).cross(Ack(103));
        });
        let settings = Settings { ack_timeout: Some(4), ..Settings::default() };
        (scene.rules(&settings), scene.report(&settings).to_string())
    };
    let least = 4_096 << 4;
    assert_eq!(told(least - 1).0, ["timeout-early"]);
    assert_eq!((told(least).0, told(4 * least).0), (vec![], vec![]));
    assert_eq!(told(4 * least + 1).0, ["timeout-late"]);
    let text = told(least).1;
    assert!(text.contains("timeout after 65.5 us (median, P99 65.5 us, 1 times)"), "{text}");
    assert!(text.contains("timeout exponents that fit 2 or 3 or 4"), "{text}");
    let early = told(least - 1).1;
    assert!(early.contains("102 came again after 65.5 us, the bound is 65.5 us"), "{early}");
}

/// The median is the middle one, and the 99th percentile of few values is the largest.
#[test]
fn percentiles_are_nearest_ranks() {
    let scene = scene(|s| {
        s.run(100, 100);
        for (n, wait) in [(0, 1_000), (1, 50_000), (2, 20_000)] {
            let missing = 101 + 2 * n;
            s.enter(Data(missing));
            s.run(missing + 1, missing + 1).wait(wait - 1_000).cross(Nack(missing)).run(missing, missing);
        }
        s.cross(Ack(106));
    });
    let text = scene.report(&Settings::default()).to_string();
    assert!(text.contains("NACK after gap 20.0 us (median, P99 50.0 us, 3 times)"), "{text}");
}

// The report.

/// A capture with repeated breaches, its whole text, and the counts of each end.
#[test]
fn a_report_shows_three_breaches_of_a_rule_and_counts_the_others() {
    let report = |last: u32| {
        let scene = scene(|s| {
            s.run(100, 101).cross(Ack(101));
            (0..last).for_each(|n| _ = s.cross(Data(110 + 10 * n)));
        });
        scene.report(&expecting(Expect::NicSr)).to_string()
    };
    let three = report(3);
    assert!(three.contains("psn-skipped: frame 7: 8 PSNs in front of 110 left out\n"), "{three}");
    assert!(three.contains("frame 11: ") && !three.contains("more"), "{three}");
    let five = report(5);
    assert!(five.contains("frame 11: ") && !five.contains("frame 13: "), "{five}");
    assert!(five.contains("  psn-skipped: 2 more\n"), "{five}");
    let lines: Vec<&str> = five.lines().collect();
    assert_eq!(lines[0], "capture: holds: frames 16, RoCEv2 16, connections 1, wrong ICRCs 0");
    assert!(lines[1].starts_with("10.0.0.2 > 10.0.0.1 qp 17: BREACH: "), "{five}");
    assert!(lines[1].contains("requests 7, arrived 7, out of order 5"), "{five}");
}

/// What an event has duplicated or lost is counted, and one frame that was dropped for another reason explains one loss.
#[test]
fn what_events_and_drops_explain_is_counted() {
    let scene = scene(|s| {
        s.run(100, 101);
        let bytes = s.bytes(Data(101));
        s.leave(Data(101), bytes.clone()).enter(Data(102));
        s.enter(Data(103));
    });
    let with = |drops: &str| {
        let log = format!("0.1 injected duplicate qp=0x000011 opcode=0x01 psn=101\n{drops}");
        scene.report(&Settings { log: Some(Log::parse(&log)), ..Settings::default() })
    };
    let (one, two) = (
        with("0.2 dropped port=1 why=full"),
        with("0.2 dropped port=1 why=full\n0.3 dropped port=1 why=full"),
    );
    assert_eq!((one.rules(), two.rules()), (vec!["frame-lost"], vec![]), "{one}");
    assert!(two.to_string().contains("duplicated by events 1, frames that did not come out 2"), "{two}");
    assert!(
        one.to_string().contains("frame-lost: frame 7: opcode 0x01 qp 17 psn 103 did not come out"),
        "{one}"
    );
}

/// The first packet of a connection may be missing, so a reply may name the PSN before it. An earlier one answers another
/// connection.
#[test]
fn a_reply_to_a_packet_before_the_first_belongs_to_no_connection() {
    for (psn, known) in [(99, true), (98, false)] {
        let scene = scene(|s| {
            s.run(100, 105).cross(Ack(psn));
        });
        let text = scene.report(&Settings::default()).to_string();
        assert_eq!(!text.contains("replies of unknown connections"), known, "{text}");
    }
}
