//! Readers: a file per format. The content of an input decides how it is read, and one input may have several formats.

mod info;
mod json;
mod nccl_tests;
mod perftest;
mod topology;
pub(crate) mod words;

use crate::log::{Input, Log};

/// Reads an input. A line that looks like a result and cannot be read is quoted.
pub fn read(input: &Input) -> Log {
    let mut log = Log { name: input.name.clone(), ..Log::default() };
    let text = input.text.trim_start_matches('\u{feff}');
    let start = text.trim_start();
    if start.starts_with('{') || start.starts_with("[{") || start.starts_with("[\n") {
        json::read(text, &mut log);
    } else if start.starts_with('<') && (text.contains("<system") || text.contains("<pci")) {
        topology::read(text, &mut log);
    } else {
        lines(text, &mut log);
    }
    log
}

/// Reads a text line by line.
fn lines(text: &str, log: &mut Log) {
    let (mut tests, mut perftest) = (nccl_tests::Reader::default(), perftest::Reader::default());
    let mut end_of_topology = 0;
    // Behind a topology without an end no other one ends.
    let mut unclosed = false;
    for (i, line) in text.lines().enumerate() {
        let number = i + 1;
        if number <= end_of_topology {
            continue;
        }
        // A topology may stand between other lines, as NCCL's users paste them.
        if line.trim_start().starts_with("<system") && !unclosed {
            end_of_topology = topology::inside(text, number, log);
            unclosed = end_of_topology == number && !line.contains("</system>");
            continue;
        }
        if info::line(line, number, log) || perftest.line(line, number, log) {
            continue;
        }
        tests.line(line, number, log);
    }
    tests.end(log);
}
