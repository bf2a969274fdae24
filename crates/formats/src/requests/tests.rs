use super::*;
use files::damage::Draws;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Ten requests in two instants, as traces that round their times have them.
const MOONCAKE: &str = "{\"timestamp\": 0, \"input_length\": 1100, \"output_length\": 40, \"hash_ids\": [1, 2, 3]}\n\
    {\"timestamp\": 0, \"input_length\": 1500, \"output_length\": 12, \"hash_ids\": [1, 2, 4]}\n\
    {\"timestamp\": 3000, \"input_length\": 512, \"output_length\": 8, \"hash_ids\": [5]}\n\n\
    {\"timestamp\": 3000, \"input_length\": 2600, \"output_length\": 100, \"hash_ids\": [1, 2, 3, 6, 7, 8], \"type\": \"text\"}\n";
const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00.0000000,700,25\n\
    2023-11-16 18:00:01.2500000,3200,110\r\n2023-11-16 18:00:01.9000001,45,300\n";
const BURST: &str = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
    5.0,,3.2,ChatGPT,472,18,490,API log\n45.5,17,9.8,GPT-4,1087,230,1317,Conversation log\n\
    118.0,17,7.1,GPT-4,1420,0,1420,Conversation log\n";

fn told(format: Format, text: &str) -> String {
    read(format, "t", text).unwrap_err().located()
}

#[test]
fn mooncakes_lines_have_times_in_ms_and_ids_of_blocks() {
    let trace = read(Format::Mooncake, "t", MOONCAKE).unwrap();
    let seen: Vec<_> =
        trace.requests.iter().map(|r| (r.line, r.at, r.input, r.output, r.blocks.len())).collect();
    let three = 3_000_000_000_000;
    assert_eq!(
        seen,
        [(1, 0, 1100, 40, 3), (2, 0, 1500, 12, 3), (3, three, 512, 8, 1), (5, three, 2600, 100, 6)]
    );
    assert!(trace.has_blocks());
}

#[test]
fn a_trace_whose_requests_share_their_times_has_a_usual_step_and_another_one_has_none() {
    let trace = read(Format::Mooncake, "t", MOONCAKE).unwrap();
    assert_eq!((trace.times(), trace.step_of_shared_times()), (2, Some(3_000_000_000_000)));
    assert_eq!(read(Format::Azure, "t", AZURE).unwrap().step_of_shared_times(), None);
    assert_eq!(Trace::default().step_of_shared_times(), None);
    // Of several steps, the most frequent one.
    let line = |ms: u64| format!("{{\"timestamp\": {ms}, \"input_length\": 1, \"output_length\": 1}}\n");
    let text: String = [0, 0, 3000, 3000, 6000, 6000, 7000, 7000].into_iter().map(line).collect();
    let step = read(Format::Mooncake, "t", &text).unwrap().step_of_shared_times();
    assert_eq!(step, Some(3_000_000_000_000));
    let text: String = [0, 0, 3000, 3000, 6000, 6000, 7000, 8500, 9000].into_iter().map(line).collect();
    let trace = read(Format::Mooncake, "t", &text).unwrap();
    assert_eq!(trace.times(), 6);
    assert_eq!(trace.step_of_shared_times(), Some(3_000_000_000_000), "six of nine share their time");
}

#[test]
fn azures_times_count_from_the_first_request() {
    let trace = read(Format::Azure, "t", AZURE).unwrap();
    let seen: Vec<_> = trace.requests.iter().map(|r| (r.at, r.input, r.output)).collect();
    assert_eq!(seen, [(0, 700, 25), (1_250_000_000_000, 3200, 110), (1_900_000_100_000, 45, 300)]);
    assert!(!trace.has_blocks());
    let over_a_leap_day = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-02-28 23:59:59.5+00:00,1,1\n\
        2024-03-01T00:00:00Z,1,1\n";
    let trace = read(Format::Azure, "t", over_a_leap_day).unwrap();
    assert_eq!(trace.requests[1].at, (86_400 + 1) * 1_000_000_000_000 - 500_000_000_000);
}

#[test]
fn failed_requests_of_burstgpt_are_left_out_and_counted() {
    let trace = read(Format::BurstGpt, "t", BURST).unwrap();
    let seen: Vec<_> = trace.requests.iter().map(|r| (r.at, r.input, r.output)).collect();
    assert_eq!(seen, [(0, 472, 18), (40_500_000_000_000, 1087, 230)]);
    assert_eq!(trace.failed, 1);
}

#[test]
fn errors_name_line_and_column_and_what_was_expected() {
    let damaged = MOONCAKE.replace("1500", "\"many\"");
    let want = "t:2:39: expected {\"timestamp\": MS, \"input_length\": TOKENS, \"output_length\": TOKENS, \"hash_ids\": [IDS]}, \
                found: invalid type: string \"many\", expected u64";
    assert_eq!(told(Format::Mooncake, &damaged), want);
    let back = MOONCAKE.replacen("\"timestamp\": 0", "\"timestamp\": 9", 1);
    assert_eq!(
        told(Format::Mooncake, &back),
        "t:2:1: times must not decrease; found timestamp 0 after a later one"
    );
    assert_eq!(
        told(Format::Azure, &AZURE.replace("3200", "x")),
        "t:3:29: expected a number of tokens (`ContextTokens`), found `x`"
    );
    let no_day = AZURE.replace("11-16 18:00:01.2", "11-99 18:00:01.2");
    assert_eq!(
        told(Format::Azure, &no_day),
        "t:3:1: expected a time such as 2023-11-16 18:17:03.9799600, found `2023-11-99 18:00:01.2500000`"
    );
    for wrong in ["2023-02-29 18:00:01.25", "2023-11-31 18:00:01.25", "2023-11-16 18:00:61.0"] {
        let text = AZURE.replace("2023-11-16 18:00:01.2500000", wrong);
        let want = format!("t:3:1: expected a time such as 2023-11-16 18:17:03.9799600, found `{wrong}`");
        assert_eq!(told(Format::Azure, &text), want);
    }
    assert_eq!(
        told(Format::BurstGpt, &BURST.replace("118.0", "99999999.0")),
        "t:4:1: expected a time in seconds, below 18446744, found `99999999.0`"
    );
    assert_eq!(
        told(Format::Azure, &AZURE.replace("ContextTokens", "Context Tokens")),
        "t:1:1: the first row has no column `ContextTokens`; did you mean `Context Tokens`?"
    );
    assert_eq!(
        told(Format::BurstGpt, &BURST.replace("45.5", "4.5")),
        "t:3:1: times must not decrease; found 4.5 after a later one"
    );
    assert_eq!(
        told(Format::BurstGpt, "Timestamp,Request tokens,Response tokens\n1.0,5\n"),
        "t:2:5: expected 3 fields, as in the first row, found 2"
    );
    // A thousands separator would shift the columns after it.
    assert_eq!(
        told(Format::Azure, &AZURE.replace("3200", "3,200")),
        "t:3:35: expected 3 fields, as in the first row, found 4"
    );
    assert_eq!(told(Format::BurstGpt, ""), "t:1:1: expected a row of names, found an empty file");
}

proptest! {
    /// Damage is an error or changes the requests; it never ends the program.
    #[test]
    fn damaged_traces_never_panic(
        which in 0..3_usize, at in any::<prop::sample::Index>(), cut in 0..40_usize, put in "\\PC{0,12}"
    ) {
        let (format, text) =
            [(Format::Mooncake, MOONCAKE), (Format::Azure, AZURE), (Format::BurstGpt, BURST)][which];
        let from = at.index(text.len());
        let to = (from + cut).min(text.len());
        let damaged = format!("{}{put}{}", &text[..from], &text[to..]);
        for format in [format, Format::Mooncake, Format::Azure, Format::BurstGpt] {
            if let Ok(trace) = read(format, "t", &damaged) {
                prop_assert!(trace.requests.is_sorted_by_key(|request| request.at));
                prop_assert!(trace.requests.iter().all(|request| request.input > 0 && request.output > 0));
                let _ = trace.step_of_shared_times();
            }
        }
    }
}

const WORDS: [&str; 16] = [
    "0",
    "-1",
    "1.5",
    "1e400",
    "18446744073709551616",
    "null",
    "[]",
    "{",
    "}\n{",
    ",",
    "\n",
    "\r\n",
    "\"",
    "timestamp",
    "2024-02-29 23:59:60",
    "é",
];

/// Damages so many traces; returns the kinds of errors.
fn damage(traces: u64) -> BTreeSet<String> {
    let mut draws = Draws(5);
    let mut kinds = BTreeSet::new();
    let all = [(Format::Mooncake, MOONCAKE), (Format::Azure, AZURE), (Format::BurstGpt, BURST)];
    for number in 0..traces {
        let (format, text) = all[draws.below(3)];
        let mut text = text.to_owned();
        for _ in 0..=draws.below(3) {
            text = draws.change(&text, &WORDS);
        }
        match read(format, "t", &text) {
            Ok(trace) => {
                assert!(trace.requests.len() <= text.lines().count(), "trace {number}");
                assert!(trace.requests.is_sorted_by_key(|request| request.at), "trace {number}");
                assert!(trace.requests.iter().all(|request| request.input > 0 && request.output > 0));
                let _ = (trace.step_of_shared_times(), trace.times(), trace.has_blocks());
            }
            Err(error) => {
                assert!(error.place.is_some(), "trace {number}: {error:?}");
                kinds.insert(error.text.chars().filter(|c| !c.is_ascii_digit()).take(40).collect());
            }
        }
    }
    kinds
}

#[test]
fn damaged_traces_give_requests_or_an_error_with_its_place() {
    let kinds = damage(20_000);
    assert!(kinds.len() > 20, "{kinds:#?}");
}

/// Run it by `cargo test -p formats --lib -- --ignored a_million_damaged_traces`.
#[test]
#[ignore = "takes a minute"]
fn a_million_damaged_traces() {
    damage(1_000_000);
}

#[test]
fn tables_of_times_are_read_and_errors_name_their_place() {
    let table = times::steps("d", "batch,context,ms\n1,1024,11.0\n32,8192,19.25\n").unwrap();
    assert_eq!(table, [(1, 1024, 11_000_000_000), (32, 8192, 19_250_000_000)]);
    let told = |text: &str| times::prefills("p", text).unwrap_err().located();
    assert_eq!(told("tokens,cached,ms\n512,0,fast\n"), "p:2:7: expected a time in ms, found `fast`");
    assert_eq!(told("tokens,cached,ms\n0,0,1\n"), "p:2:1: expected at least 1 (`tokens`), found 0");
    assert_eq!(
        told("tokens,cache,ms\n"),
        "p:1:1: the first row has no column `cached`; did you mean `cache`?"
    );
    assert_eq!(told("tokens,cached,ms\n"), "p:1:17: expected rows with times, found none");
}
