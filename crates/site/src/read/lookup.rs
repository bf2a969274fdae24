//! SONiC's tables of profiles by speed and length of the cable: `pg_profile_lookup.ini`, and that of link-level retry.

use super::File;
use crate::facts::{Facts, Lookup};
use crate::said::{Said, metres};

/// Columns, if the comment above them does not name them: that of all switches with a dynamic threshold.
const COLUMNS: &[&str] = &["speed", "cable", "size", "xon", "xoff", "threshold", "xon_offset"];

pub(super) fn read(facts: &mut Facts, file: &File<'_>) {
    let named = file
        .text
        .lines()
        .rfind(|line| line.starts_with('#') && line.contains("speed") && line.contains("xoff"));
    let names: Vec<&str> = named.map_or(COLUMNS.to_vec(), |line| {
        line.trim_start_matches(['#', ' ', '\t']).split_whitespace().collect()
    });
    for (line, text) in file.lines() {
        let at = file.line(line);
        let words: Vec<&str> = text.split_whitespace().collect();
        let (Ok(speed), Some(length)) = (words[0].parse(), metres(words[1])) else {
            facts.ledger.ignored(
                &at,
                "a line",
                "expected speed, length such as 40m, size, xon, xoff and threshold",
            );
            continue;
        };
        let field = |(name, word): (&&str, &&str)| {
            let name = if *name == "xon-offset" { "xon_offset" } else { name };
            (name.to_owned(), Said { value: (*word).to_owned(), at: at.clone() })
        };
        let fields = names.iter().zip(&words).skip(2).map(field).collect();
        facts.lookups.push(Lookup { folder: file.folder.clone(), speed, length, fields });
        facts.ledger.read(
            &at,
            "profiles by speed and cable",
            "headroom and thresholds of priority groups without a profile",
        );
    }
}

pub(super) fn llr(facts: &mut Facts, file: &File<'_>) {
    for (line, _) in file.lines() {
        let why = "link-level retry is not modelled: a lost frame is a loss of the link";
        facts.ledger.ignored(&file.line(line), "profiles of link-level retry", why);
    }
}
