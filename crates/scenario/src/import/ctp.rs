//! Traffic patterns of NIXL's `sequential-ct-perftest` as a scenario: a graph in which ranks meet, sleep and send.

use super::{Draft, about_fabric, fabric_of};
use files::file::{self, Reading};
use finding::{Finding, code};
use formats::ctp::{self, Pattern};
use model::{Bytes, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml::{Table, Value};

/// Payload of the request of a READ. Our choice, as for transfers of KV: a header with an address, a key and a length.
const READ_REQUEST: u64 = 64;
/// Payload of a message of the ranks' meeting. Our choice: a word.
const MEETING: u64 = 8;
/// Time for which the first rank opens a pattern, ps. Our choice: none that counts.
const MEETING_TIME: u64 = 1000;
/// Most messages of all patterns. Our choice: a scenario that an editor still opens.
const MOST: usize = 100_000;

/// Reads the patterns, which the scenario `output` will run on the fabric of the scenario `topology`.
///
/// # Errors
/// The first mistake of a file, or if there is no such scenario.
pub fn import(list: &Path, topology: Option<&str>, output: &Path) -> Result<Draft, Finding> {
    let name = list.display().to_string();
    let patterns = ctp::patterns(&name, &text(list, &name)?)?;
    let folder = list.parent().unwrap_or(Path::new(""));
    let mut matrices: BTreeMap<&str, Vec<Vec<u64>>> = BTreeMap::new();
    for Pattern { matrix, .. } in &patterns {
        if !matrices.contains_key(&**matrix) {
            let path = folder.join(matrix);
            let name = path.display().to_string();
            matrices.insert(matrix, ctp::matrix(&name, &text(&path, &name)?)?);
        }
    }
    let ranks = matrices.values().map(Vec::len).max().unwrap_or(0) as u32;
    let fabric = fabric_of(topology, ranks, "--topology", &name)?;
    let mut graph = Graph { tasks: Vec::new(), last: BTreeMap::new(), own: 0 };
    for (number, pattern) in patterns.iter().enumerate() {
        graph.pattern(number, pattern, &matrices[&*pattern.matrix]);
        if graph.tasks.len() > 3 * MOST {
            return Err(code::FIT.plain(format!("{name} has more than {MOST} messages")));
        }
    }
    if graph.tasks.is_empty() {
        return Err(code::CONTENT.plain(format!("the matrices of {name} send nothing")));
    }
    let warnings = match graph.own {
        0 => Vec::new(),
        own => vec![
            code::READ_AS
                .plain(format!("{own} cells are on the diagonal: what ranks send themselves is left out")),
        ],
    };
    Ok(Draft {
        files: Vec::new(),
        scenario: output.to_owned(),
        fabric,
        workload: format!("workload=[{{ graph = {} }}]", Value::Array(graph.tasks)),
        about: vec![
            format!("The traffic patterns {name} of NIXL's sequential-ct-perftest."),
            "The ranks of a pattern meet by messages of 8 B at the first of them, sleep, and send. A READ has a request of 64 B.".to_owned(),
            about_fabric(topology),
        ],
        ranks: Some(ranks),
        unmatched: 0,
        option: "--topology",
        list: false,
        warnings,
    })
}

fn text(path: &Path, name: &str) -> Result<String, Finding> {
    file::read(path, Reading::import(16)).map_err(|error| code::FILE.plain(error.about(name)))
}

/// The tasks so far.
struct Graph {
    tasks: Vec<Value>,
    /// What each rank did last.
    last: BTreeMap<u32, BTreeSet<String>>,
    /// Cells on the diagonal.
    own: u64,
}

impl Graph {
    fn task(&mut self, name: &str, after: impl IntoIterator<Item = String>, what: (&str, Value)) {
        let mut task = Table::new();
        task.insert("name".to_owned(), name.into());
        let after: Vec<Value> = after.into_iter().map(Value::from).collect();
        if !after.is_empty() {
            task.insert("after".to_owned(), after.into());
        }
        task.insert(what.0.to_owned(), what.1);
        self.tasks.push(task.into());
    }

    /// What a rank did last.
    fn before(&self, rank: u32) -> BTreeSet<String> {
        self.last.get(&rank).cloned().unwrap_or_default()
    }

    /// A computation of each of these ranks, which follows what it did last.
    fn sleep(&mut self, ranks: &[u32], what: &str, ps: u64) {
        for rank in ranks {
            let name = format!("{what} of {rank}");
            let after = self.before(*rank);
            self.task(&name, after, ("compute", Time(ps).to_string().into()));
            if let Some(Value::Table(task)) = self.tasks.last_mut() {
                task.insert("ranks".to_owned(), vec![Value::from(i64::from(*rank))].into());
            }
            self.last.insert(*rank, BTreeSet::from([name]));
        }
    }

    /// All ranks tell the first one that they are ready, which then tells all.
    fn meet(&mut self, ranks: &[u32], number: usize) {
        let Some((&first, others)) = ranks.split_first() else { return };
        let mut ready = self.before(first);
        for &rank in others {
            let name = format!("{number} {rank} is ready");
            self.task(&name, self.before(rank), ("send", send(rank, first, MEETING)));
            ready.insert(name);
        }
        self.last.insert(first, ready);
        self.sleep(&[first], &format!("{number} opening"), MEETING_TIME);
        for &rank in others {
            let name = format!("{number} {rank} may go");
            self.task(&name, self.before(first), ("send", send(first, rank, MEETING)));
            self.last.insert(rank, BTreeSet::from([name]));
        }
    }

    fn pattern(&mut self, number: usize, pattern: &Pattern, matrix: &[Vec<u64>]) {
        let mut cells = Vec::new();
        for (from, row) in (0..).zip(matrix) {
            for (to, bytes) in (0..).zip(row).filter(|(_, bytes)| **bytes > 0) {
                match from == to {
                    true => self.own += 1,
                    false => cells.push((from, to, *bytes)),
                }
            }
        }
        let ranks: BTreeSet<u32> = cells.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
        let ranks: Vec<u32> = ranks.into_iter().collect();
        if ranks.iter().any(|rank| self.last.contains_key(rank)) {
            self.meet(&ranks, number);
        }
        if pattern.sleep.0 > 0 {
            self.sleep(&ranks, &format!("{number} sleep"), pattern.sleep.0);
        }
        let mut done: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
        for (from, to, bytes) in cells {
            let name = format!("{number} from {from} to {to}");
            let mut after = self.before(from);
            if pattern.reads {
                let asks = format!("{number} {to} asks {from}");
                self.task(&asks, self.before(to), ("send", send(to, from, READ_REQUEST)));
                after = BTreeSet::from([asks]);
            }
            self.task(&name, after, ("send", send(from, to, bytes)));
            for rank in [from, to] {
                done.entry(rank).or_default().insert(name.clone());
            }
        }
        self.last.extend(done);
        if pattern.sleep.1 > 0 {
            self.sleep(&ranks, &format!("{number} rest"), pattern.sleep.1);
        }
    }
}

fn send(from: u32, to: u32, bytes: u64) -> Value {
    let mut send = Table::new();
    send.insert("from".to_owned(), i64::from(from).into());
    send.insert("to".to_owned(), i64::from(to).into());
    send.insert("bytes".to_owned(), Bytes(bytes).to_string().into());
    send.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, check};

    /// Two ranks write to two others, 10 ms after the start; then these read, 25 ms after all four have met.
    #[test]
    fn ranks_meet_sleep_and_send_and_readers_ask_first() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        file("m.txt", "0 0 1M 1M\n0 0 1M 1M\n0 0 0 0\n0 0 0 7\n");
        let list = file(
            "list.yaml",
            "traffic_patterns:\n- matrix_file: m.txt\n  sleep_before_launch_sec: 0.010\n- matrix_file: m.txt\n  \
             sleep_before_launch_sec: 0.025\n  xfer_op: READ\n",
        );
        let output = folder.path().join("s.toml");
        let draft = import(&list, None, &output).unwrap();
        let source = Source { file: "s.toml".to_owned(), ..draft.fabric.clone() };
        let plan = check(&source, std::slice::from_ref(&draft.workload)).unwrap().plan;
        let of = |bytes: u64| plan.messages.iter().filter(|message| message.bytes == bytes).count();
        assert_eq!((of(1 << 20), of(READ_REQUEST)), (8, 4));
        assert!(of(MEETING) > 0, "the second pattern begins with a meeting");
        let finished = draft.finish().unwrap();
        assert!(finished.warnings[0].contains("diagonal"), "{:?}", finished.warnings);
        assert!(finished.toml.contains("0 from 0 to 2"), "{}", finished.toml);
        file("m.txt", "0 0\n0 x\n");
        let error = import(&list, None, &output).unwrap_err();
        assert!(error.located().contains("m.txt:2:3: expected bytes"), "{}", error.located());
    }
}
