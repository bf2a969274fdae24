//! Traffic patterns of NIXL's `sequential-ct-perftest` as a scenario: a graph in which ranks meet, sleep and send.

use super::{Draft, about_fabric, fabric_of};
use files::file::{self, Reading};
use finding::{Finding, code};
use formats::ctp::{self, Pattern};
use model::{Bytes, Time};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml::{Table, Value};

/// Payload of the request of a READ. Our choice, as for transfers of KV: a header with an address, a key and a length.
const READ_REQUEST: u64 = 64;
/// Payload of a message of the ranks' meeting. Our choice: a word.
const MEETING: u64 = 8;
/// Time for which the first rank opens a pattern, ps. Our choice: none that counts.
const MEETING_TIME: u64 = 1000;
/// Most messages of all patterns, with requests and meetings. Our choice: a scenario that an editor still opens.
const MOST: usize = 100_000;

/// Reads the patterns, which the scenario `output` will run on the fabric of the scenario `topology`.
///
/// # Errors
/// The first mistake of a file, or if there is no such scenario.
pub fn import(list: &Path, topology: Option<&str>, output: &Path) -> Result<Draft, Finding> {
    let name = list.display().to_string();
    let patterns = ctp::patterns(&name, &text(list, &name)?)?;
    let folder = list.parent().unwrap_or(Path::new(""));
    let mut matrices: BTreeMap<&str, Matrix> = BTreeMap::new();
    // Messages are counted before any is built, and no matrix is kept as a whole.
    let (mut messages, mut met) = (0, BTreeSet::new());
    for pattern in &patterns {
        let matrix = match matrices.entry(&pattern.matrix) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let path = folder.join(&pattern.matrix);
                let name = path.display().to_string();
                entry.insert(Matrix::of(&ctp::matrix(&name, &text(&path, &name)?)?))
            }
        };
        messages += matrix.messages(pattern.reads, &mut met);
        if messages > MOST {
            let text = format!("{name} has more than {MOST} messages, with requests of READs and meetings");
            return Err(code::FIT
                .plain(text)
                .with_help("take fewer patterns, or matrices with fewer cells above 0"));
        }
    }
    let ranks = matrices.values().map(|matrix| matrix.size).max().unwrap_or(0);
    let fabric = fabric_of(topology, ranks, "--topology", &name)?;
    let mut graph = Graph { tasks: Vec::new(), last: BTreeMap::new(), own: 0 };
    for (number, pattern) in patterns.iter().enumerate() {
        graph.pattern(number, pattern, &matrices[&*pattern.matrix]);
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

/// What a matrix sends.
struct Matrix {
    /// Lines and columns.
    size: u32,
    /// Sender, receiver and bytes: the cells above 0 that are not on the diagonal.
    cells: Vec<(u32, u32, u64)>,
    /// Who sends or receives.
    ranks: Vec<u32>,
    /// Cells above 0 on the diagonal.
    own: u64,
}

impl Matrix {
    fn of(rows: &[Vec<u64>]) -> Self {
        let (mut cells, mut own, mut ranks) = (Vec::new(), 0, BTreeSet::new());
        for (from, row) in (0..).zip(rows) {
            for (to, bytes) in (0..).zip(row).filter(|(_, bytes)| **bytes > 0) {
                if from == to {
                    own += 1;
                } else {
                    cells.push((from, to, *bytes));
                    ranks.extend([from, to]);
                }
            }
        }
        Matrix { size: rows.len() as u32, cells, ranks: ranks.into_iter().collect(), own }
    }

    /// Messages of the next pattern that has this matrix, after patterns of the ranks `met`.
    fn messages(&self, reads: bool, met: &mut BTreeSet<u32>) -> usize {
        let meet = self.ranks.iter().any(|rank| met.contains(rank));
        met.extend(&self.ranks);
        self.cells.len() * (1 + usize::from(reads)) + if meet { 2 * (self.ranks.len() - 1) } else { 0 }
    }
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

    fn pattern(&mut self, number: usize, pattern: &Pattern, matrix: &Matrix) {
        let ranks = &matrix.ranks;
        self.own += matrix.own;
        if ranks.iter().any(|rank| self.last.contains_key(rank)) {
            self.meet(ranks, number);
        }
        if pattern.sleep.0 > 0 {
            self.sleep(ranks, &format!("{number} sleep"), pattern.sleep.0);
        }
        let mut done: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
        for &(from, to, bytes) in &matrix.cells {
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
            self.sleep(ranks, &format!("{number} rest"), pattern.sleep.1);
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
        assert_eq!(of(MEETING), 6, "the second pattern begins with a meeting");
        let cells: Vec<Vec<u64>> = vec![vec![0, 0, 1, 1], vec![0, 0, 1, 1], vec![0; 4], vec![0, 0, 0, 7]];
        let (matrix, mut met) = (Matrix::of(&cells), BTreeSet::new());
        let counted = matrix.messages(false, &mut met) + matrix.messages(true, &mut met);
        assert_eq!(counted, plan.messages.len(), "messages are counted as they are built");
        let finished = draft.finish().unwrap();
        assert!(finished.warnings[0].contains("diagonal"), "{:?}", finished.warnings);
        assert!(finished.toml.contains("0 from 0 to 2"), "{}", finished.toml);
        file("m.txt", "0 0\n0 x\n");
        let error = import(&list, None, &output).unwrap_err();
        assert!(error.located().contains("m.txt:2:3: expected bytes"), "{}", error.located());
    }

    /// 317 ranks write to all others once: 100,172 messages. A rank less is allowed, and what ranks send themselves does not count.
    #[test]
    fn too_many_messages_are_refused_before_they_are_built() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list.yaml");
        std::fs::write(&list, "traffic_patterns:\n- matrix_file: m.txt\n").unwrap();
        let told = |ranks: usize| {
            let text = format!("{}\n", vec!["1"; ranks].join(" ")).repeat(ranks);
            std::fs::write(folder.path().join("m.txt"), text).unwrap();
            import(&list, None, &folder.path().join("s.toml")).map(|_| ()).map_err(|error| error.located())
        };
        assert_eq!(told(316), Ok(()));
        let refusal = told(317).unwrap_err();
        assert!(refusal.contains("more than 100000 messages"), "{refusal}");
    }
}
