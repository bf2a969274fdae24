//! `ropewalk import`: what it prints, what it writes, and that the scenario runs as the files themselves do.

use assert_cmd::Command;
use predicates::str::contains;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// A temporary directory in which commands run.
struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        Sandbox(TempDir::new().unwrap())
    }

    fn ropewalk(&self, args: &str) -> Command {
        let mut command = Command::cargo_bin("ropewalk").unwrap();
        command
            .args(args.split(' '))
            .current_dir(self.0.path())
            .env("NO_COLOR", "1")
            .timeout(std::time::Duration::from_secs(120));
        command
    }

    /// What a command prints that must succeed.
    fn printed(&self, args: &str) -> String {
        let output = self.ropewalk(args).assert().code(0).get_output().stdout.clone();
        String::from_utf8(output).unwrap()
    }

    /// The digest of a run, whose flows must all finish.
    fn digest(&self, args: &str) -> String {
        let summary: Value = serde_json::from_str(&self.printed(&format!("run {args} --json"))).unwrap();
        assert_eq!(summary["ending"], "finished", "{summary}");
        summary["digest"].as_str().unwrap().to_owned()
    }

    /// Fails with a message whose parts stand between ` ... `. The lines into which it is broken do not matter.
    fn refused(&self, args: &str, message: &str) {
        let assert = self.ropewalk(args).assert().code(2).stdout("");
        let errors = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        let words = errors.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in message.split(" ... ") {
            assert!(words.contains(part), "{part}: {errors}");
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

/// Two servers of two GPUs each, one ToR per rail, two spines.
const RAILS: &str =
    "[server]\ngpus = 2\n[topology.rails]\nservers = 2\nservers-per-segment = 1\nspines = 2\n";

/// The schedule of two ranks: a message that nobody receives, too.
const GOAL: &str = "num_ranks 2\nrank 0 {\na: calc 5000\nb: send 8192b to 1\nb requires a\nsend 10b to 1 tag 9\n}\n\
                    rank 1 {\nrecv 8192b from 0\n}\n";

#[test]
fn a_goal_schedule_is_written_in_its_binary_form() {
    let sandbox = Sandbox::new();
    sandbox.write("two.goal", GOAL);
    let printed = sandbox.printed("import goal two.goal --topology quickstart -o two");
    assert_eq!(
        printed,
        "two/two.toml written:\n  ranks        2\n  sends        2, 8,202 B\n  compute      5.00 us of all ranks together\n  \
         unmatched    1\nNext: ropewalk check two/two.toml; ropewalk run two/two.toml\n"
    );
    let digest = sandbox.digest("two.goal --topology quickstart -o out");
    assert_eq!(sandbox.digest("two/two.toml"), digest);
    let toml = sandbox.read("two/two.toml");
    assert!(toml.starts_with("# The GOAL schedule two.goal, which two.bin holds"), "{toml}");
    assert!(toml.contains("# The imported workload."), "{toml}");
    // A second import does not overwrite the first one, and leaves it as it is.
    sandbox.refused("import goal two.goal -o two", "exists already");
    assert_eq!(sandbox.read("two/two.toml"), toml);
    assert!(sandbox.path("two/two.bin").is_file());
}

/// The trace of a rank, as its fields in the wire format.
struct Trace(Vec<u8>);

impl Trace {
    fn new() -> Self {
        Trace(b"\x07\x0a\x050.0.4".to_vec())
    }

    /// Adds a node with dependencies, and attributes of the type int64.
    fn node(mut self, id: u8, kind: u8, micros: u8, after: &[u8], attributes: &[(&str, u32)]) -> Self {
        let mut node = vec![0x08, id, 0x12, 1, b'n', 0x18, kind, 0x38, micros];
        for &id in after {
            node.extend([0x28, id]);
        }
        for (name, mut number) in attributes.iter().copied() {
            let mut inner = vec![0x0a, name.len() as u8];
            inner.extend(name.bytes());
            inner.push(0x48);
            while number >= 0x80 {
                inner.push(number as u8 | 0x80);
                number >>= 7;
            }
            inner.push(number as u8);
            node.extend([0x52, inner.len() as u8]);
            node.extend(inner);
        }
        self.0.push(node.len() as u8);
        assert!(node.len() < 0x80, "the length of a node takes one byte here");
        self.0.extend(node);
        self
    }
}

/// The traces of four ranks: computation, an all-reduce of all ranks, and a message to the next rank; rank 3 sends one more.
fn four_ranks() -> [Vec<u8>; 4] {
    [0u8, 1, 2, 3].map(|rank| {
        let to = |rank: u8| u32::from(rank);
        let sums = [("comm_type", 0), ("comm_size", 65_536)];
        let trace = Trace::new()
            .node(1, 4, 20, &[], &[("made_up", 1)])
            .node(2, 7, 0, &[1], &sums)
            .node(3, 5, 0, &[2], &[("comm_dst", to((rank + 1) % 4)), ("comm_size", 4096)])
            .node(4, 6, 0, &[], &[("comm_src", to((rank + 3) % 4)), ("comm_size", 4096)]);
        match rank {
            3 => trace.node(5, 5, 0, &[], &[("comm_dst", 1), ("comm_size", 100), ("comm_tag", 2)]).0,
            _ => trace.0,
        }
    })
}

#[test]
fn a_chakra_trace_is_written_without_what_has_no_effect() {
    let sandbox = Sandbox::new();
    sandbox.write("rails.toml", RAILS);
    for (rank, trace) in four_ranks().iter().enumerate() {
        sandbox.write(&format!("t.{rank}.et"), trace);
    }
    let import = "import chakra t.0.et t.1.et t.3.et t.2.et --topology rails.toml -o small";
    let warning =
        contains("attributes of t.0.et that have no effect, with their numbers of nodes: `made_up` (4)");
    sandbox.ropewalk(import).assert().code(0).stderr(warning);
    let digest = sandbox.digest("t --topology rails.toml -o direct");
    assert_eq!(sandbox.digest("small/t.toml"), digest);
    for name in ["t.0.et.gz", "t.3.et.gz"] {
        assert!(sandbox.path("small").join(name).is_file(), "{name}");
    }
    // The import moves as a whole, without the files from which it was made.
    fs::rename(sandbox.path("small"), sandbox.path("elsewhere")).unwrap();
    (0..4).for_each(|rank| fs::remove_file(sandbox.path(&format!("t.{rank}.et"))).unwrap());
    sandbox.ropewalk("check elsewhere/t.toml").assert().code(0);
    assert_eq!(sandbox.digest("elsewhere/t.toml"), digest);
    // Its files are a trace like any other; imported again, they give the same run. Two rings of four ranks, one per NIC, pass
    // 8,192 B on 24 times each, every other time to the same server. Of the five messages, two stay in a server.
    let printed = sandbox.printed("import chakra elsewhere --topology rails.toml -o again");
    assert_eq!(
        printed,
        "again/t.toml written:\n  ranks        4\n  collectives  1\n  sends        27, 204,900 B\n  over NVLink  26, 204,800 B\n  \
         compute      80.0 us of all ranks together\n  unmatched    1\n\
         Next: ropewalk check again/t.toml; ropewalk run again/t.toml\n"
    );
    assert_eq!(sandbox.digest("again/t.toml"), digest);
}

#[test]
fn a_trace_of_one_rank_runs_on_all_gpus_with_its_groups() {
    let sandbox = Sandbox::new();
    sandbox.write("rails.toml", RAILS);
    let sums = [("comm_type", 0), ("comm_size", 65_536), ("pg_name", 7)];
    sandbox.write("one.0.et", Trace::new().node(1, 7, 0, &[], &sums).0);
    sandbox.write("g.json", "{\"7\": [0, 1]}");
    let import = "import chakra one.0.et --spmd --groups g.json --topology rails.toml -o one";
    assert!(sandbox.printed(import).contains("  ranks        4\n  collectives  2\n"));
    assert!(sandbox.read("one/one.toml").contains("groups = \"one.groups.json\""));
    sandbox.ropewalk("check one/one.toml").assert().code(0);
    let sets = "--set workload.0.chakra.replicate=spmd --set workload.0.chakra.groups=g.json -o out";
    let direct = sandbox.digest(&format!("one.0.et --topology rails.toml {sets}"));
    assert_eq!(sandbox.digest("one/one.toml"), direct);
    sandbox.refused("import chakra one.0.et --spmd -o two", "does not tell their number");
    sandbox.refused(
        "import chakra one.0.et -o two",
        "rank 0 node 1 `n`: the trace has one rank, and this needs several",
    );
    assert!(!sandbox.path("two").exists(), "nothing is left of an import that failed");
}

#[test]
fn wrong_traces_are_refused_with_their_place() {
    let sandbox = Sandbox::new();
    let [first, second, ..] = four_ranks();
    sandbox.write("t.0.et", &first);
    sandbox.write("t.1.et", &second[..second.len() - 3]);
    sandbox.write("u.1.et", &second);
    for (args, message) in [
        ("t.0.et", "t.1.et: byte 117: rank 1: expected a message"),
        ("t.0.et u.1.et", "t.0.et and u.1.et are files of two traces"),
        ("t.0.et t.0.et", "are both rank 0"),
        ("t.0.et t.2.et", "rank 1 of the trace has no file"),
        ("t.0.et t", "t names no rank; expected a file such as trace.0.et"),
        ("u.1.et", "rank 0 of u.1.et has no file"),
        ("nothing", "nothing names no trace"),
        ("t.0.et --topology nowhere", "neither a file nor a built-in scenario \"nowhere\""),
    ] {
        sandbox.refused(&format!("import chakra {args} -o out"), message);
        assert!(!sandbox.path("out").exists(), "{args}");
    }
    sandbox.write("t.1.et", &second);
    sandbox.refused(
        "import chakra t.0.et t.1.et -o out",
        "rank 0 node 4 `n`: there is no rank 3; the last one is 1",
    );
    assert!(!sandbox.path("out").exists());
}

/// A step of SimAI: two groups of two for tensors, two for data.
const SIMAI: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 \
                     checkpoints: 0 checkpoint_initiates: 0\n2\n\
                     attn -1 1000 ALLREDUCE 4096 900 ALLREDUCE 4096 800 NONE 0 100\n\
                     grads -1 1 NONE 0 1 NONE 0 1 REDUCESCATTER 8192 100\n";

/// Four GPUs of one server each on one switch, as SimAI writes it.
const SIMAI_TOPOLOGY: &str = "5 1 0 1 4 H100\n4\n0 4 400Gbps 0.0005ms 0\n1 4 400Gbps 0.0005ms 0\n2 4 400Gbps 0.0005ms 0\n\
                              3 4 400Gbps 0.0005ms 0\n";

#[test]
fn a_workload_of_simai_is_named_by_its_scenario() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("scenarios")).unwrap();
    sandbox.write("step.txt", SIMAI);
    sandbox.write("flat", SIMAI_TOPOLOGY);
    let printed = sandbox.printed("import simai step.txt --topology flat -o scenarios/step.toml");
    assert_eq!(
        printed,
        "scenarios/step.toml written:\n  ranks        4\n  collectives  6\n  sends        20, 49,152 B\n  compute      11.2 us of all \
         ranks together\n  unmatched    0\n\
         Next: ropewalk check scenarios/step.toml; ropewalk run scenarios/step.toml\n"
    );
    assert!(sandbox.read("scenarios/step.toml").contains("file = \"../step.txt\""));
    sandbox.ropewalk("check scenarios/step.toml").assert().code(0);
    let direct = sandbox.digest("step.txt --topology flat -o out");
    assert_eq!(sandbox.digest("scenarios/step.toml"), direct);
    // Without a topology, a switch joins the GPUs that the file counts.
    sandbox.printed("import simai step.txt -o star.toml");
    sandbox.digest("star.toml");
    sandbox.refused("import simai step.txt -o star.toml", "exists already");
    for (old, new, message) in [
        ("all_gpus: 4 ", "", "does not tell the number of GPUs"),
        ("900 ALLREDUCE", "900 ALREDUCE", "step.txt:3:33 ... expected a collective, found `ALREDUCE`"),
        ("\n2\n", "\n3\n", "step.txt:2:1 ... the file states 3 layers, but has 2"),
        ("NPU_group: 2", "NPU_group: 3", "groups of tp 3, pp 1 and ep 1 do not divide 4 GPUs"),
    ] {
        sandbox.write("step.txt", SIMAI.replacen(old, new, 1));
        sandbox.refused("import simai step.txt -o wrong.toml", message);
        assert!(!sandbox.path("wrong.toml").exists(), "{new}");
    }
}

/// The same bytes as gzip packs them, in one block without compression.
fn packed(content: &[u8]) -> Vec<u8> {
    let mut crc = u32::MAX;
    for byte in content {
        crc ^= u32::from(*byte);
        (0..8).for_each(|_| crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 });
    }
    let length = u16::try_from(content.len()).unwrap();
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    file.extend(length.to_le_bytes());
    file.extend((!length).to_le_bytes());
    file.extend(content);
    file.extend((!crc).to_le_bytes());
    file.extend(u32::from(length).to_le_bytes());
    file
}

#[test]
fn the_content_of_a_file_tells_its_format_whatever_its_name_and_packing() {
    let sandbox = Sandbox::new();
    sandbox.write("rails.toml", RAILS);
    sandbox.write("two.goal", GOAL);
    let digest = sandbox.digest("two.goal --topology quickstart -o out");
    sandbox.printed("import goal two.goal -o two");
    sandbox.write("two.goal.gz", packed(GOAL.as_bytes()));
    sandbox.write("two.et", GOAL);
    sandbox.write("two.json.gz", packed(&fs::read(sandbox.path("two/two.bin")).unwrap()));
    for name in ["two.goal.gz", "two.et", "two.json.gz"] {
        assert_eq!(sandbox.digest(&format!("{name} --topology quickstart -o out")), digest, "{name}");
    }
    sandbox.write("step.txt", SIMAI);
    sandbox.write("step.gz", packed(SIMAI.as_bytes()));
    sandbox.write("bom.txt", format!("\u{feff}{SIMAI}"));
    let digest = sandbox.digest("step.txt --topology rails.toml -o out");
    for name in ["step.gz", "bom.txt"] {
        assert_eq!(sandbox.digest(&format!("{name} --topology rails.toml -o out")), digest, "{name}");
    }
    // Readers of one format tell files of another one.
    sandbox.refused(
        "import simai two.goal.gz --topology rails.toml -o wrong",
        "two.goal.gz: this looks like a GOAL schedule",
    );
    sandbox.refused(
        "import chakra step.gz --topology rails.toml -o wrong",
        "step.gz: this looks like a workload of SimAI",
    );
}

#[test]
fn a_format_that_is_not_read_is_named_with_the_way_out_by_every_command() {
    let sandbox = Sandbox::new();
    sandbox.write("rails.toml", RAILS);
    let observer = "{\"schema\": \"1.1.0\", \"nodes\": [{\"id\": 1, \"name\": \"x\"}]}";
    sandbox.write("host.json", observer);
    sandbox.write("host.json.gz", packed(observer.as_bytes()));
    sandbox.write("host.0.et", observer);
    sandbox.write("nccl.xml", "<system version=\"1\"><cpu numaid=\"0\"/></system>");
    let message = "this looks like JSON of PyTorch's execution-trace observer, which ropewalk does not read ... chakra_trace_link ... chakra_converter";
    for name in ["host.json", "host.json.gz", "host.0.et"] {
        sandbox.refused(&format!("run {name} --topology rails.toml"), message);
        sandbox.refused(&format!("check {name}"), message);
        sandbox.refused(&format!("compare {name} --topology rails.toml --schemes ecmp,ar"), message);
        for from in ["chakra", "goal", "simai"] {
            sandbox.refused(&format!("import {from} {name} --topology rails.toml -o wrong"), message);
        }
        sandbox.refused(&format!("import htsim --cm {name} -o wrong.toml"), message);
        sandbox.refused(&format!("import hpcc --topology {name} --flows {name} -o wrong.toml"), message);
        sandbox.refused(&format!("tor check {name}"), message);
    }
    sandbox.write("two.goal", GOAL);
    sandbox.refused(
        "run two.goal --topology nccl.xml",
        "a topology of NCCL (XML), which ropewalk does not read ... [server]",
    );
}

#[test]
fn folders_of_traces_get_their_own_errors() {
    let sandbox = Sandbox::new();
    sandbox.write("rails.toml", RAILS);
    for folder in ["gap", "two", "empty"] {
        fs::create_dir(sandbox.path(folder)).unwrap();
    }
    for (rank, trace) in four_ranks().iter().enumerate() {
        if rank != 2 {
            sandbox.write(&format!("gap/t.{rank}.et"), trace);
        }
        sandbox.write(&format!("two/t.{rank}.et"), trace);
        sandbox.write(&format!("two/u.{rank}.et"), trace);
    }
    let missing = "has no file: t.2.et is missing, and the last rank is 3";
    for (path, message) in [
        ("gap", format!("rank 2 of gap {missing}")),
        ("gap/t", format!("rank 2 of gap/t {missing}")),
        ("gap/t.0.et", missing.to_owned()),
        (
            "two",
            "two has several traces, such as t.{rank}.et and u.{rank}.et ... name one of them".to_owned(),
        ),
        ("empty", "the folder empty has no trace; expected files such as trace.0.et in it".to_owned()),
        ("nowhere", "nowhere cannot be read: No such file".to_owned()),
    ] {
        sandbox.refused(&format!("run {path} --topology rails.toml"), &message);
    }
    sandbox.refused("run gap", &format!("gap is a folder, and a scenario is a file ... {missing}"));
    sandbox.refused("import chakra gap -o wrong", missing);
    sandbox.digest("two/t --topology rails.toml -o out");
}

#[test]
fn an_import_without_a_topology_has_room_for_the_hosts_of_one_switch() {
    let sandbox = Sandbox::new();
    let matrix = |nodes: u32| format!("Nodes {nodes}\nConnections 1\n0->1 start 0 size 1000\n");
    sandbox.write("large.cm", matrix(1023));
    let message = "large.cm:1:7 ... large.cm has 1023 hosts; without --topo, one switch joins them, and it has room for 1022 ... \
                   --topo names the fabric";
    sandbox.refused("import htsim --cm large.cm -o large.toml", message);
    // Its buffer has room for fewer.
    sandbox.write("large.cm", matrix(1022));
    let message =
        "without --topo, one switch joins all hosts: the headrooms of leaf0 ... --topo names the fabric";
    sandbox.refused("import htsim --cm large.cm -o large.toml", message);
    sandbox.write("large.cm", matrix(500));
    sandbox.printed("import htsim --cm large.cm -o large.toml");
    // A mistake in a fabric has its place in the file of the fabric.
    sandbox.write("small.toml", "[topology.leaf-spine]\nleaves = 0\n");
    sandbox.refused("import htsim --cm large.cm --topo small.toml -o other.toml", "--> small.toml:2:10");
    sandbox.write("endless.cm", matrix(4).replace("size 1000", "size 0"));
    sandbox.refused(
        "import htsim --cm endless.cm -o endless.toml",
        "endless.cm:3:19 ... never ends ... stop.after",
    );
    sandbox.write("large.txt", SIMAI.replace("all_gpus: 4", "all_gpus: 2048"));
    sandbox.refused("import simai large.txt -o large2.toml", "large.txt has 2048 hosts; without --topology");
}

/// Four hosts on two ToRs.
const TOPO: &str = "Nodes 4\nTiers 2\nTier 0\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 500\nRadix_Down 2\nRadix_Up 2\nTier 1\n\
                    Downlink_speed_Gbps 100\nDownlink_Latency_ns 500\nRadix_Down 2\n";

#[test]
fn a_matrix_of_timed_flows_becomes_a_list() {
    let sandbox = Sandbox::new();
    sandbox.write("tree.topo", TOPO);
    let matrix = "Nodes 4\nConnections 3\n0->2 id 1 start 0 size 100000\n0->3 id 2 start 0 size 200000\n1->3 id 3 start 2000 size 50\n";
    sandbox.write("flows.cm", matrix);
    let printed = sandbox.printed("import htsim --cm flows.cm --topo tree.topo -o flows.toml");
    assert_eq!(
        printed,
        "flows.toml written:\n  ranks        4\n  sends        3, 300,050 B\n  compute      0 us of all ranks together\n  \
         unmatched    0\nNext: ropewalk check flows.toml; ropewalk run flows.toml\n"
    );
    let direct = sandbox.digest("flows.cm --topology tree.topo -o out");
    // The scenario needs neither of the two files.
    fs::remove_file(sandbox.path("flows.cm")).unwrap();
    fs::remove_file(sandbox.path("tree.topo")).unwrap();
    sandbox.ropewalk("check flows.toml").assert().code(0);
    assert_eq!(sandbox.digest("flows.toml"), direct);
    assert!(sandbox.read("flows.toml").contains("has a list of its flows"));
}

#[test]
fn a_matrix_that_no_list_can_express_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write("tree.topo", TOPO);
    let chain = "Nodes 4\nConnections 2\nTriggers 1\n0->1 id 1 start 0 size 100000 recv_done_trigger 1\n\
                 1->2 id 2 trigger 1 size 100000\ntrigger id 1 oneshot\n";
    let messages =
        "Nodes 4\nConnections 2\n0->1 id 7 msg start 0 size 1000\n0->1 id 7 msg start 0 size 1000\n";
    // A list is sorted by start, which would number the two flows the other way round.
    let late = "Nodes 4\nConnections 2\n0->1 start 5000 size 1000\n0->1 start 0 size 2000\n";
    for (name, matrix) in [("chain", chain), ("messages", messages), ("late", late)] {
        sandbox.write(&format!("{name}.cm"), matrix);
        sandbox.printed(&format!("import htsim --cm {name}.cm --topo tree.topo -o {name}.toml"));
        let toml = sandbox.read(&format!("{name}.toml"));
        assert!(
            toml.contains(&format!("file = \"{name}.cm\"")) && toml.contains("reads it when it runs"),
            "{toml}"
        );
        let direct = sandbox.digest(&format!("{name}.cm --topology tree.topo -o out"));
        assert_eq!(sandbox.digest(&format!("{name}.toml")), direct, "{name}");
    }
    // Without a topology, one switch joins the hosts.
    sandbox.printed("import htsim --cm chain.cm -o star.toml");
    sandbox.digest("star.toml");
    for (old, new, message) in [
        ("1->2", "1->9", "chain.cm:5:4 ... there is no host 9"),
        ("Connections 2", "Connections 3", "chain.cm:2:13 ... `Connections 3`, but the file has 2"),
        ("Nodes 4", "Nodes 40", "chain.cm has 40 nodes; the fabric has 4 NIC ports"),
    ] {
        sandbox.write("chain.cm", chain.replacen(old, new, 1));
        sandbox.refused("import htsim --cm chain.cm --topo tree.topo -o wrong.toml", message);
        assert!(!sandbox.path("wrong.toml").exists(), "{new}");
    }
    sandbox.write("tree.topo", TOPO.replacen("Radix_Up 2", "Radix_Up 3", 1));
    sandbox.refused("import htsim --cm late.cm --topo tree.topo -o wrong.toml", "tree.topo:");
}

#[test]
fn files_of_hpcc_give_a_report_as_well() {
    let sandbox = Sandbox::new();
    sandbox.write("topology.txt", "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n");
    sandbox.write("flow.txt", "1\n0 1 3 100 10000 2\n");
    let printed = sandbox.printed("import hpcc --topology topology.txt --flows flow.txt -o mine.toml");
    assert_eq!(
        printed,
        "mine.toml written:\n  ranks        2\n  sends        1, 10,000 B\n  compute      0 us of all ranks together\n  \
         unmatched    0\nNext: ropewalk check mine.toml; ropewalk run mine.toml\n"
    );
}
