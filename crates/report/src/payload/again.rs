//! The commands that repeat the runs of a page.

use super::Group;
use lab::shell::line;
use results::Results;

/// The command that repeats the whole comparison, if one made the page; else a command for each run. Each entry has
/// the name of a group and its commands, one per line.
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

/// The command of the comparison that made all these runs; `None` unless they are every scheme with every seed.
fn comparison(groups: &[Group<'_>]) -> Option<String> {
    let mut start: Option<Vec<&str>> = None;
    let (mut schemes, mut seeds) = (Vec::new(), Vec::new());
    let mut runs = 0;
    for run in groups.iter().flat_map(|group| &group.runs) {
        // `ropewalk compare` writes the scheme and the seed at the end of each run's command.
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
