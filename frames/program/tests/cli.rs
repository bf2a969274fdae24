//! The command as a user sees it: exit codes and messages.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// A temporary directory in which commands run.
struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        Sandbox(TempDir::new().unwrap())
    }

    fn frames(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("ropewalk-frames").unwrap();
        command.args(args).current_dir(self.0.path()).env("NO_COLOR", "1").timeout(Duration::from_secs(60));
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }
}

#[test]
fn tor_checks_its_file_and_replays_captures() {
    let sandbox = Sandbox::new();
    let lab = "[fabric]\nspines = 2\ndelay = \"10us\"\n[[port]]\nname = \"a\"\npcap = \"a.pcap\"\n[[port]]\nname = \"b\"\n";
    sandbox.write("lab.toml", lab);
    let check = sandbox.frames(&["tor", "check", "lab.toml"]).assert().code(0);
    check.stdout(
        contains("2 ports on 2 ToRs, 2 spines").and(contains("port a: ToR 0")).and(contains("spine 1:")),
    );
    sandbox.frames(&["tor", "replay", "lab.toml"]).assert().code(2).stderr(contains("a.pcap"));
    // A pcap file with one broadcast and one runt: header, then seconds, microseconds, two lengths and the frame.
    let mut pcap: Vec<u8> =
        [0xA1B2_C3D4u32, 4 << 16 | 2, 0, 0, 65535, 1].iter().flat_map(|n| n.to_le_bytes()).collect();
    for frame in [&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 0, 1, 0x88, 0xB5, 0, 0][..], &[1, 2, 3]] {
        let len = frame.len() as u32;
        pcap.extend([5, 7, len, len].iter().flat_map(|n: &u32| n.to_le_bytes()));
        pcap.extend(frame);
    }
    fs::write(sandbox.path("a.pcap"), pcap).unwrap();
    let replay = sandbox.frames(&["tor", "replay", "lab.toml"]).assert().code(0);
    replay.stdout(contains("dropped port=0 why=runt").and(contains("out_frames{port=\"b\"} 1")));
    sandbox.write("lab.toml", &lab.replace("spines", "spinse"));
    let wrong = sandbox.frames(&["tor", "check", "lab.toml"]).assert().code(2);
    wrong.stderr(contains("lab.toml:2:1: unknown key `spinse`: did you mean `spines`?"));
}

#[test]
fn tor_checks_captures() {
    use ports::pcap::{Direction, Interface, Record, Writer};
    let sandbox = Sandbox::new();
    // Frames that the capturing switch has numbered.
    let capture = |name: &str, numbers: &[u64]| {
        let interface = Interface { name: "a", comment: None, rate: None, snap_length: 0 };
        let mut file =
            Writer::new(fs::File::create(sandbox.path(name)).unwrap(), "", "", &[interface]).unwrap();
        for number in numbers {
            let (at, direction, number) = (Duration::from_micros(*number), Direction::In, Some(*number));
            let bytes = &[0xFF; 60];
            file.write(&Record { interface: 0, at, direction, bytes, fcs: 0, comment: None, number })
                .unwrap();
        }
        file.finish().unwrap();
    };
    capture("good.pcapng", &[7, 8, 9]);
    capture("bad.pcapng", &[7, 9]);
    let good = sandbox.frames(&["tor", "check", "good.pcapng"]).assert().code(0);
    good.stdout(contains("capture: holds: frames 3, RoCEv2 0"));
    let bad = sandbox.frames(&["tor", "check", "bad.pcapng"]).assert().code(3);
    bad.stdout(contains("sequence-gap: frame 2: number 9 follows 7"));
    let empty = sandbox.frames(&["tor", "check", "good.pcapng", "--expect", "nic-sr"]).assert().code(3);
    empty.stdout(contains("nothing-to-check"));
    let paths = sandbox.frames(&["tor", "check", "good.pcapng", "--expect", "themis"]).assert().code(2);
    paths.stderr(contains("--paths"));
    sandbox.write("lab.toml", "[[port]]\nname = \"a\"\n");
    let table = sandbox.frames(&["tor", "check", "lab.toml", "--expect", "nic-sr"]).assert().code(2);
    table.stderr(contains("no capture"));
}

#[test]
fn tor_injects_only_where_it_may() {
    let sandbox = Sandbox::new();
    let lab = "[[port]]\nname = \"a\"\nunix = { bind = \"a\", peer = \"b\" }\n[[event]]\non = { kind = \"nack\" }\ndo = \"drop\"\n";
    sandbox.write("lab.toml", lab);
    let refused = sandbox.frames(&["tor", "lab.toml"]).assert().code(2);
    refused.stderr(contains("--allow-inject"));
}
