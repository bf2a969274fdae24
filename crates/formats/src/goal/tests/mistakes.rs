//! Files that are wrong, each with its error.

use super::*;

fn rank(statements: &str) -> String {
    format!("num_ranks 2\nrank 0 {{\n{statements}\n}}\n")
}

#[test]
fn wrong_texts_are_refused_with_line_and_column() {
    let hash = "1".repeat(30);
    for (wrong, message) in [
        ("", "1:1: expected `num_ranks`, found the end of the file"),
        ("ranks 2", "1:1: expected `num_ranks`, found `ranks`"),
        ("num_ranks two", "1:11: expected a number of ranks, found `two`"),
        ("num_ranks 0", "1:11: expected 1 to 1048576 ranks, found 0"),
        ("num_ranks 4000000000", "1:11: expected 1 to 1048576 ranks, found 4000000000"),
        ("num_ranks 5000000000", "1:11: expected a number of ranks of at most 4294967295, found 5000000000"),
        ("num_ranks 2\nrank 2 {\n}", "2:6: there is no rank 2; with `num_ranks 2` the last one is 1"),
        ("num_ranks 2\nrank 0 {\n}\nrank 0 {\n}", "4:6: rank 0 stands in the file twice"),
        (
            "num_ranks 2\nrank 0 {\ncalc 1\n",
            "4:1: expected a statement of rank 0 or `}`, found the end of the file",
        ),
        ("num_ranks 2\nrank 0\ncalc 1\n}", "3:1: expected `{`, found `calc`"),
        ("num_ranks 2 /* no end", "1:13: the comment `/*` has no end `*/`"),
        ("num_ranks 2\n}", "2:1: expected `rank`, found `}`"),
        (
            &rank("a: calc 1\nb: calc 1\na requires b\nb irequires a"),
            "6:1: rank 0: operations wait for each other: `a` -> `b` -> `a`",
        ),
        (&rank("a: calc 1\na requires a"), "4:1: rank 0: operations wait for each other: `a` -> `a`"),
        (
            &rank("one: calc 1\ntwo: calc 1\ntwo requires ome"),
            "5:14: no operation above has the label `ome`; did you mean `one`?",
        ),
        (&rank("a requires b\na: calc 1"), "3:1: no operation above has the label `a`"),
        (&rank("a: calc 1\na requires"), "4:11: expected a label, found the end of the line"),
        (&rank("a: calc 1\na: calc 1"), "4:1: the label `a` stands twice in one rank"),
        (&rank("1a: calc 1"), "3:1: expected a label that starts with a letter, found `1a`"),
        (&rank("tag: calc 1"), "3:1: `tag` is a word of the language and no label"),
        (&rank("a: requires a"), "3:4: expected `send`, `recv` or `calc`, found `requires`"),
        (&rank("sent 8b to 1"), "3:1: `sent` starts no statement; did you mean `send`?"),
        (&rank(": calc 1"), "3:1: expected a statement, found `:`"),
        (&rank("é"), "3:1: expected a statement, found `é`"),
        (&rank("send 8 to 1"), "3:8: expected `b` after the number of bytes, found `to`"),
        (&rank("send -8b to 1"), "3:6: expected a number of bytes, found `-`"),
        (&rank("send 8b from 1"), "3:9: expected `to`, found `from`"),
        (&rank("send 8b to 2"), "3:12: there is no rank 2; the last one is 1"),
        (&rank("send 8b to -1"), "3:12: expected a rank, found `-`"),
        (
            &rank("recv 8b from 4294967295"),
            "3:14: expected a rank or -1 of at most 4294967294, found 4294967295",
        ),
        (&rank("recv 8b from -12"), "3:14: expected a rank or -1, found `-`"),
        (&rank("recv 8b from 1 nic 0 tag 0"), "3:22: expected the end of the line, found `tag`"),
        (&rank("recv 8b from 1 cpu 256"), "3:20: expected the number of a cpu of at most 255, found 256"),
        (&rank("calc 1 nic 0"), "3:8: expected the end of the line, found `nic`"),
        (&rank("calc 1 // one"), "3:8: expected the end of the line, found `/`"),
        (&rank("calc 1.5"), "3:7: expected the end of the line, found `.`"),
        (&rank("calc\n1"), "3:5: expected a number of nanoseconds, found the end of the line"),
        (
            &rank(&format!("calc {hash}")),
            "3:6: expected a number of nanoseconds of at most 18446744073709551615, found 111111111111111111111111",
        ),
    ] {
        let error = text(wrong).unwrap_err();
        assert_eq!(error.located(), format!("s.goal:{message}"), "{wrong}");
    }
}

#[test]
fn a_long_cycle_is_shortened() {
    let labels: String = (0..40).map(|i| format!("l{i}: calc 1\n")).collect();
    let ring: String = (0..40).map(|i| format!("l{} requires l{i}\n", (i + 1) % 40)).collect();
    let error = text(&rank(&format!("{labels}{ring}"))).unwrap_err();
    assert!(error.text.contains("`l2` -> `l3` -> (33 more) -> `l37`"), "{error}");
}

/// The sample with a number of `N` bytes at a place.
fn with<const N: usize>(at: usize, new: [u8; N]) -> Vec<u8> {
    let mut file = bytes(HEX);
    file[at..at + N].copy_from_slice(&new);
    file
}

#[test]
fn wrong_binary_files_are_refused_with_byte_and_rank() {
    // Blocks start at bytes 46 and 140; the operations of rank 0 at 58 and 97, its successor at 136.
    let u32 = |at: usize, n: u32| with(at, n.to_le_bytes());
    let u64 = |at: usize, n: u64| with(at, n.to_le_bytes());
    for (file, message) in [
        (bytes("7f10000000000000 0200"), "10: the file ends too early"),
        (with(0, [1]), "0: expected the cookie 4223, found 4097"),
        (u64(0, 2342), "0: a simulator has overwritten this file (cookie 2342); make it anew from its text"),
        (u32(8, 0), "8: expected a number of ranks from 1 to 11, as the file has 191 bytes, found 0"),
        (
            u32(8, u32::MAX),
            "8: expected a number of ranks from 1 to 11, as the file has 191 bytes, found 4294967295",
        ),
        (u32(8, 3), "14: rank 0: expected a block between 54 and 183, found 38 to 132"),
        (u64(14, 37), "14: rank 0: expected a block between 38 and 183, found 37 to 132"),
        (u64(22, 37), "14: rank 0: expected a block between 38 and 183, found 38 to 37"),
        (u64(38, 184), "30: rank 1: expected a block between 38 and 183, found 132 to 184"),
        (
            u64(38, u64::MAX),
            "30: rank 1: expected a block between 38 and 183, found 132 to 18446744073709551615",
        ),
        (u64(30, 131), "30: rank 1: its block overlaps the block of rank 0"),
        (u64(38, 135), "140: rank 1: expected a block of at least 8 bytes, found 3"),
        (
            u32(46, u32::MAX),
            "46: rank 0: 4294967295 operations and 1 roots need 167503724517 bytes; the block has 94",
        ),
        (
            u32(50, 0x4000_0000),
            "46: rank 0: 2 operations and 1073741824 roots need 4294967382 bytes; the block has 94",
        ),
        (u32(140, 0), "152: rank 1: expected successors of 4 bytes each, found 39 bytes"),
        (u32(54, 1), "54: rank 0: operation 1 is listed as a root, wrongly or twice"),
        (u32(54, 9), "54: rank 0: operation 9 is listed as a root, wrongly or twice"),
        (u32(58, 1), "58: rank 0: operation 0: it has 1 predecessors by its own count, 0 by their lists"),
        (
            with(62, [4]),
            "58: rank 0: operation 0: expected the kind 1 (send), 2 (receive) or 3 (compute), found 4",
        ),
        (u32(102, 2), "97: rank 0: operation 1: there is no rank 2; the last one is 1"),
        (with(118, [1]), "97: rank 0: operation 1: cpu 1 and NIC 0 exceed the header's 0 and 0"),
        (
            u32(81, 2),
            "58: rank 0: operation 0: expected at most 1 successors in the block, found 2 from 0 on",
        ),
        (
            u32(85, u32::MAX),
            "58: rank 0: operation 0: expected at most 1 successors in the block, found 1 from 4294967295 on",
        ),
        (u32(81, 0), "136: rank 0: the operations have 0 successors; the block holds 1"),
        (u32(136, 2), "58: rank 0: operation 0: its successor 2 does not exist; the block has 2 operations"),
        (u32(136, 0), "58: rank 0: operation 0: it has 0 predecessors by its own count, 1 by their lists"),
    ] {
        let error = binary(&file).unwrap_err();
        assert_eq!(error.located(), format!("s.bin: byte {message}"));
    }
    for end in 0..191 {
        assert!(binary(&bytes(HEX)[..end]).is_err(), "truncated to {end} bytes");
    }
}

#[test]
fn a_cycle_and_a_missing_root_are_found_in_binary_files() {
    let mut schedule = text(&rank("a: calc 1\nb: calc 2\nc: calc 3\nb requires a\nc requires b")).unwrap();
    schedule.programs.get_mut(&0).unwrap().dependencies[0].first = 2;
    let error = binary(&encoded(&schedule)).unwrap_err();
    assert_eq!(error.text, "s.bin: byte 97: rank 0: operations wait for each other: 1 -> 2 -> 1");
    let mut file = encoded(&text(&rank("calc 1")).unwrap());
    // No root, and 4 bytes less: the operation moves up.
    file[50] = 0;
    file.drain(54..58);
    file[22] -= 4;
    file[30] -= 4;
    file[38] -= 4;
    let error = binary(&file).unwrap_err();
    let text = "s.bin: byte 50: rank 0: operation 0 has no predecessor and is no root, so nothing starts it";
    assert_eq!(error.text, text);
}
