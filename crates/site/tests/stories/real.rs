//! Files of real sites, which are not part of the repository: `SITE_FILES=DIR cargo test -p site --test stories real -- --ignored --nocapture`
//! imports every file below DIR by itself and prints a line for each.

use crate::common::accepted;
use site::{Input, import};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn files(folder: &Path, all: &mut Vec<Input>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => files(&path, all),
            false => all.extend(
                fs::read_to_string(&path).ok().map(|text| Input::new(path.display().to_string(), text)),
            ),
        }
    }
}

/// Fields of a configuration of SONiC whose every table is one of tables.
fn fields_of_sonic(text: &str) -> Option<usize> {
    let root: serde_json::Value = serde_json::from_str(text).ok()?;
    let tables = root.as_object().filter(|root| root.contains_key("DEVICE_METADATA"))?;
    let entries = tables.values().filter_map(|table| table.as_object()).flat_map(|table| table.values());
    Some(entries.filter_map(|entry| entry.as_object()).map(|entry| entry.len().max(1)).sum())
}

#[test]
#[ignore = "needs files that are not part of the repository"]
fn every_file_is_read_or_refused_with_a_reason() {
    let folder = std::env::var("SITE_FILES").expect("SITE_FILES names a folder");
    let mut all = Vec::new();
    files(Path::new(&folder), &mut all);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for input in &all {
        let name = input.name.trim_start_matches(&folder);
        let rows = match import(std::slice::from_ref(input)) {
            Err(failed) => failed.ignored,
            Ok(answer) => [answer.read, answer.ignored].concat(),
        };
        assert!(rows.iter().all(|row| !row.what.is_empty() && row.line > 0), "{name}");
        let refused = rows.iter().any(|row| row.field == site::WHOLE_FILE);
        // A file that is read alone, without a fabric, has its rows of what is read in no list.
        assert!(
            refused || !rows.is_empty() || import(std::slice::from_ref(input)).is_err(),
            "{name} leaves no trace"
        );
        if let Some(fields) = fields_of_sonic(&input.text).filter(|_| !refused) {
            let listed: usize = rows.iter().map(|row| row.values).sum();
            assert!(
                import(std::slice::from_ref(input)).is_err() || listed >= fields,
                "{name}: {listed} of {fields} fields"
            );
        }
        match import(std::slice::from_ref(input)) {
            Err(failed) => {
                let whole = failed.ignored.iter().find(|row| row.field == site::WHOLE_FILE);
                let (kind, why) = match whole {
                    Some(row) => ("refused", row.what.clone()),
                    None => ("no fabric by itself", failed.finding.text.clone()),
                };
                *counts.entry(kind).or_default() += 1;
                println!("{kind} | {name} | {why}");
            }
            Ok(_) => {
                let answer = accepted(std::slice::from_ref(input));
                let values = |rows: &[site::Row]| rows.iter().map(|row| row.values).sum::<usize>();
                let unknown: Vec<&str> = answer
                    .ignored
                    .iter()
                    .filter(|row| row.what == "ropewalk knows no such table")
                    .map(|row| row.field.as_str())
                    .collect();
                let rules: Vec<String> = answer.contradicts.iter().map(|it| it.rule.to_owned()).collect();
                *counts.entry("read").or_default() += 1;
                println!(
                    "read | {name} | {} hosts, {} switches, {} links; {} values read, {} ignored; contradicts: {rules:?}; unknown: {unknown:?}",
                    answer.hosts,
                    answer.switches,
                    answer.links,
                    values(&answer.read),
                    values(&answer.ignored)
                );
            }
        }
    }
    println!("{} files: {counts:?}", all.len());
}
