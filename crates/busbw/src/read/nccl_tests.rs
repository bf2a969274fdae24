//! The text of nccl-tests and rccl-tests, of all versions.
//!
//! A row begins with size and count. Type, reduction and root follow, of which each may lack, and then one or two groups of time,
//! algorithm bandwidth, bus bandwidth and wrong elements. The header names the columns. New versions add four columns to a group, or a
//! time stamp to the line, and rccl-tests may add algorithm, protocol and channels. The first version of nccl-tests prints milliseconds.

use super::words::{number_behind, variable};
use crate::log::{Curve, Log, Point, Test};

/// The titles of columns that hold no result.
const WORDS: [&str; 11] =
    ["size", "bytes", "count", "n", "type", "redop", "op", "root", "algo", "proto", "nchannels"];

/// State of the reader.
#[derive(Default)]
pub(crate) struct Reader {
    /// The test that the next rows belong to.
    test: Option<Test>,
    /// Titles of the columns.
    columns: Vec<String>,
    curve: Curve,
}

impl Reader {
    /// Reads a line.
    pub(crate) fn line(&mut self, line: &str, number: usize, log: &mut Log) {
        if let Some(at) = line.find('#') {
            let text = line[at + 1..].trim();
            if self.comment(text, number, log) {
                return;
            }
        }
        self.command(line, number, log);
        let tokens: Vec<&str> = line.split_whitespace().collect();
        match row(&tokens, &self.columns) {
            Row::None => {}
            Row::Torn(why) => log.quote(number, line, why),
            Row::Read { groups, count, bytes, reduces } => {
                let Some(group) = groups.first() else { return };
                if self.curve.points.last().is_some_and(|last| bytes <= last.bytes) {
                    self.end(log);
                }
                if let Some(reduces) = reduces {
                    self.curve.reduces = Some(reduces);
                }
                self.curve.unchecked_in_place |=
                    groups.len() == 2 && group.wrong == 0.0 && groups[1].wrong.is_nan();
                self.curve.points.push(Point { line: number, bytes, count, ..*group });
                log.kinds.insert("nccl-tests");
            }
        }
    }

    /// Ends the run.
    pub(crate) fn end(&mut self, log: &mut Log) {
        let curve = std::mem::take(&mut self.curve);
        if !curve.points.is_empty() {
            log.curves.push(Curve { test: self.test, ..curve });
        }
    }

    /// Reads a comment; false if it may hold a row behind the mark.
    fn comment(&mut self, text: &str, number: usize, log: &mut Log) -> bool {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let has = |word: &str| words.iter().any(|w| w == word);
        if (has("size") || has("bytes")) && (has("busbw") || has("algbw")) {
            self.end(log);
            self.columns = words;
            log.kinds.insert("nccl-tests");
            return true;
        }
        if let Some(name) = text.split("Collective test starting:").nth(1) {
            self.end(log);
            self.test = name.split_whitespace().next().and_then(Test::named);
            log.kinds.insert("nccl-tests");
            return true;
        }
        if words.first().is_some_and(|word| word == "rank") {
            rank(text, number, log);
            return true;
        }
        if text.starts_with("nThread") {
            self.end(log);
            log.kinds.insert("nccl-tests");
        }
        if let Some(version) = number_behind(text, "nccl-library=") {
            version_of(version, number, log);
        }
        true
    }

    /// Reads a command line.
    fn command(&mut self, line: &str, number: usize, log: &mut Log) {
        if !line.contains("_perf") && !line.contains("NCCL_") {
            return;
        }
        for word in line.split([' ', '\t', '"', '\'', '`']).filter(|word| !word.is_empty()) {
            if word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).ends_with("_perf")
                && let Some(test) = Test::named(word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))
            {
                self.end(log);
                self.test = Some(test);
            }
            variable(word, number, log);
        }
    }
}

/// Enters NCCL's number of a version, such as 22705 or 2708.
pub(super) fn version_of(version: u64, line: usize, log: &mut Log) {
    let (major, minor) = match version {
        10_000.. => (version / 10_000, version / 100 % 100),
        _ => (version / 1_000, version / 100 % 10),
    };
    if log.facts.version.is_none() {
        log.facts.version = log.told(line, format!("{major}.{minor}"));
    }
}

/// Reads `Rank 0 Group 0 Pid 1 on HOST device 0 [0x1b] NAME`.
fn rank(text: &str, line: usize, log: &mut Log) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some(at) = words.iter().position(|word| *word == "on") else { return };
    let Some(host) = words.get(at + 1) else { return };
    *log.facts.hosts.entry((*host).to_owned()).or_insert(0) += 1;
    let name = words.iter().skip(at + 2).skip_while(|word| !word.starts_with('[')).skip(1);
    // A bus number may hold a blank, as in `[0x 7]`.
    let name: Vec<&str> = name.skip_while(|word| word.ends_with(']')).copied().collect();
    if log.facts.gpu.is_none() && !name.is_empty() {
        log.facts.gpu = log.told(line, name.join(" "));
    }
    log.kinds.insert("nccl-tests");
}

/// What a line holds.
enum Row {
    None,
    Torn(String),
    Read { bytes: u64, count: u64, reduces: Option<bool>, groups: Vec<Point> },
}

/// Most words of a prefix, such as a date, a time and a rank.
const PREFIX: usize = 5;

fn row(tokens: &[&str], columns: &[String]) -> Row {
    // The size may be glued to a prefix, such as `[1,0]<stdout>:1024`.
    for start in 0..tokens.len().min(PREFIX + 1) {
        let glued = tokens[start].rsplit([':', '>', ']']).next().unwrap_or_default();
        let Ok(bytes) = glued.parse::<u64>() else { continue };
        let Some(count) = tokens.get(start + 1).and_then(|token| token.parse::<u64>().ok()) else { continue };
        let rest = &tokens[start + 2..];
        // Behind size and count comes a type, or the first result. Dates and other numbers have neither.
        let is_type = rest.first().is_some_and(|word| TYPES.contains(&word.to_lowercase().as_str()));
        let is_result = !columns.is_empty() && rest.first().is_some_and(|word| result(word).is_some());
        if !is_type && !is_result {
            continue;
        }
        return behind_size(bytes, count, rest, columns);
    }
    Row::None
}

/// Types of elements.
const TYPES: [&str; 22] = [
    "float", "half", "double", "int8", "uint8", "int32", "uint32", "int64", "uint64", "bfloat16", "f8e4m3",
    "f8e5m2", "fp8_e4m3", "fp8_e5m2", "char", "int", "float16", "float32", "float64", "bf16", "f16", "u8",
];

/// A number of a result. `N/A` is none that was counted.
fn result(word: &str) -> Option<f64> {
    if word.eq_ignore_ascii_case("n/a") {
        return Some(f64::NAN);
    }
    word.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

fn behind_size(bytes: u64, count: u64, rest: &[&str], columns: &[String]) -> Row {
    let mut rest = rest;
    // A time stamp at the end: a date and a time of day.
    if let [.., date, time] = rest
        && date.matches('-').count() == 2
        && time.contains(':')
    {
        rest = &rest[..rest.len() - 2];
    }
    let titles: Vec<&str> = columns
        .iter()
        .map(String::as_str)
        .filter(|title| !WORDS.contains(title) && *title != "timestamp")
        .collect();
    let words = rest.iter().take_while(|word| result(word).is_none() && **word != "-1").count();
    let reduces = rest[..words].get(1).map(|redop| !redop.eq_ignore_ascii_case("none"));
    let mut numbers = &rest[words..];
    if titles.is_empty() {
        if numbers.len() % 4 == 1 || numbers.first() == Some(&"-1") {
            numbers = &numbers[1..];
        }
    } else {
        // The results end the row; before them stand type, reduction, root and what RCCL chose, as far as the version has them.
        let most = columns.iter().filter(|title| WORDS.contains(&title.as_str())).count().saturating_sub(2);
        match rest.len().checked_sub(titles.len()) {
            Some(before) if before <= most => numbers = &rest[before..],
            _ => {
                let root = usize::from(columns.iter().any(|title| title == "root") && !numbers.is_empty());
                let (expected, found) = (titles.len(), numbers.len() - root);
                return Row::Torn(format!("expected {expected} results in this row, found {found}"));
            }
        }
    }
    let usual = ["time", "algbw", "busbw", "#wrong"];
    let titles: Vec<&str> = match titles.is_empty() {
        true => usual.iter().copied().cycle().take(numbers.len()).collect(),
        false => titles,
    };
    if numbers.len() != titles.len() || titles.len() < 3 {
        return Row::Torn(format!(
            "expected {} results in this row, found {}",
            titles.len().max(4),
            numbers.len()
        ));
    }
    let mut groups: Vec<Point> = Vec::new();
    for (title, word) in titles.iter().zip(numbers) {
        let Some(value) = result(word) else {
            return Row::Torn(format!("expected a number in column `{title}`, found `{word}`"));
        };
        if matches!(*title, "time" | "cputime") {
            groups.push(Point {
                line: 0,
                bytes,
                count,
                us: value,
                algbw: f64::NAN,
                busbw: f64::NAN,
                wrong: f64::NAN,
            });
        }
        let Some(group) = groups.last_mut() else { continue };
        match *title {
            "algbw" => group.algbw = value,
            "busbw" => group.busbw = value,
            "#wrong" | "wrong" | "error" | "res" => group.wrong = value,
            _ => {}
        }
    }
    groups.retain(|group| group.us.is_finite() && group.us > 0.0);
    for group in &mut groups {
        if let Err(why) = agree(bytes, group) {
            return Row::Torn(why);
        }
    }
    match groups.is_empty() {
        true if bytes == 0 => Row::None,
        true => Row::Torn("expected a time above 0".to_owned()),
        false => Row::Read { bytes, count, reduces, groups },
    }
}

/// Most difference between a time and its printed bandwidth: half of the last digit of 0.01 GB/s, and 3 % for times of two digits.
pub(super) fn agree(bytes: u64, group: &mut Point) -> Result<(), String> {
    if group.algbw.is_nan() {
        return Ok(());
    }
    let off = |us: f64| {
        let algbw = bytes as f64 / us / 1e3;
        (algbw - group.algbw).abs() > 0.03 * algbw.max(group.algbw) + 0.006
    };
    if !off(group.us) {
        return Ok(());
    }
    if !off(group.us * 1e3) {
        group.us *= 1e3;
        return Ok(());
    }
    Err(format!("size, time and algorithm bandwidth do not fit: {} us and {} GB/s", group.us, group.algbw))
}
