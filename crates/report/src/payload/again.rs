//! The commands that run it again.

use super::Group;
use lab::shell::line;
use results::Results;

/// One command that gives the page again if a comparison made it; else a command for each run. Name, and a line for each.
pub(super) fn of(groups: &[Group<'_>]) -> Vec<(String, String)> {
    if let Some(one) = comparison(groups) {
        return vec![(String::new(), one)];
    }
    let lines = |group: &Group<'_>| {
        let lines: Vec<String> = group.runs.iter().map(|run| line(words(run))).collect();
        (group.name.clone(), lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n"))
    };
    groups.iter().map(lines).filter(|(_, lines)| !lines.is_empty()).collect()
}

/// The command of the comparison that made all these runs: every scheme with every seed, and no other run.
fn comparison(groups: &[Group<'_>]) -> Option<String> {
    let mut start: Option<Vec<&str>> = None;
    let (mut schemes, mut seeds) = (Vec::new(), Vec::new());
    let mut runs = 0;
    for run in groups.iter().flat_map(|group| &group.runs) {
        // As `compare` writes it: the scheme and the seed stand at the end.
        let all = words(run);
        let (before, [schemes_key, scheme, seeds_key, seed]) = all.split_last_chunk::<4>()?;
        let ours =
            before.get(1) == Some(&"compare") && (*schemes_key, *seeds_key) == ("--schemes", "--seeds");
        let alike = start.get_or_insert_with(|| before.to_vec()).as_slice() == before;
        if !ours || !alike || run.summary.scheme != *scheme {
            return None;
        }
        for (list, word) in [(&mut schemes, *scheme), (&mut seeds, *seed)] {
            if !list.contains(&word) {
                list.push(word);
            }
        }
        runs += 1;
    }
    if runs != schemes.len() * seeds.len() || groups.len() != schemes.len() {
        return None;
    }
    let (schemes, seeds) = (schemes.join(","), seeds.join(","));
    let mut all = start?;
    all.extend(["--schemes", &schemes, "--seeds", &seeds, "--report"]);
    Some(line(all))
}

/// The words of the command that made a run.
fn words(run: &Results) -> Vec<&str> {
    let words = run.manifest.pointer("/command").and_then(|c| c.as_array()).into_iter().flatten();
    words.filter_map(|word| word.as_str()).collect()
}
