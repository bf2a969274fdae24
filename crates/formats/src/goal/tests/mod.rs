mod mistakes;
mod mutations;
mod workload;

use super::*;
use finding::{Finding, code};
use std::io::Cursor;

/// Two ranks: 5 us of computation, then a message.
const TEXT: &str = "num_ranks 2\nrank 0 {\na: calc 5000\nb: send 8192b to 1 tag 0\nb requires a\n}\nrank 1 {\n\
                    recv 8192b from 0\n}\n";

/// The same as a binary file, field by field.
const HEX: &str = "7f10000000000000 02000000 00 00 2600000000000000 8400000000000000 8400000000000000 b700000000000000 \
    02000000 01000000 00000000 00000000 03 00000000 8813000000000000 00000000 00 00 01000000 00000000 00000000 01000000 \
    01000000 01 01000000 0020000000000000 00000000 00 00 00000000 01000000 00000000 01000000 01000000 \
    01000000 01000000 00000000 00000000 02 00000000 0020000000000000 00000000 00 00 00000000 00000000 00000000 00000000";

/// All kinds of statements.
const ALL: &str = "// a comment\nnum_ranks 3 /* and\nanother */ rank 2 {\r\n  l1: recv 1 b from -1 tag -1 cpu 1 nic 2\r\n\
    \tl2 : calc 0 cpu 3\r\nl2 irequires l1\nl3: send 0b to 0\nl3 requires l1\nl3 irequires l2\n}\nrank 0\n{ send 7b to 2 \
    tag 4294967294 cpu 255 nic 255\n}\n";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn text(text: &str) -> Result<Schedule, Finding> {
    text::read("s.goal", text, &mut Vec::new())
}

fn binary(bytes: &[u8]) -> Result<Schedule, Finding> {
    binary::read("s.bin", &mut Cursor::new(bytes), bytes.len() as u64)
}

fn encoded(schedule: &Schedule) -> Vec<u8> {
    let mut bytes = Vec::new();
    binary::write(schedule, &mut bytes).unwrap();
    bytes
}

#[test]
fn text_and_binary_hold_the_same_schedule_and_encode_to_the_same_bytes() {
    let (from_text, from_binary) = (text(TEXT).unwrap(), binary(&bytes(HEX)).unwrap());
    assert_eq!(from_text, from_binary);
    assert_eq!(bytes(HEX).len(), 191);
    assert_eq!(encoded(&from_text), bytes(HEX));
    let all: Vec<String> =
        from_text.programs.values().flat_map(|p| &p.operations).map(ToString::to_string).collect();
    assert_eq!(all, ["calc 5000", "send 8192b to 1 tag 0", "recv 8192b from 0 tag 0"]);
    assert_eq!(from_text.programs[&0].dependencies, [Dependency { first: 0, then: 1, on: On::Finish }]);
}

#[test]
fn every_statement_survives_the_binary_form() {
    let mut warnings = Vec::new();
    let schedule = text::read("s.goal", ALL, &mut warnings).unwrap();
    let text = "ranks without a program in s.goal: 1 of 3; they do nothing";
    assert_eq!(warnings, [code::NO_EFFECT.at("file", text)]);
    assert_eq!(schedule.ranks, 3);
    let two = &schedule.programs[&2];
    assert_eq!(two.operations[0].to_string(), "recv 1b from -1 tag -1");
    assert_eq!((two.operations[0].cpu, two.operations[0].nic), (1, 2));
    let on: Vec<_> = two.dependencies.iter().map(|d| (d.first, d.then, d.on)).collect();
    assert_eq!(on, [(0, 1, On::Start), (0, 2, On::Finish), (1, 2, On::Start)]);
    let zero = schedule.programs[&0].operations[0];
    assert_eq!((zero.tag, zero.cpu, zero.nic), (u32::MAX - 1, 255, 255));
    let back = binary(&encoded(&schedule)).unwrap();
    assert_eq!(back.programs[&0], schedule.programs[&0]);
    assert_eq!(back.programs[&2].operations, two.operations);
    assert_eq!(encoded(&back), encoded(&schedule));
}

#[test]
fn the_content_of_a_file_decides_its_form() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("any.name");
    for content in [TEXT.as_bytes().to_vec(), bytes(HEX)] {
        std::fs::write(&path, content).unwrap();
        assert_eq!(read(&path, &mut Vec::new()).unwrap(), text(TEXT).unwrap());
    }
    std::fs::write(&path, [b'n', 0xff]).unwrap();
    let error = read(&path, &mut Vec::new()).unwrap_err();
    assert!(error.text.ends_with("any.name:1:2: expected text in UTF-8, found the byte 0xff"), "{error}");
    let error = read(&folder.path().join("none.goal"), &mut Vec::new()).unwrap_err();
    assert!(error.text.contains("none.goal cannot be read"), "{error}");
}
