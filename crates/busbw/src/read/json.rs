//! The JSON of nccl-tests (`-J`) and of rccl-tests: one object with results, or rows as objects.

use super::nccl_tests::{agree, version_of};
use super::words::variable;
use crate::log::{Curve, Log, Point, Test};
use serde_json::{Deserializer, Value};

/// Reads a text that is JSON, as a whole or up to the place where it is torn.
pub(super) fn read(text: &str, log: &mut Log) {
    let mut found = Vec::new();
    let mut stream = Deserializer::from_str(text).into_iter::<Value>();
    let mut torn = None;
    for value in &mut stream {
        match value {
            Ok(value) => found.push(value),
            Err(error) => {
                torn = Some(error);
                break;
            }
        }
    }
    for value in &found {
        whole(value, log);
    }
    let Some(error) = torn else { return };
    let line = error.line();
    let shown = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    log.quote(line, shown, format!("the JSON breaks off: {error}"));
    // Whole rows before the break still count.
    let Some(results) = text.find("\"results\"") else { return };
    let Some(list) = text[results..].find('[') else { return };
    let mut rest = &text[results + list + 1..];
    let mut rows = Vec::new();
    while rows.len() < MOST_ROWS {
        let mut stream = Deserializer::from_str(rest).into_iter::<Value>();
        let Some(Ok(row)) = stream.next() else { break };
        let end = stream.byte_offset();
        rows.push(row);
        rest = rest.get(end..).unwrap_or_default().trim_start().trim_start_matches(',');
    }
    let test = text.find("_perf").and_then(|at| {
        let start = text[..at].rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        Test::named(text.get(start..at)?)
    });
    curve(&rows, test, log);
}

/// Most rows of a file. Our choice.
const MOST_ROWS: usize = 1 << 20;

fn whole(value: &Value, log: &mut Log) {
    if let Value::Array(rows) = value {
        return curve(rows, None, log);
    }
    for arg in value["args"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        variable(arg, 1, log);
    }
    let args = value["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let test = args.filter(|arg| arg.contains("_perf")).find_map(Test::named);
    for entry in value["env"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        variable(entry, 1, log);
    }
    if let Some(version) = value["nccl_version"].as_u64() {
        version_of(version, 1, log);
    }
    for device in value["devices"].as_array().into_iter().flatten() {
        if let Some(host) = device["hostname"].as_str() {
            *log.facts.hosts.entry(host.to_owned()).or_insert(0) += 1;
        }
        if let Some(gpu) = device["device_info"].as_str().filter(|_| log.facts.gpu.is_none()) {
            log.facts.gpu = log.told(1, gpu.to_owned());
        }
    }
    match value["results"].as_array() {
        Some(rows) => curve(rows, test, log),
        None => curve(std::slice::from_ref(value), test, log),
    }
}

fn curve(rows: &[Value], test: Option<Test>, log: &mut Log) {
    let mut curve = Curve { test, ..Curve::default() };
    for (i, row) in rows.iter().enumerate() {
        let number = i + 1;
        let name = ["collective", "name", "experiment_name"].iter().find_map(|key| row[*key].as_str());
        let of_row = name.and_then(Test::named);
        let Some(bytes) = number_of(&row["size"]) else {
            if row.is_object() && (row.get("size").is_some() || rows.len() > 1) {
                log.quote(number, &row.to_string(), "expected a result with `size`");
            }
            continue;
        };
        let group = match (&row["out_of_place"], &row["in_place"]) {
            (Value::Object(_), _) => &row["out_of_place"],
            (_, Value::Object(_)) => &row["in_place"],
            _ => row,
        };
        let of = |keys: &[&str]| keys.iter().find_map(|key| number_of(&group[*key])).unwrap_or(f64::NAN);
        let mut point = Point {
            line: number,
            bytes: bytes as u64,
            count: number_of(&row["count"]).unwrap_or(0.0) as u64,
            us: of(&["time", "cpu_time", "time_us"]),
            algbw: of(&["alg_bw", "algbw", "algBw"]),
            busbw: of(&["bus_bw", "busbw", "busBw"]),
            wrong: of(&["nwrong", "#wrong", "wrong"]),
        };
        if point.us.is_nan() || point.us <= 0.0 {
            log.quote(number, &row.to_string(), "expected a result with `time` above 0");
            continue;
        }
        if let Err(why) = agree(point.bytes, &mut point) {
            log.quote(number, &row.to_string(), why);
            continue;
        }
        let restarts = curve.points.last().is_some_and(|last| point.bytes <= last.bytes);
        if restarts || (of_row.is_some() && curve.test != of_row && !curve.points.is_empty()) {
            log.curves.push(std::mem::replace(&mut curve, Curve { test, ..Curve::default() }));
        }
        curve.test = of_row.or(curve.test);
        if let Some(redop) = row["redop"].as_str() {
            curve.reduces = Some(!redop.trim().eq_ignore_ascii_case("none"));
        }
        if let Some(ranks) = number_of(&row["ranks"]).or_else(|| number_of(&row["nranks"]))
            && log.facts.ranks.is_none()
        {
            log.facts.ranks = log.told(number, ranks as u32);
        }
        let per_node = number_of(&row["rankspernode"]).or_else(|| number_of(&row["ranksPerNode"]));
        if let Some(per_node) = per_node.filter(|_| log.facts.local_ranks.is_none()) {
            log.facts.local_ranks = log.told(number, per_node as u32);
        }
        let in_place = number_of(&row["in_place"]["nwrong"]).is_none() && row["in_place"].is_object();
        curve.unchecked_in_place |= point.wrong == 0.0 && in_place;
        curve.points.push(point);
        log.kinds.insert("nccl-tests");
    }
    if !curve.points.is_empty() {
        log.curves.push(curve);
    }
}

/// A number, or a text that is one.
fn number_of(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| number.is_finite() && *number >= 0.0)
}
