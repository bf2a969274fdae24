mod mistakes;
mod mutations;
mod workload;

use super::*;
use finding::code;

/// 5 us of computation, then a message of 8,192 B to rank 1 with tag 3.
const SENDER: &str = "07 0a05302e302e34 07 1201 63 1804 3805 36 0801 120173 1805 2a0100 520c0a08636f6d6d5f6473743801 \
    520e0a09636f6d6d5f73697a65488040 520c0a08636f6d6d5f7461673803";

/// The receive of this message.
const RECEIVER: &str = "07 0a05302e302e34 31 120172 1806 520c0a08636f6d6d5f7372633800 520e0a09636f6d6d5f73697a65488040 \
    520c0a08636f6d6d5f7461673803";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// A trace that a test writes, field by field.
#[derive(Clone, Debug, Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn varint(&mut self, mut number: u64) -> &mut Self {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    fn number(&mut self, field: u64, number: u64) -> &mut Self {
        self.varint(field << 3).varint(number)
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | 2).varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn text(&mut self, name: &str, text: &str) -> &mut Self {
        let attribute = Writer::default().bytes(1, name.as_bytes()).bytes(29, text.as_bytes()).0.clone();
        self.bytes(10, &attribute)
    }

    /// A whole number as the type of the field `kind`.
    fn attribute(&mut self, name: &str, kind: u64, number: u64) -> &mut Self {
        let attribute = Writer::default().bytes(1, name.as_bytes()).number(kind, number).0.clone();
        self.bytes(10, &attribute)
    }

    /// The start of a node.
    fn node(id: u64, name: &str, kind: u64, data: &[u64]) -> Self {
        let mut node = Writer::default();
        if id > 0 {
            node.number(1, id);
        }
        node.bytes(2, name.as_bytes()).number(3, kind);
        for &id in data {
            node.number(5, id);
        }
        node
    }

    fn compute(id: u64, micros: u64, data: &[u64]) -> Self {
        let mut node = Writer::node(id, "c", 4, data);
        node.number(7, micros);
        node
    }

    fn collective(id: u64, kind: u64, size: u64, group: &str, data: &[u64]) -> Self {
        let mut node = Writer::node(id, "coll", 7, data);
        node.attribute("comm_type", 9, kind).attribute("comm_size", 9, size).text("pg_name", group);
        node
    }

    /// A send (type 5) or a receive (type 6).
    fn message(id: u64, kind: u64, peer: u64, size: u64, tag: u64, data: &[u64]) -> Self {
        let mut node = Writer::node(id, "m", kind, data);
        let end = if kind == 5 { "comm_dst" } else { "comm_src" };
        node.attribute(end, 7, peer).attribute("comm_size", 13, size).attribute("comm_tag", 7, tag);
        node
    }
}

/// A whole trace.
fn trace(nodes: &[Writer]) -> Vec<u8> {
    let mut file = Writer::default();
    let metadata = Writer::default().bytes(1, b"0.0.4").0.clone();
    file.varint(metadata.len() as u64).0.extend(metadata);
    for node in nodes {
        file.varint(node.0.len() as u64).0.extend(&node.0);
    }
    file.0
}

#[test]
fn a_trace_of_two_ranks_decodes_field_by_field() {
    let [sender, receiver] = [SENDER, RECEIVER].map(|hex| read(&bytes(hex)).unwrap());
    let [compute, send] = &*sender.nodes else { panic!("{sender:?}") };
    assert_eq!((compute.id, compute.name.as_str(), compute.micros), (0, "c", 5));
    assert_eq!(compute.work, Work::Compute { cpu: false, operations: 0, bytes: 0 });
    assert_eq!(send.work, Work::Send(Peer { rank: 1, tag: 3, bytes: 8192 }));
    assert_eq!(send.dependencies, [Dependency { on: 0, data: true }]);
    assert_eq!(receiver.nodes[0].work, Work::Receive(Peer { rank: 0, tag: 3, bytes: 8192 }));
    assert_eq!((&sender.notes, &sender.unused), (&Notes::default(), &BTreeMap::new()));
}

#[test]
fn written_traces_have_the_same_bytes() {
    let mut compute = Writer::default();
    compute.bytes(2, b"c").number(3, 4).number(7, 5);
    let mut send = Writer::default();
    send.number(1, 1).bytes(2, b"s").number(3, 5).bytes(5, &[0]);
    send.attribute("comm_dst", 7, 1).attribute("comm_size", 9, 8192).attribute("comm_tag", 7, 3);
    assert_eq!(trace(&[compute, send]), bytes(SENDER));
}

#[test]
fn a_trace_without_anything_superfluous_is_written_as_it_was_read() {
    for hex in [SENDER, RECEIVER] {
        let file = bytes(hex);
        assert_eq!(write::plain(&read(&file).unwrap()), file);
    }
    // A compressed file is a trace, too.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.0.et.gz");
    std::fs::write(&path, write::compressed(&read(&bytes(SENDER)).unwrap()).unwrap()).unwrap();
    let (program, digest) = read_file(&path, 0).unwrap();
    assert_eq!(program, read(&bytes(SENDER)).unwrap());
    assert_eq!(digest, xxhash_rust::xxh3::xxh3_64(&bytes(SENDER)));
}

#[test]
fn a_written_trace_lacks_what_has_no_effect() {
    let mut compute = Writer::compute(3, 12, &[1]);
    compute.attribute("involved_cores", 9, 7).text("rf_id", "x").bytes(4, &[1, 99]);
    let mut inputs = Writer::node(1, "init", 1, &[]);
    let groups = Writer::default().bytes(1, b"['[{\"pg_name\":\"3\",\"ranks\":[0,1]}]']").0.clone();
    inputs.bytes(8, &groups).bytes(9, &[0; 0]);
    let program = read(&trace(&[inputs, compute])).unwrap();
    assert_eq!((program.unused.len(), program.notes.dangling), (2, 1));
    let again = read(&write::plain(&program)).unwrap();
    assert_eq!((&again.nodes, &again.groups), (&program.nodes, &program.groups));
    assert_eq!((again.unused.len(), again.notes), (0, Notes::default()));
    assert_eq!(again.groups["3"], [0, 1]);
}

#[test]
fn dependencies_point_forward_and_back_packed_or_not() {
    let mut packed = Writer::node(900, "a", 4, &[]);
    packed.bytes(4, &[5, 7]).bytes(5, &[7, 7]).number(4, 12);
    let nodes = [packed, Writer::compute(7, 1, &[900]), Writer::compute(5, 1, &[])];
    let program = read(&trace(&nodes)).unwrap();
    assert_eq!(program.nodes.iter().map(|node| node.id).collect::<Vec<_>>(), [5, 7, 900]);
    let on: Vec<_> = program.nodes[2].dependencies.iter().map(|d| (d.on, d.data)).collect();
    assert_eq!(on, [(1, true), (0, false)], "data first, each node once");
    assert_eq!((program.notes.dangling, program.notes.first_dangling), (1, Some((900, 12))));
}

#[test]
fn numbers_of_every_type_are_accepted() {
    for (kind, number) in [(7, 5), (9, 5), (11, 5), (13, 5), (15, 10), (17, 10)] {
        let mut node = Writer::node(1, "r", 7, &[]);
        node.attribute("comm_type", kind, number - number / 5 * 5).attribute("comm_size", kind, number);
        let program = read(&trace(&[node])).unwrap();
        let expected = Work::Collective { kind: Some(Kind::AllReduce), bytes: 5, group: String::new() };
        assert_eq!(program.nodes[0].work, expected, "field {kind}");
    }
    for (kind, wire, width) in [(19, 5, 4), (21, 1, 8), (23, 5, 4), (25, 1, 8)] {
        let mut attribute = Writer::default();
        attribute.bytes(1, b"comm_size").varint(kind << 3 | wire);
        attribute.0.extend(&9u64.to_le_bytes()[..width]);
        let mut node = Writer::node(1, "r", 7, &[]);
        node.attribute("comm_type", 9, 9).bytes(10, &attribute.0);
        assert!(read(&trace(&[node])).is_ok(), "field {kind}");
    }
}

#[test]
fn what_has_no_effect_is_counted() {
    let mut node = Writer::collective(1, 0, 8, "", &[]);
    node.attribute("rf_id", 9, 4).number(77, 1).attribute("is_cpu_op", 27, 1);
    let bools = Writer::default().bytes(1, &[1, 0]).0.clone();
    let dimensions = Writer::default().bytes(1, b"involved_dim").bytes(28, &bools).0.clone();
    node.bytes(10, &dimensions);
    let program = read(&trace(&[node, Writer::node(2, "", 0, &[])])).unwrap();
    let Notes { unknown_fields, partial, on_cpu, invalid, .. } = program.notes;
    assert_eq!((unknown_fields, partial, on_cpu, invalid), (1, 1, 1, 1));
    assert_eq!(program.unused, BTreeMap::from([("rf_id".to_owned(), 1)]));
}

#[test]
fn a_launch_on_the_cpu_and_its_kernel_are_one_collective() {
    let on_cpu = |mut node: Writer| node.attribute("is_cpu_op", 27, 1).number(7, 85).clone();
    let kernel = Writer::collective(2, 5, 212_480, "", &[1]);
    let nodes = [on_cpu(Writer::node(1, "c10d::broadcast_", 7, &[])), kernel];
    let program = read(&trace(&nodes)).unwrap();
    let launch = Work::Compute { cpu: true, operations: 0, bytes: 0 };
    assert_eq!((&program.nodes[0].work, program.nodes[0].micros), (&launch, 85));
    assert!(matches!(program.nodes[1].work, Work::Collective { bytes: 212_480, .. }));
    assert_eq!((program.notes.launches, program.notes.on_cpu), (1, 0));
    assert!(warnings("t", 0, std::slice::from_ref(&program)).is_empty());
    // So are launches of messages. A node that says what it does is no launch, on the CPU either.
    for kind in [5, 6] {
        let mut launch = on_cpu(Writer::node(1, "nccl:send", kind, &[]));
        launch.attribute("comm_size", 9, 8);
        assert_eq!(read(&trace(&[launch])).unwrap().notes.launches, 1);
    }
    let whole = read(&trace(&[on_cpu(Writer::collective(1, 0, 8, "", &[]))])).unwrap();
    assert_eq!((whole.notes.launches, whole.notes.on_cpu), (0, 1));
    // Without a kernel, nothing is sent.
    let alone = read(&trace(&nodes[..1])).unwrap();
    let text = "launches of communication on the CPU for which the GPU of the rank has no kernel, so that nothing is sent (t): 1";
    assert_eq!(warnings("t", 0, &[alone]), [code::LEFT_OUT.at("file", text)]);
}

#[test]
fn metadata_nodes_define_groups() {
    let metadata = |values: &str| {
        let inputs = Writer::default().bytes(1, values.as_bytes()).0.clone();
        Writer::node(1, "## process_group:init ##", 1, &[]).bytes(8, &inputs).clone()
    };
    let right =
        metadata("['[{\"pg_name\":\"3\",\"ranks\":[0,2]},{\"pg_name\":\"0\",\"ranks\":[],\"extra\":1}]']");
    let groups = read(&trace(&[right])).unwrap().groups;
    assert_eq!(groups, Groups::from([("3".into(), vec![0, 2]), ("0".into(), vec![])]));
    let wrong = read(&trace(&[metadata("['[{\"pg_name\":]']")])).unwrap();
    assert_eq!((wrong.groups.len(), wrong.notes.bad_groups), (0, 1));
    assert_eq!(read(&trace(&[metadata("pg_name")])).unwrap().notes.bad_groups, 1);
}

#[test]
fn the_start_of_a_file_tells_a_trace() {
    for (start, is) in [
        (bytes(SENDER), true),
        // Metadata without a version, and a file that begins with a node.
        (bytes("0a 1208 0a06736368656d61"), true),
        (trace(&[Writer::compute(1, 1, &[])])[8..].to_vec(), true),
        (bytes("04 0801 1800"), false),
        (vec![0x1f, 0x8b, 8, 0], false),
        (b"num_ranks 2\n".to_vec(), false),
        (b"7\n0 1 3 100\n".to_vec(), false),
        (b"Nodes 4\n".to_vec(), false),
        (b"[topology]\n".to_vec(), false),
        (vec![], false),
    ] {
        assert_eq!(is_trace(&start), is, "{start:?}");
    }
}

#[test]
fn files_of_ranks_are_found_by_one_of_them_by_their_start_and_by_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let write = |name: &str| std::fs::write(path(name), bytes(SENDER)).unwrap();
    (0..11).for_each(|rank| write(&format!("t.{rank}.et")));
    for name in ["t.0.et", "t.10.et", "t", "t.{rank}.et", ""] {
        let files = rank_files(&path(name)).unwrap();
        let expected: Vec<_> = (0..11).map(|rank| (rank, path(&format!("t.{rank}.et")))).collect();
        assert_eq!(files, expected, "{name}");
        assert!(is_start(&path(name)), "{name}");
    }
    write("single");
    assert_eq!(rank_files(&path("single")).unwrap(), [(0, path("single"))]);
    assert_eq!(rank_of(&path("t.7.et")), 7);
    let wrong = |name: &str| {
        rank_files(&path(name)).unwrap_err().text.replace(&format!("{}/", folder.path().display()), "")
    };
    assert_eq!(wrong("none"), "none names no trace; expected files such as none.0.et");
    assert!(!is_start(&path("none")) && is_name(&path("none.et.gz")) && !is_name(&path("t")));
    std::fs::create_dir(path("empty")).unwrap();
    let text = "the folder empty has no trace; expected files such as trace.0.et in it";
    assert_eq!(wrong("empty"), text);
    std::fs::remove_file(path("t.4.et")).unwrap();
    assert_eq!(wrong("t"), "rank 4 of t has no file: t.4.et is missing, and the last rank is 10");
    assert!(wrong("").ends_with("has no file: t.4.et is missing, and the last rank is 10"), "{}", wrong(""));
    write("t.04.et");
    write("t.4.et");
    assert_eq!(wrong("t"), "t.04.et and t.4.et are both rank 4");
    write("u.0.et");
    assert!(wrong("").contains("has several traces, such as t.{rank}.et and u.{rank}.et"), "{}", wrong(""));
}
