use super::testing::{SMALL, told};
use crate::{Checked, Source, check};
use model::{Rate, Time};
use std::fs;

fn laid(text: &str) -> (Checked, super::Laid) {
    let checked = check(&Source::new("s.toml", text), &[]).unwrap_or_else(|e| panic!("{e}"));
    let laid = checked.serving().unwrap();
    (checked, laid)
}

fn with(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    SMALL.replace(from, to)
}

#[test]
fn servers_become_instances_whose_ranks_have_nics_and_queue_pairs_to_their_peers() {
    let (checked, laid) = laid(SMALL);
    let of = |all: &[serving::spec::Instance]| all.iter().map(|one| one.nics.clone()).collect::<Vec<_>>();
    assert_eq!((of(&laid.spec.prefills), of(&laid.spec.decodes)), (vec![vec![0, 1]], vec![vec![2, 3]]));
    let pairs: Vec<_> = checked.plan.qps.iter().map(|qp| (qp.from.0, qp.to.0)).collect();
    assert_eq!(pairs, [(0, 2), (1, 3)]);
    assert_eq!(checked.plan.messages.len(), 0, "the program posts them");
    assert_eq!(laid.spec.requests.len(), 3);
    let pull = with("decode = {", "transfer = { way = \"pull\", qps = 2 }\ndecode = {");
    assert_eq!(super::tests::laid(&pull).0.plan.qps.len(), 8);
}

#[test]
fn two_gpus_that_share_a_nic_are_one_sender_and_a_server_holds_several_instances() {
    let shared = with("gpus = 2", "gpus = 4\nnics = 2");
    let (_, laid) = laid(&shared);
    assert_eq!(laid.spec.prefills[0].nics, [0, 0, 2, 2]);
    assert_eq!(laid.spec.prefills[0].server_nics, [0, 2]);
    let halves = shared.replace("servers = \"0\",", "servers = \"0\", tp = 1,");
    let (_, laid) = super::tests::laid(&halves);
    assert_eq!((laid.spec.prefills.len(), laid.spec.decodes.len()), (4, 1));
    assert_eq!(laid.spec.tp(), (1, 4));
}

/// As llm-d runs them on two servers: prefill on some GPUs of each, decoding on the others.
#[test]
fn both_sides_may_share_servers_if_each_has_gpus_of_its_own() {
    let shared = with("gpus = 2", "gpus = 4")
        .replace("servers = \"0\",", "servers = \"0..1\", gpus = \"0..1\", tp = 1,")
        .replace("servers = \"1\",", "servers = \"0..1\", gpus = \"2..3\",");
    let (checked, laid) = laid(&shared);
    let of = |all: &[serving::spec::Instance]| all.iter().map(|one| one.nics.clone()).collect::<Vec<_>>();
    assert_eq!(of(&laid.spec.prefills), [[0], [1], [4], [5]]);
    assert_eq!(of(&laid.spec.decodes), [[2, 3], [6, 7]]);
    assert_eq!(checked.plan.qps.len(), 16, "without NVLink, a server's KV leaves by its NICs, too");
    let overlap = shared.replace("gpus = \"2..3\"", "gpus = \"1..2\"");
    assert!(told(&overlap).starts_with("server 0 has prefill instances"), "{}", told(&overlap));
}

#[test]
fn mistakes_are_named_with_what_was_expected() {
    let located = |text: &str| check(&Source::new("s.toml", text), &[]).unwrap_err().located();
    assert_eq!(
        located(&with("qwen3-8b", "qwen3-8")),
        "s.toml:12:9: unknown model `qwen3-8`; did you mean `qwen3-8b`?"
    );
    let of = |from: &str, to: &str| told(&with(from, to));
    assert_eq!(
        of("memory = \"10GB\"", "memory = \"10MB\""),
        "a request of 1000 + 4 tokens takes 148635648B of KV, and an instance has 10MB"
    );
    assert_eq!(
        of("servers = \"1\"", "servers = \"0\""),
        "server 0 has prefill instances; the two sides have servers of their own, or `gpus`"
    );
    assert_eq!(of("memory = \"10GB\"", "memory = \"2000TB\""), "expected at most 1 PiB, found 2000000GB");
    let wide = "model = { layers = 1048576, hidden = 1, active = 1, heads = [1048576, 1048576] }";
    assert!(of("model = \"qwen3-8b\"", wide).starts_with("a request of 1000 + 4 tokens takes"));
    assert_eq!(of("servers = \"1\"", "servers = \"2\""), "there is no server 2; the servers are 0 to 1");
    assert_eq!(
        of("servers = \"0\",", "servers = \"0\", tp = 3,"),
        "expected a divisor of the 2 GPUs of a server, found 3"
    );
    assert_eq!(
        of("\"3.35TB/s\"", "\"3.35TB/s\", share = 2.0"),
        "expected a share above 0 and at most 1, found 2"
    );
    assert_eq!(of("rate = 100.0", "rate = 0.0"), "expected a number above 0, found 0");
    assert_eq!(of("input = 1000", "input = 0"), "expected 1 to 100000000 tokens, found 0");
    let cached = "servers = \"0\", cache-tokens = 10,";
    assert_eq!(
        of("servers = \"0\",", cached),
        "prompts have no ids of blocks, so no prefix is known; Mooncake's traces have them"
    );
    let place = |text: &str| of("decode = {", &format!("place = {{ {text} }}\ndecode = {{"));
    assert_eq!(place("decode = \"cache-aware\""), "\"cache-aware\" needs `decode.cache-tokens` above 0");
    assert_eq!(place("prefill = \"network-aware\""), "\"network-aware\" chooses decode instances alone");
    let early = "transfer = { way = \"layers\", reserve = \"at-transfer\" }\ndecode = {";
    assert!(of("decode = {", early).starts_with("cannot be \"at-transfer\" with `way = \"layers\"`"));
}

#[test]
fn a_model_may_be_stated_by_its_sizes_or_by_its_bytes() {
    let sizes = |keeps: &str| {
        let model = format!("model = {{ layers = 4, hidden = 64, active = 1000, {keeps} }}");
        laid(&with("model = \"qwen3-8b\"", &model)).1.spec.kv.token(2)
    };
    assert_eq!(sizes("heads = [4, 16]"), 2 * 4 * 4 * 16 * 2);
    assert_eq!(sizes("heads = [1, 16]"), 2 * 4 * 2 * 16 * 2, "each of two ranks keeps the only head");
    assert_eq!(sizes("latent = [30, 2]"), 4 * 32 * 2);
    assert_eq!(sizes("bytes-per-token = \"777B\""), 777);
    let none = |sizes: &str| {
        told(&with("model = \"qwen3-8b\"", &format!("model = {{ layers = 4, hidden = 64, {sizes} }}")))
    };
    assert_eq!(
        none("active = 1, bytes-per-token = \"0B\""),
        "expected at least 1 byte of KV, here or in `bytes-per-request`, found none"
    );
    assert_eq!(none("active = 1, bytes-per-token = \"0B\", bytes-per-request = \"1MB\""), "");
    assert_eq!(none("active = 0, heads = [1, 1]"), "expected at least 1, found 0");
    let vague = "expected the name of a model, or a table of `layers`, `hidden`, `active` and one of `heads`, `latent` and \
                 `bytes-per-token`";
    assert_eq!(none("active = 1, head = [1, 1]"), vague);
    let both = "model = { layers = 4, hidden = 64, active = 1, heads = [1, 1], latent = [1, 1] }";
    let text = told(&with("model = \"qwen3-8b\"", both));
    assert_eq!(text, "expected exactly one of `heads`, `latent` and `bytes-per-token`");
}

/// Full frames of 1,438 B take 1,520 B with preamble and gap.
#[test]
fn host_software_paces_the_class_of_the_job() {
    let slow = with("decode = {", "transfer = { rate = \"50Gbps\" }\ndecode = {");
    let table =
        |text: &str| laid(text).0.plan.nic_classes.table.iter().map(|class| class.rate).collect::<Vec<_>>();
    let paced = Some(Rate(50_000_000_000 * 1520 / 1438));
    assert_eq!(table(&slow), [paced]);
    assert_eq!(table(SMALL), []);
    assert_eq!(table(&slow.replace("50Gbps", "99Gbps")), [], "the line is slower");
    let beside = format!("{slow}[[workload]]\nneighbour-ring = {{}}\n");
    assert_eq!(table(&beside), [paced, None]);
    let shared = beside.replace("class = \"kv\"\n", "");
    assert!(told(&shared).contains("other jobs share the traffic class `foreground`"), "{}", told(&shared));
    let own = format!("[nic]\nclasses = [{{ of = [\"kv\"], weight = 3 }}, {{ weight = 1 }}]\n{beside}");
    assert_eq!(table(&own), [paced, None]);
    // The NIC's class may have a rate of its own; the lower of the two counts.
    let rated = |rate: &str| own.replace("weight = 3", &format!("weight = 3, rate = \"{rate}\""));
    assert_eq!(table(&rated("20Gbps")), [Some(Rate::from_gbps(20)), None]);
    assert_eq!(table(&rated("90Gbps")), [paced, None]);
    let alone = own.replace("[\"kv\"]", "[\"kv\", \"other\"]");
    assert!(
        told(&alone).starts_with("host software limits the NIC to 50Gbps of payload"),
        "{}",
        told(&alone)
    );
}

#[test]
fn a_preset_on_other_nics_than_its_own_is_warned_of() {
    let preset = with("decode = {", "transfer = { preset = \"vllm-mooncake\" }\ndecode = {");
    assert_eq!(
        told(&preset),
        "\"vllm-mooncake\" was measured on NICs of 200Gbps, and these have 100Gbps: 146Gbps per NIC is taken as it is"
    );
    assert_eq!(told(&preset.replace("100Gbps", "200Gbps")), "");
}

#[test]
fn what_decides_the_answer_is_said() {
    let said = |text: &str| laid(text).1.assumed.join("; ");
    assert!(said(SMALL).contains("host software costs nothing"));
    let latent = with("qwen3-8b", "deepseek-v3");
    assert!(said(&latent).contains("a latent crosses once and not to each of 2 ranks"));
    assert!(said(&latent).contains("sends and stores 2 times the bytes"));
    let layers = with("decode = {", "transfer = { way = \"layers\" }\ndecode = {");
    assert!(said(&layers).contains("times of transfers count from the end of the prefill"));
    let paid =
        with("decode = {", "transfer = { preset = \"sglang-mooncake\", rate = \"1Gbps\" }\ndecode = {");
    assert!(!said(&paid).contains("costs nothing"));
}

/// Ten requests at two times, as traces that round their times have them.
fn trace(keys: &str) -> (Vec<String>, Vec<(Time, u64)>) {
    let folder = tempfile::tempdir().unwrap();
    let line = |i: u64| {
        let ms = i / 5 * 3000;
        format!(
            "{{\"timestamp\": {ms}, \"input_length\": {}, \"output_length\": 2, \"hash_ids\": [1]}}\n",
            100 + i
        )
    };
    fs::write(folder.path().join("t.jsonl"), (0..10).map(line).collect::<String>()).unwrap();
    let trace = format!("trace = {{ file = \"t.jsonl\", format = \"mooncake\"{keys} }}");
    let path = folder.path().join("s.toml");
    fs::write(&path, with("arrivals = { rate = 100.0, count = 3, input = 1000, output = 4 }", &trace))
        .unwrap();
    let checked = crate::load(path.to_str().unwrap(), &[]).unwrap_or_else(|e| panic!("{e}"));
    let requests = checked.serving().unwrap().spec.requests;
    (checked.warnings(), requests.iter().map(|request| (request.at, request.input)).collect())
}

#[test]
fn requests_that_share_their_times_are_spread_over_the_usual_step_and_the_user_is_told() {
    let (told, requests) = trace("");
    assert_eq!(
        told,
        ["10 requests of t.jsonl have only 2 different times, so each is moved by up to 3ms, the usual step between them"
            .replace("3ms", "3s")]
    );
    assert!(requests.is_sorted() && requests[9].0 > Time::from_ms(3000), "{requests:?}");
    let mut times: Vec<Time> = requests.iter().map(|request| request.0).collect();
    times.dedup();
    assert_eq!(times.len(), 10);
    assert!(requests.iter().map(|request| request.1).eq(100..110), "those of one time keep their order");
    let (told, requests) = trace(", spread = \"0s\"");
    assert_eq!((told.len(), requests[4].0, requests[5].0), (0, Time::ZERO, Time::from_ms(3000)));
}

#[test]
fn a_window_and_a_rate_take_a_part_of_a_trace_and_shorten_it() {
    let (_, requests) = trace(", spread = \"0s\", window = [\"1s\", \"4s\"], rate = 2.0");
    assert_eq!(requests.len(), 5);
    assert_eq!(requests[0], (Time::from_ms(1000), 105), "3 s less 1 s, at twice the rate");
}

/// A serving scenario in a folder with these tables.
fn with_tables(prefill: &str, decode: &str) -> Result<Checked, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("p.csv"), prefill).unwrap();
    fs::write(folder.path().join("d.csv"), decode).unwrap();
    let text =
        with("flops = \"400TFLOPS\"", "table = \"p.csv\"").replace("hbm = \"3.35TB/s\"", "table = \"d.csv\"");
    let path = folder.path().join("s.toml");
    fs::write(&path, text).unwrap();
    crate::load(path.to_str().unwrap(), &[])
        .map_err(|error| error.located().replace(&format!("{}/", folder.path().display()), ""))
}

#[test]
fn measured_times_take_the_place_of_formulas() {
    let tables = with_tables("tokens,cached,ms\n500,0,20\n1500,0,60\n", "batch,context,ms\n1,1000,11.5\n");
    let laid = tables.unwrap().serving().unwrap();
    assert_eq!(laid.spec.prefill.time(1000, 0), Time::from_ms(40));
    assert_eq!(laid.spec.decode.time(3, 3000), Time::from_us(11_500));
    assert!(laid.assumed[0].starts_with("computation follows your tables"), "{:?}", laid.assumed);
}

#[test]
fn a_wrong_table_is_named_with_its_place_and_one_way_to_compute_is_enough() {
    let good = "tokens,cached,ms\n500,0,20\n";
    let told = |prefill, decode| with_tables(prefill, decode).unwrap_err();
    assert_eq!(
        told(good, "batch,context,ms\n1,many,11\n"),
        "d.csv:2:3: expected a number of tokens (`context`), found `many`"
    );
    let cached = told("tokens,cached,ms\n500,100,20\n", "batch,context,ms\n1,1,1\n");
    assert!(
        cached.ends_with("expected rows with `cached` 0; a known start saves the time of its own tokens"),
        "{cached}"
    );
    let both = with("hbm = \"3.35TB/s\"", "hbm = \"3.35TB/s\", table = \"none.csv\"");
    let missing = check(&Source::new("s.toml", both), &[]).unwrap_err().located();
    assert!(missing.contains("none.csv cannot be read"), "{missing}");
    assert_eq!(told_of_none(), "expected `flops` or `table`, found neither");
}

fn told_of_none() -> String {
    told(&with("flops = \"400TFLOPS\"", ""))
}

#[test]
fn an_open_loop_says_what_it_assumes_and_refuses_what_looks_at_the_network() {
    let open = |more: &str| with("decode = {", &format!("loop = \"open\"\n{more}\ndecode = {{"));
    let (_, laid) = laid(&open("transfer = { way = \"layers\", rails = \"round-robin\" }"));
    assert!(laid.spec.open && laid.assumed.iter().any(|line| line.starts_with("the loop is open")));
    for (more, key) in [
        ("place = { decode = \"network-aware\" }", "place.decode"),
        ("place = { decode = \"oracle\" }", "place.decode"),
        ("transfer = { rails = \"least-inflight\" }", "transfer.rails"),
        ("transfer = { way = \"pull\" }", "transfer.way"),
    ] {
        let refused = check(&Source::new("s.toml", open(more)), &[]).unwrap_err().to_string();
        assert!(refused.contains("the loop is open"), "{key}: {refused}");
    }
}
