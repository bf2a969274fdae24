use super::*;
use crate::execute::execute;
use model::draw::{Key, Purpose, below};
use scenario::{Source, check};
use serving::Record;
use std::sync::atomic::AtomicBool;

/// Servers of eight GPUs on one leaf; one NIC of `gbps` for each, or for `nics` in all. Frames have 4 KiB of payload and no congestion
/// control acts, as in a test between two machines.
fn pair(model: &str, nics: u32, gbps: u32, keys: &str, work: &str) -> String {
    format!(
        "[server]\ngpus = 8\nnics = {nics}\nnvlink = \"off\"\n[topology.rails]\nservers = 2\nspines = 0\nrate = \"{gbps}Gbps\"\n\
         [wire]\npayload = \"4KiB\"\n[nic.congestion.none]\n{keys}\n[class.kv]\n[[workload]]\nname = \"kv\"\nclass = \"kv\"\n\
         [workload.serving]\nmodel = \"{model}\"\nprefill = {{ servers = \"0\", compute = {{ flops = \"400TFLOPS\" }} }}\n\
         decode = {{ servers = \"1\", memory = \"400GB\", compute = {{ hbm = \"3.35TB/s\" }} }}\n{work}\n"
    )
}

fn serve(text: &str) -> Run {
    on(text, engine::Kind::Window)
}

fn on(text: &str, kind: engine::Kind) -> Run {
    let run = played(text, kind);
    assert_eq!(run.faults(), [""; 0]);
    run
}

fn played(text: &str, kind: engine::Kind) -> Run {
    let checked = check(&Source::new("s.toml", text), &[]).unwrap_or_else(|e| panic!("{e}"));
    let stop = AtomicBool::new(false);
    execute(Prepared { checked, setup_s: 0.0 }, kind, &Progress::silent(&stop))
}

fn records(run: &Run) -> &[Record] {
    &run.served.as_ref().unwrap().requests
}

/// The time of one prompt's transfer in ms, host software included.
fn transfer_ms(run: &Run) -> f64 {
    let parts = records(run)[0].parts.unwrap();
    (parts.host + parts.alone + parts.excess).as_us() / 1000.0
}

/// One request with so many tokens in its prompt.
fn one(input: u64, transfer: &str) -> String {
    format!(
        "arrivals = {{ rate = 1.0, count = 1, input = {input}, output = 2 }}\ntransfer = {{ {transfer} }}"
    )
}

/// One flow alone takes its closed form, to the picosecond, whoever paces it and whichever way it goes.
#[test]
fn a_lone_transfer_takes_its_time_alone() {
    for (transfer, nics) in [
        ("", 8),
        ("rate = \"60Gbps\"", 8),
        ("preset = \"vllm-mooncake\", rate = \"33Gbps\"", 4),
        ("way = \"pull\", host = \"1ms\"", 8),
        ("rails = \"round-robin\"", 8),
        ("qps = 1, rails = \"least-inflight\"", 4),
    ] {
        let run = serve(&pair("qwen3-8b", nics, 100, "", &one(1000, transfer)));
        let parts = records(&run)[0].parts.unwrap();
        assert_eq!((parts.excess, parts.sum()), (Time::ZERO, records(&run)[0].ttft().unwrap()), "{transfer}");
        let ends: Vec<Time> = run.outcome.messages.iter().map(|message| message.received).collect();
        let last = ends.into_iter().max().unwrap();
        let begun = records(&run)[0].arrival + parts.queue + parts.prefill + parts.memory;
        assert_eq!(begun + parts.host + parts.alone, last, "{transfer}: nothing was cut to fit");
    }
}

/// A transfer in groups of layers hides behind the prefill, except for the last group and less than a packet of each other one.
#[test]
fn layers_of_a_long_prompt_hide_behind_its_prefill() {
    let of = |transfer: &str| {
        let run = serve(&pair("qwen3-8b", 8, 100, "", &one(4000, transfer)));
        records(&run)[0].parts.unwrap()
    };
    let (whole, layers) = (of(""), of("way = \"layers\", groups = 9"));
    assert!(layers.alone.ps() * 8 < whole.alone.ps(), "{layers:?} {whole:?}");
    assert!(layers.excess < Time::from_us(1), "{layers:?}");
}

/// Eight requests at once for two prefill servers and one decode server: the decode side's NICs are the bottleneck.
fn crowd(keys: &str) -> String {
    let head = "[server]\ngpus = 2\nnvlink = \"off\"\n[topology.leaf-spine]\nleaves = 3\nspines = 2\nhosts-per-leaf = 2\n\
                rate = \"100Gbps\"\n[wire]\npayload = \"4KiB\"\n[class.kv]\n";
    format!(
        "{head}{keys}\n[[workload]]\nname = \"kv\"\nclass = \"kv\"\n[workload.serving]\nmodel = \"qwen3-8b\"\n\
         arrivals = {{ rate = 10000.0, count = 8, input = {{ min = 50, max = 400 }}, output = {{ min = 1, max = 4 }} }}\n\
         prefill = {{ servers = \"0..1\", batch-tokens = 500, compute = {{ flops = \"400TFLOPS\" }} }}\n\
         decode = {{ servers = \"2\", memory = \"100MB\", compute = {{ hbm = \"3.35TB/s\" }} }}\n\
         slo = {{ ttft = \"30ms\" }}\n"
    )
}

#[test]
fn parts_add_up_under_contention_and_both_engines_agree() {
    let (window, reference) = (serve(&crowd("")), on(&crowd(""), engine::Kind::Reference));
    for record in records(&window) {
        assert_eq!(record.parts.unwrap().sum(), record.ttft().unwrap());
    }
    let excess = |record: &Record| record.parts.unwrap().excess;
    assert!(
        records(&window).iter().any(|record| excess(record) > Time::from_us(100)),
        "the decode side is crowded"
    );
    let memory = |record: &Record| record.parts.unwrap().memory;
    assert!(records(&window).iter().any(|record| memory(record) > Time::ZERO), "and its memory is short");
    assert_eq!(window.summary.digest, reference.summary.digest);
    assert_eq!(window.served, reference.served);
}

/// The rows of the tables and the section of the summary speak of the same requests.
#[test]
fn results_have_a_row_per_request_and_a_section() {
    let run = serve(&crowd(""));
    let results = run.results(Vec::new());
    assert_eq!(results.table("transfers").unwrap().rows(), 8);
    let table = results.table("requests").unwrap();
    let section = results.summary.serving.as_ref().unwrap();
    assert_eq!((table.rows(), section.requests, section.finished), (8, 8, 8));
    assert_eq!(section.kv_share, Some(1.0));
    assert!(section.network().starts_with("KV transfers took"), "{}", section.network());
    assert!(run.summary.complete && !section.assumed.is_empty());
}

/// Other jobs of the scenario run beside, and the end of serving is not the end of the run.
#[test]
fn another_job_on_the_same_links_makes_transfers_take_longer() {
    let alone = serve(&crowd(""));
    let text = crowd("")
        + "[[workload]]\nname = \"other\"\nflows = { list = [{ from = \"host0\", to = \"host4\", bytes = \"200MB\" }] }\n";
    let beside = serve(&text);
    let mean = |run: &Run| run.summary.serving.as_ref().unwrap().parts.excess_us.unwrap();
    assert!(mean(&beside) > mean(&alone), "{} {}", mean(&beside), mean(&alone));
    let share = beside.summary.serving.as_ref().unwrap().kv_share.unwrap();
    assert!(share < 1.0 && beside.outcome.messages.len() == alone.outcome.messages.len() + 1);
}

#[test]
fn a_run_that_is_stopped_early_keeps_what_has_ended() {
    let run = serve(&crowd("[stop]\nafter = \"20ms\""));
    let section = run.summary.serving.as_ref().unwrap();
    assert!(section.finished < 8 && !run.summary.complete, "{section:?}");
    assert_eq!(run.summary.ending, "stopped");
}

/// A small scenario by draws: instances that share servers and NICs, every way, rail, placement and order of memory.
fn drawn(seed: u64) -> String {
    let key = Key::new(seed, Purpose::Workload, 77);
    let mut ordinal = 0;
    let mut one_of = |all: &[&'static str]| {
        ordinal += 1;
        all[below(key.draw(ordinal), all.len())]
    };
    let (gpus, tp) = [("4", ["1", "2", "4"]), ("2", ["1", "2", "2"])][seed as usize % 2];
    let (nics, nvlink) = (one_of(&["1", "2"]), one_of(&["nvlink = \"off\"", ""]));
    let (from, to) = (one_of(&tp), one_of(&tp));
    let way = one_of(&["push", "pull", "layers"]);
    let rails = one_of(&["own", "round-robin", "least-inflight"]);
    let cost = one_of(&[
        "",
        ", rate = \"10Gbps\", host = \"3us\"",
        ", descriptor = \"1us\", descriptors = \"blocks\", qps = 2",
    ]);
    let place = one_of(&["round-robin", "least-loaded", "network-aware", "oracle", "same-tier"]);
    let first = one_of(&["decode", "prefill"]);
    let (memory, slots) = (one_of(&["30MB", "10GB"]), one_of(&["1", "3"]));
    let scheme = one_of(&["", "[nic.congestion.none]"]);
    format!(
        "[server]\ngpus = {gpus}\nnics = {nics}\n{nvlink}\n[topology.rails]\nservers = 4\nspines = 1\nrate = \"100Gbps\"\n\
         [wire]\npayload = \"4KiB\"\n{scheme}\n[class.kv]\n[[workload]]\nname = \"kv\"\nclass = \"kv\"\n[workload.serving]\n\
         first-token = \"{first}\"\n\
         model = {{ layers = 6, hidden = 64, active = 1000000000, heads = [2, 128] }}\n\
         arrivals = {{ rate = 500.0, count = 9, input = {{ min = 1, max = 900 }}, output = {{ min = 1, max = 5 }} }}\n\
         prefill = {{ servers = \"0..1\", tp = {from}, batch-tokens = 800, compute = {{ flops = \"400TFLOPS\" }} }}\n\
         decode = {{ servers = \"2..3\", tp = {to}, memory = \"{memory}\", slots = {slots}, compute = {{ hbm = \"3.35TB/s\" }} }}\n\
         transfer = {{ way = \"{way}\", rails = \"{rails}\"{cost} }}\nplace = {{ decode = \"{place}\", refresh = \"2ms\" }}\n"
    )
}

/// Whatever the settings, every request ends, its parts add up, both engines agree, and each byte of KV is a byte of a message.
#[test]
fn requests_of_random_scenarios_end_and_their_parts_add_up_in_both_engines() {
    for seed in 0..24 {
        let text = drawn(seed);
        let (window, reference) = (serve(&text), on(&text, engine::Kind::Reference));
        assert_eq!(window.served, reference.served, "{text}");
        assert_eq!(window.summary.digest, reference.summary.digest, "{text}");
        let mut bytes = 0;
        for record in records(&window) {
            let (Some(parts), Some(ttft)) = (record.parts, record.ttft()) else {
                panic!("{record:?}: {text}")
            };
            bytes += record.bytes;
            let first = if text.contains("first-token = \"prefill\"") {
                parts.queue + parts.prefill
            } else {
                parts.sum()
            };
            let early = if text.contains("\"layers\"") && text.contains("first-token = \"prefill\"") {
                parts.memory
            } else {
                Time::ZERO
            };
            assert_eq!(first + early, ttft, "{record:?}: {text}");
        }
        // A READ has a request of 64 B for each message.
        let messages = &window.checked.plan.messages;
        let sent: u64 = messages.iter().map(|message| message.bytes).sum();
        let asked = if text.contains("\"pull\"") { messages.len() as u64 / 2 * 64 } else { 0 };
        assert_eq!(sent, bytes + asked, "{text}");
    }
}

/// Prompt, and time in ms of nine transfers between two servers.
type Row = (u64, f64);

/// vLLM 0.11 with Mooncake's connector, Qwen3-8B, TP 8, two servers of H800 with eight ConnectX-7 of 200 Gb/s: kvcache-ai/Mooncake,
/// docs/source/performance/vllm/vllm-v1-pd-performance.md. The printed sizes are those of a block more than the prompt has.
const VLLM: [Row; 9] = [
    (129, 0.54),
    (257, 0.61),
    (513, 0.92),
    (1025, 1.50),
    (2049, 2.51),
    (4097, 4.75),
    (8193, 8.84),
    (16_385, 16.43),
    (32_769, 31.65),
];

/// SGLang with Mooncake's engine, Qwen3-235B-A22B, TP 8, two servers of H20 with four ports of 400 Gb/s: kvcache-ai/Mooncake,
/// docs/source/performance/sglang/sglang-benchmark-results-v1.md.
const SGLANG: [Row; 9] = [
    (128, 2.07),
    (256, 2.58),
    (512, 2.98),
    (1024, 3.96),
    (2048, 6.43),
    (4096, 10.95),
    (8192, 20.31),
    (16_384, 39.14),
    (32_768, 76.78),
];

/// Relative errors of the rows with these constants of the host software.
fn errors(of: (&str, u32, u32), rows: &[Row], transfer: &str) -> Vec<f64> {
    let (model, nics, gbps) = of;
    let error = |&(input, measured): &Row| {
        transfer_ms(&serve(&pair(model, nics, gbps, "", &one(input, transfer)))) / measured - 1.0
    };
    rows.iter().map(error).collect()
}

/// The two constants that meet the first and the last row: time before the first byte in us, and rate of a NIC in Mb/s.
fn fitted(rows: &[Row], bytes_per_token: f64, nics: f64) -> (u64, u64) {
    let bytes = |input: u64| input.div_ceil(16) as f64 * 16.0 * bytes_per_token;
    let ((first, short), (last, long)) = (rows[0], rows[rows.len() - 1]);
    let per_ms = (bytes(last) - bytes(first)) / (long - short);
    let host_ms = short - bytes(first) / per_ms;
    ((host_ms * 1000.0).round() as u64, (per_ms * 8e-3 / nics).round() as u64)
}

/// The largest error of the rows that were not used, and of the ends, in percent.
fn judged(of: (&str, u32, u32), rows: &[Row], bytes_per_token: f64) -> (f64, f64) {
    let (host, rate) = fitted(rows, bytes_per_token, of.1.into());
    let errors = errors(of, rows, &format!("host = \"{host}us\", rate = \"{rate}Mbps\""));
    eprintln!("{}: {host} us, {rate} Mb/s per NIC: {errors:.3?}", of.0);
    let largest = |errors: &[f64]| errors.iter().fold(0.0, |most: f64, error| most.max(error.abs() * 100.0));
    (largest(&errors[1..errors.len() - 1]), largest(&[errors[0], errors[errors.len() - 1]]))
}

/// Two constants from the first and the last row, and the other seven within 10 %. All rows together are 1.2 and 3 million packets.
#[test]
fn transfers_of_qwen3_8b_take_the_times_that_vllm_with_mooncake_took() {
    let (between, ends) = judged(("qwen3-8b", 8, 200), &VLLM, 147_456.0);
    assert!(between < 10.0 && ends < 1.0, "{between} {ends}");
}

#[test]
fn transfers_of_qwen3_235b_take_the_times_that_sglang_with_mooncake_took() {
    let (between, ends) = judged(("qwen3-235b-a22b", 4, 400), &SGLANG, 385_024.0);
    assert!(between < 10.0 && ends < 1.0, "{between} {ends}");
}

/// The presets are fitted to all nine rows, and no row is further off than 8 %.
#[test]
fn presets_meet_the_rows_to_which_they_were_fitted() {
    for (of, rows, preset) in [
        (("qwen3-8b", 8, 200), &VLLM, "vllm-mooncake"),
        (("qwen3-235b-a22b", 4, 400), &SGLANG, "sglang-mooncake"),
    ] {
        let errors = errors(of, rows, &format!("preset = \"{preset}\""));
        eprintln!("{preset}: {errors:.3?}");
        assert!(errors.iter().all(|error| error.abs() < 0.08), "{preset}: {errors:.3?}");
    }
}

/// A prompt that computes for longer than any run lasts leaves its request without an answer, and the run has failed.
#[test]
fn requests_that_did_not_finish_are_a_fault() {
    let slow = pair("qwen3-8b", 8, 100, "", &one(1000, "")).replace("400TFLOPS", "1MFLOPS");
    let run = played(&slow, engine::Kind::Window);
    assert_eq!(run.faults(), ["1 of 1 requests did not finish"]);
    assert!(!run.summary.complete);
}
