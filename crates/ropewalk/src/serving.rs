//! What inference serving prints: before a run, what would be served; after it, what became of requests.

use results::summary::Serving;
use results::text::{bytes, count, maybe, number, percent};
use scenario::workload::serving::{Laid, Request};

/// A line: its label, and its parts.
pub(crate) type Line = (&'static str, Vec<String>);

/// A time in the unit that fits.
fn time(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", number(us / 1e6)),
        us if us >= 1e3 => format!("{} ms", number(us / 1e3)),
        us => format!("{} us", number(us)),
    }
}

/// The lines about the requests of a run.
pub(crate) fn of_run(told: &Serving) -> Vec<Line> {
    let spread = |name: &str, spread: Option<results::stats::Spread>| {
        spread.map_or_else(
            || format!("{name} -"),
            |x| format!("{name} p50 {}, p99 {}", time(x.p50), time(x.p99)),
        )
    };
    let gaps = match (told.itl_us_p50, told.itl_us_p99) {
        (Some(p50), Some(p99)) => format!("ITL p50 {}, p99 {}", time(p50), time(p99)),
        _ => "ITL -".to_owned(),
    };
    let done = format!("{} of {} finished", count(told.finished), count(told.requests));
    let mut lines = vec![
        ("requests", vec![done, spread("TTFT", told.ttft_us), spread("TPOT", told.tpot_us), gaps]),
        ("mean parts", parts(told)),
    ];
    let goodput = format!("{} requests/s", maybe(told.goodput));
    lines.push(match told.limits.is_empty() {
        true => ("finished", vec![goodput, "no limits (`slo`)".to_owned()]),
        false => {
            let kept = count(told.requests - told.missed);
            let kept = format!("{kept} of {} requests kept {}", count(told.requests), told.limits);
            ("limits", vec![kept, format!("goodput {goodput}")])
        }
    });
    let moved = match told.kv_share {
        Some(share) => format!("{} of KV, {} of all payload", bytes(told.kv_bytes), percent(share)),
        None => format!("{} of KV", bytes(told.kv_bytes)),
    };
    lines.push(("network", vec![told.network(), moved]));
    if !told.loads.is_empty() {
        let mut loads: Vec<String> =
            told.loads.iter().map(|(class, load)| format!("{class} {}", percent(*load))).collect();
        loads.push(
            "(of the line rate of the NICs that send it, from its first message to its last)".to_owned(),
        );
        lines.push(("load", loads));
    }
    lines.push(("assumed", told.assumed.clone()));
    lines
}

/// The mean parts of the time to the first token by decoding, which need not be the first token that counts.
fn parts(told: &Serving) -> Vec<String> {
    let of = &told.parts;
    let all = [
        ("queue", of.queue_us),
        ("prefill", of.prefill_us),
        ("memory wait", of.memory_us),
        ("host software", of.host_us),
        ("transfer alone", of.alone_us),
        ("transfer excess", of.excess_us),
        ("decode wait", of.wait_us),
        ("first step", of.first_step_us),
    ];
    let named = all.into_iter().filter_map(|(name, us)| Some(format!("{name} {}", time(us?))));
    let mut parts: Vec<String> = named.collect();
    if !parts.is_empty() {
        parts.push("(up to the first token by decoding)".to_owned());
    }
    parts
}

/// The lines about what a scenario would serve.
pub(crate) fn of_scenario(laid: &Laid) -> Vec<Line> {
    let spec = &laid.spec;
    let requests = &spec.requests;
    let all = requests.len().max(1) as f64;
    let mean = |tokens: fn(&Request) -> u64| {
        requests.iter().map(|request| tokens(request) as f64).sum::<f64>() / all
    };
    let (input, output) = (mean(|request| request.input), mean(|request| request.output));
    let last = requests.last().map_or(0.0, |request| request.at.as_us());
    let of = |what: &str, number: usize, tp: u64| format!("{number} {what} instances of {tp} GPUs");
    let (tp_prefill, tp_decode) = spec.tp();
    let token = spec.kv.token(tp_decode);
    let one = spec.kv.bytes(spec.kv.blocks(input.round() as u64), tp_decode);
    vec![
        (
            "serving",
            vec![
                format!("{} requests up to {}", count(requests.len() as u64), time(last)),
                format!("mean prompt {} tokens, answer {}", number(input), number(output)),
                of("prefill", spec.prefills.len(), tp_prefill),
                of("decode", spec.decodes.len(), tp_decode),
            ],
        ),
        (
            "KV",
            vec![
                format!("{} B per token on the wire", count(token)),
                format!("{} for the mean prompt", bytes(one)),
                format!("{} in all, without caches", bytes(laid.bytes())),
            ],
        ),
        ("load", loads(laid)),
        ("assumed", laid.assumed.clone()),
    ]
}

/// The lines about what a scenario would serve, as a text. Its messages follow from the run, so no list shows them.
pub(crate) fn text(laid: &Laid) -> String {
    let of = |(label, parts): &Line| {
        let lines = results::text::wrapped(&parts.join("; "));
        let lines = lines.lines().enumerate();
        lines.map(|(i, line)| format!("{:10}{line}\n", if i == 0 { label } else { "" })).collect::<String>()
    };
    of_scenario(laid).iter().map(of).collect()
}

/// The share of time for which instances compute, on average from the start of the job up to the last arrival. More than all of it cannot be served in time.
fn loads(laid: &Laid) -> Vec<String> {
    let spec = &laid.spec;
    let last = spec.requests.last().map_or(laid.start, |request| request.at);
    let time = last.since(laid.start).ps().max(1) as f64;
    let prefill: f64 =
        spec.requests.iter().map(|request| spec.prefill.time(request.input, 0).ps() as f64).sum();
    let share = prefill / time / spec.prefills.len() as f64;
    vec![format!(
        "prefill instances compute for {} of the time up to the last arrival, without caches",
        percent(share)
    )]
}
