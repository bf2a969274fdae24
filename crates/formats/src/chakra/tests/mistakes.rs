//! Traces that are refused, each with its byte and its node.

use super::*;

fn wrong(file: &[u8]) -> String {
    let (at, text) = read(file).unwrap_err();
    format!("byte {at}: {text}")
}

#[test]
fn every_cut_is_refused_or_ends_between_two_messages() {
    let file = bytes(SENDER);
    let whole: Vec<usize> = (0..file.len()).filter(|&end| read(&file[..end]).is_ok()).collect();
    assert_eq!(whole, [8, 16], "after the metadata, and after the first node");
    assert_eq!(wrong(&file[..30]), "byte 16: expected a message of 54 bytes, and 13 bytes are left");
    assert_eq!(wrong(&[]), "byte 0: the file is empty; expected a Chakra trace");
}

#[test]
fn headers_that_claim_gigabytes_are_refused_without_reading_them() {
    let mut file = trace(&[Writer::compute(1, 1, &[])]);
    let mut claim = Writer::default();
    claim.varint(4 << 30);
    file.extend(claim.0);
    file.resize(100, 0);
    assert_eq!(wrong(&file), "byte 18: expected a message of 4294967296 bytes, and 77 bytes are left");
    let mut node = Writer::node(1, "n", 4, &[]);
    node.varint(5 << 3 | 2).varint(u64::MAX);
    assert_eq!(
        wrong(&trace(&[node])),
        "byte 17: expected a field of 18446744073709551615 bytes, and 0 bytes are left"
    );
}

#[test]
fn mistakes_name_their_byte_and_their_node() {
    let long = [0xff; 12];
    assert_eq!(wrong(&long), "byte 0: expected a number of at most 64 bits");
    assert_eq!(wrong(&[0x80]), "byte 0: the file ends inside a number");
    assert_eq!(
        wrong(&trace(&[Writer::node(3, "x", 4, &[]).number(3, 8).clone()])),
        "byte 8: node 3 `x`: expected a type of node from 0 to 7 (COMM_COLL_NODE), found 8"
    );
    assert_eq!(
        wrong(&trace(&[Writer::compute(3, 1, &[]), Writer::node(3, "y", 4, &[])])),
        "byte 18: node 3 `y` has the id of node 3 `c` at byte 8"
    );
    assert_eq!(
        wrong(&trace(&[Writer::node(3, "x", 5, &[])])),
        "byte 8: node 3 `x`: the attribute `comm_dst` is missing"
    );
    assert_eq!(
        wrong(&trace(&[Writer::node(3, "x", 7, &[])])),
        "byte 8: node 3 `x`: the attribute `comm_type` is missing"
    );
    assert_eq!(
        wrong(&trace(&[Writer::collective(3, 3, 8, "", &[])])),
        "byte 8: node 3 `coll`: the collective GATHER cannot run, as the trace does not name its root"
    );
    assert_eq!(
        wrong(&trace(&[Writer::collective(3, 10, 8, "", &[])])),
        "byte 8: node 3 `coll`: expected a `comm_type` from 0 to 9, found 10"
    );
    let mut negative = Writer::node(3, "x", 7, &[]);
    negative.attribute("comm_size", 9, u64::MAX);
    assert_eq!(
        wrong(&trace(&[negative])),
        "byte 16: node 3 `x`: expected `comm_size` to be a number of bytes, found -1"
    );
    let mut text = Writer::node(3, "x", 7, &[]);
    text.text("comm_size", "many");
    assert_eq!(wrong(&trace(&[text])), "byte 16: node 3 `x`: expected `comm_size` to be a number of bytes");
    let mut group = Writer::node(3, "x", 4, &[]);
    group.varint(2 << 3 | 3);
    assert_eq!(wrong(&trace(&[group])), "byte 16: field 2 has the wire type 3, which no Chakra field has");
    let mut zero = Writer::node(3, "x", 4, &[]);
    zero.varint(0).varint(1);
    assert_eq!(wrong(&trace(&[zero])), "byte 16: expected a field number of at least 1, found 0");
    let mut name = Writer::node(3, "x", 4, &[]);
    name.number(2, 7);
    assert_eq!(wrong(&trace(&[name])), "byte 16: expected the name of a node");
}

#[test]
fn groups_that_are_no_json_are_refused_with_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("groups.json");
    for (text, message) in [
        ("{\"1\": [0, 1],\n \"2\": [0, -1]}", "groups.json:2:12: invalid value"),
        ("{\"1\": []}", "groups.json: the group \"1\" has no ranks"),
        ("{\"1\": [0, 1", "groups.json:1:11: EOF while parsing a list"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = groups_file(&path).unwrap_err();
        assert!(error.text.contains(message), "{}", error.text);
    }
}
