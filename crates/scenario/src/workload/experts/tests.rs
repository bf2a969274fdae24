use crate::{Checked, Source, check};
use std::path::Path;

/// A layer among two servers of two GPUs, whose eight experts take two of each token.
fn layer(rate: &str, keys: &str) -> String {
    format!(
        "[server]\ngpus = 2\nnvlink = {{ rate = \"800Gbps\", delay = \"1us\" }}\n[topology.rails]\nservers = 2\nspines = 1\n\
         rate = \"{rate}\"\n[[workload]]\n[workload.experts]\n\
         model = {{ hidden = 256, layers = 4, heads = 4, ffn = 1024, vocab = 1000, moe = {{ experts = 8, top-k = 2 }} }}\n{keys}\n"
    )
}

/// Checks a layer with NICs of 400 Gb/s; files lie in the folder.
fn checked(folder: &Path, keys: &str) -> Result<Checked, String> {
    let source = Source::new(folder.join("s.toml").display().to_string(), layer("400Gbps", keys));
    let folder = folder.display().to_string() + "/";
    check(&source, &[]).map_err(|e| e.located().replace(&folder, ""))
}

fn lay(keys: &str) -> Checked {
    checked(Path::new("."), keys).unwrap_or_else(|error| panic!("{keys}: {error}"))
}

/// Bytes from one NIC to another that the operations of a name send.
fn bytes(checked: &Checked, name: &str, from: u32, to: u32) -> u64 {
    let plan = &checked.plan;
    let of = plan.messages.iter().filter(|message| {
        let qp = &plan.qps[message.qp.index()];
        (qp.from.0, qp.to.0) == (from, to) && plan.operations[message.operation as usize].name == name
    });
    of.map(|message| message.bytes).sum()
}

#[test]
fn kernels_decide_the_bytes_of_a_token_and_its_messages() {
    // Eight tokens to two of eight experts: two for each expert, and four for each rank.
    let low = lay("tokens = 8\nrouting = { kernel = \"deepep-low-latency\" }");
    assert_eq!(bytes(&low, "dispatch", 0, 2), 4 * (256 + 2 * 4 + 16));
    assert_eq!(bytes(&low, "combine", 2, 0), 4 * 512);
    assert!(low.plan.messages.iter().all(|message| [280, 512].contains(&message.bytes)), "one token each");
    let none = lay("tokens = 8\ntuning = { nic = \"own\" }");
    assert_eq!((bytes(&none, "dispatch", 0, 2), none.plan.messages.len()), (4 * 512, 2 * 4 * 2));
    let own = "kernel = \"deepep-low-latency\", value-bytes = [2, 2], token-bytes = [0, 0]";
    assert_eq!(bytes(&lay(&format!("tokens = 8\nrouting = {{ {own} }}")), "dispatch", 0, 2), 4 * 512);
}

#[test]
fn skewed_tokens_are_forwarded_too() {
    let keys = |skew: &str| format!("tokens = 64\nrouting = {{ kernel = \"deepep-normal\", skew = {skew} }}");
    // From rank 0 to the rank of its number in the other server, and from there.
    let across = |skew| [(0, 2), (2, 0)].map(|(from, to)| bytes(&lay(&keys(skew)), "dispatch", from, to));
    let [there, from_there] = across("0");
    assert_eq!(there, from_there);
    let [there, from_there] = across("{ gini = 0.4 }");
    assert_ne!(there, from_there, "one server has more of the popular experts");
    assert!(there.max(from_there) <= 64 * 264, "no token crosses twice");
}

#[test]
fn micro_batches_share_the_tokens_of_a_step() {
    let keys = |micro: u32| {
        format!("tokens = 12\nlayers = 3\nmicro-batches = {micro}\nrouting = {{ message = \"expert\" }}")
    };
    let [one, five] = [1, 5].map(|micro| lay(&keys(micro)));
    let sum = |checked: &Checked| checked.plan.messages.iter().map(|message| message.bytes).sum::<u64>();
    assert_eq!(sum(&one), sum(&five));
    let dispatches = five.plan.operations.iter().filter(|o| o.name == "dispatch");
    let numbers: Vec<_> = dispatches.map(|o| (o.layer, o.micro_batch)).collect();
    assert_eq!((numbers.len(), numbers[0], numbers[14]), (15, (0, 0), (2, 4)));
}

#[test]
fn measured_routing_says_who_sends_how_many_tokens_to_which_expert() {
    let folder = tempfile::tempdir().unwrap();
    let with = |rows: &str, keys: &str| {
        let text = format!("layer,source_rank,expert,tokens\n{rows}");
        std::fs::write(folder.path().join("r.csv"), text).unwrap();
        let keys =
            format!("tokens = 4\ntuning = {{ nic = \"own\" }}\n{keys}\nrouting = {{ file = \"r.csv\" }}");
        checked(folder.path(), &keys)
    };
    let two = with("7,0,4,3\n7,0,6,1\n7,1,0,4\n7,3,5,2\n9,2,0,2\n", "layers = 2").unwrap();
    let tokens = |name, from, to| bytes(&two, name, from, to) / 512;
    let dispatched = [(0, 2), (0, 3), (1, 0), (2, 0), (3, 2), (2, 3)];
    // What stays inside a server crosses NVLink.
    assert_eq!(dispatched.map(|(from, to)| tokens("dispatch", from, to)), [3, 1, 0, 2, 0, 0]);
    assert_eq!(dispatched.map(|(from, to)| tokens("combine", to, from)), [3, 1, 0, 2, 0, 0]);
    for (rows, keys, message) in [
        ("7,4,0,1\n", "", "r.csv:2: there is no rank 4; the last one is 3"),
        ("7,0,0,1\n7,0,8,1\n", "", "r.csv:3: there is no expert 8; the last one is 7"),
        ("7,0,0,5\n", "", "r.csv:2: rank 0 sends 5 tokens to expert 0, and has 4 (`tokens`)"),
        ("7,0,0,4\n7,0,1,4\n7,0,2,1\n", "", "r.csv:4: rank 0 sends 9 times"),
        ("7,0,0,x\n", "", "r.csv:2:7: expected a number of tokens (`tokens`)"),
        ("7,0,0,4\n", "layers = 2", "expected at most 1, the layers of `routing.file`, found 2"),
    ] {
        let told = with(rows, keys).map(|_| ()).unwrap_err();
        assert!(told.contains(message), "{told}, expected {message}");
    }
}

#[test]
fn settings_that_cannot_be_played_are_refused_at_their_key() {
    for (keys, message) in [
        ("tokens = 0", "expected 1 to 2^24, found 0"),
        ("tokens = 8\nlayers = 0", "expected 1 to 100000, found 0"),
        ("tokens = 8\nmicro-batches = 9", "expected 9 to 2^24, found 8"),
        ("tokens = 8\nrouting = { skew = { gini = 0.9 } }", "expected 0 to 0.87"),
        ("tokens = 8\nrouting = { once-per-server = true, message = \"token\" }", "message = \"pair\""),
        ("tokens = 8\nrouting = { file = \"missing.csv\" }", "missing.csv"),
        ("tokens = 8\nrouting = { file = \"missing.csv\", kernel = \"deepep\" }", "deepep-normal"),
    ] {
        let told = checked(Path::new("."), keys).map(|_| ()).unwrap_err();
        assert!(told.contains(message), "{keys}: {told}");
    }
}

#[test]
fn a_kernel_on_nics_of_another_rate_is_doubtful() {
    let told = |rate| {
        let text = layer(rate, "tokens = 8\nrouting = { kernel = \"deepep-normal\" }");
        check(&Source::new("s.toml", text), &[]).unwrap().warnings().join("; ")
    };
    assert_eq!(told("400Gbps"), "");
    assert!(
        told("100Gbps").contains("measured on NICs of 400Gbps, and these have 100Gbps"),
        "{}",
        told("100Gbps")
    );
}
