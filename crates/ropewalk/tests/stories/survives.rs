//! Claim: every recovery mode delivers every byte exactly once, whichever packets are lost. Every link loses one
//! packet in a hundred, of data, ACKs and NACKs alike, while sixteen hosts send 1 GB. With `make exhaustive` they send 10 GB, and
//! once more with one lost packet in a thousand.

use engine::Kind;
use engine::outcome::Ending;
use scenario::{Source, check};

/// Bytes from each host, 1 GB for sixteen hosts. Of 244,000 packets 10,000 are lost, 400 of them twice and a dozen
/// three times, and as many replies, so that every rule of recovery applies. Ten times this amount also exceeds 65,536
/// packets on a queue pair.
const BYTES: u64 = 62_500_000;
/// Factor by which `make exhaustive` sends more.
const MORE: u64 = 10;
/// Share of packets that every link loses.
const LOSS: f64 = 0.01;
/// The same in the second run of `make exhaustive`.
const RARE: f64 = 0.001;

fn survive(module: &str, bytes: u64, loss: f64) {
    let mode = &module.replace('_', "-");
    // A message that is sent anew as a whole must be short, or it never arrives.
    let own = if mode == "dcp" { "message-packets = 8\n" } else { "" };
    survive_with(mode, (bytes, loss), &format!("[nic.congestion.none]\n[nic.transport.{mode}]\n{own}"));
}

/// Checks the claim with this recovery mode and other settings of a scenario.
fn survive_with(mode: &str, (bytes, loss): (u64, f64), keys: &str) {
    let text = format!(
        "[topology.leaf-spine]\nleaves = 4\nspines = 4\nhosts-per-leaf = 4\nrate = \"100Gbps\"\n\
         [wire]\npayload = \"4096B\"\n[links]\nloss = {loss}\nlose-replies = true\n\
         [nic]\ntimeout = {{ fixed = \"300us\" }}\non-timeout = \"none\"\n{keys}\n\
         [[workload]]\npermutation = {{ bytes = \"{bytes}B\", kind = \"cross-rack\" }}\n"
    );
    let checked = check(&Source::new("survives.toml", text), &[]).unwrap_or_else(|e| panic!("{mode}: {e}"));
    let run = sim::run(&checked.plan, &checked.schemes, &checked.nics, Kind::Window, &mut ());
    assert_eq!((&run.ending, &*run.violations), (&Ending::Finished, &[][..]), "{mode}");
    let packets = 16 * checked.plan.wire.packets(bytes);
    assert_eq!(run.data.accepted, packets, "{mode}: each packet once");
    // A packet crosses four links; repeated losses of one packet reduce the number.
    let expected = 3.5 * loss..4.2 * loss;
    let lost = run.data.dropped_link as f64 / run.data.sent as f64;
    assert!(expected.contains(&lost), "{mode}: {lost}");
    let replies = run.control.dropped as f64 / (run.control.created - run.control.cnp) as f64;
    assert!(expected.contains(&replies), "{mode}: replies are lost, too: {replies}");
}

/// A test for each recovery mode.
mod every_packet_arrives_once_under {
    macro_rules! modes {
        ($($mode:ident)+) => {
            $(#[test]
            fn $mode() {
                super::survive(stringify!($mode), super::BYTES, super::LOSS);
            })+

            mod ten_times_as_much {
                use super::super::{BYTES, LOSS, MORE, RARE, survive};

                $(#[test]
                #[ignore = "takes minutes: make exhaustive"]
                fn $mode() {
                    survive(stringify!($mode), MORE * BYTES, LOSS);
                    survive(stringify!($mode), MORE * BYTES, RARE);
                })+
            }
        };
    }

    rnic::each_transport!(modes);
}

/// NICs as a whole: recovery, control and paths.
macro_rules! wholes {
    ($($(#[$doc:meta])* $test:ident: $name:literal, $keys:literal;)+) => {
        $($(#[$doc])* #[test]
        fn $test() {
            survive_with($name, (BYTES, LOSS), $keys);
        })+

        mod wholes_ten_times_as_much {
            use super::{BYTES, LOSS, MORE, RARE, survive_with};

            $(#[test]
            #[ignore = "takes minutes: make exhaustive"]
            fn $test() {
                survive_with($name, (MORE * BYTES, LOSS), $keys);
                survive_with($name, (MORE * BYTES, RARE), $keys);
            })+
        }
    };
}

wholes! {
    /// MP-RDMA with its own paths, window and recovery.
    mp_rdma_as_a_whole_survives: "the scheme mp-rdma", "[scheme.mp-rdma]";
    /// Ultra Ethernet with its paths and window.
    ultra_ethernet_as_a_whole_survives:
        "uec with nscc", "[scheme.entropy-mixed]\n[nic.transport.uec]\n[nic.congestion.nscc]";
    /// Ultra Ethernet with senders that infer losses, and probe.
    ultra_ethernet_that_infers_losses_survives:
        "uec that infers", "[scheme.entropy-mixed]\n[nic.transport.uec]\ninfer-loss = true\n[nic.congestion.nscc]";
    /// MRC with its paths and window.
    mrc_as_a_whole_survives:
        "mrc with nscc", "[scheme.mrc]\n[nic.transport.mrc]\n[nic.congestion.nscc]";
    /// Ultra Ethernet with the receiver's credit.
    ultra_ethernet_with_credit_survives:
        "uec with rccc", "[scheme.entropy-mixed]\n[nic.transport.uec]\n[nic.congestion.rccc]";
    /// NDP's pulls.
    ndp_as_a_whole_survives: "uec with ndp", "[scheme.oblivious]\n[nic.transport.uec]\n[nic.congestion.ndp]";
}
