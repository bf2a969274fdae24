//! Traffic patterns of NIXL's `sequential-ct-perftest` (ai-dynamo/nixl, `benchmark/kvbench`): a list in YAML, and a matrix of bytes for each.

use super::words::{Word, lines};
use files::tree::{self, Node, Place, Value};
use finding::{Finding, code, suggestion};

/// A pattern: ranks meet, sleep, and send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// File of its matrix.
    pub matrix: String,
    /// True if the receivers read; else the senders write.
    pub reads: bool,
    /// Time that its ranks sleep before they send, and after, ps.
    pub sleep: (u64, u64),
}

/// Keys of a pattern that are read, and those that are left out.
const KEYS: [&str; 8] = [
    "matrix_file",
    "xfer_op",
    "sleep_before_launch_sec",
    "sleep_after_launch_sec",
    "mem_type",
    "shards",
    "dtype",
    "metadata",
];

/// Most ranks of a matrix (our choice): a file of some megabytes.
pub const MOST_RANKS: usize = 2048;

/// A file whose list is read.
struct List<'a> {
    file: &'a str,
    text: &'a str,
}

impl List<'_> {
    fn error(&self, (line, column): Place, message: impl Into<String>) -> Finding {
        let start = self.text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
        let rest = &self.text[start.min(self.text.len())..];
        let line = rest.lines().next().unwrap_or_default();
        let at = line.char_indices().nth(column.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
        let word = line[at..].split_whitespace().next().map_or(0, str::len);
        let span = start + at..start + at + word;
        code::CONTENT.inside(self.file, self.text, span, message)
    }

    /// The text of a scalar.
    fn word<'n>(&self, node: &'n Node, what: &str) -> Result<&'n str, Finding> {
        node.text().ok_or_else(|| self.error(node.own, format!("expected {what}, found no text")))
    }

    /// A number of seconds, in ps.
    fn seconds(&self, node: &Node) -> Result<u64, Finding> {
        let text = self.word(node, "a number of seconds")?;
        match text.parse::<f64>() {
            // Our choice: as starts in scenarios.
            Ok(s) if (0.0..=1e6).contains(&s) => Ok((s * 1e12).round() as u64),
            _ => Err(self.error(node.own, format!("expected 0 to 1000000 seconds, found `{text}`"))),
        }
    }

    fn pattern(&self, pattern: &Node) -> Result<Pattern, Finding> {
        if !matches!(pattern.value, Value::Map(_)) {
            return Err(self.error(pattern.own, "expected a pattern with `matrix_file`"));
        }
        let (mut matrix, mut reads, mut sleep) = (None, false, (0, 0));
        for (key, value) in pattern.entries() {
            match &**key {
                "matrix_file" => matrix = Some(self.word(value, "the name of a file")?.to_owned()),
                "sleep_before_launch_sec" => sleep.0 = self.seconds(value)?,
                "sleep_after_launch_sec" => sleep.1 = self.seconds(value)?,
                "xfer_op" => {
                    let op = self.word(value, "READ or WRITE")?;
                    reads = match &*op.to_ascii_uppercase() {
                        "READ" => true,
                        "WRITE" => false,
                        _ => {
                            return Err(
                                self.error(value.own, format!("expected READ or WRITE, found `{op}`"))
                            );
                        }
                    };
                }
                "mem_type" | "shards" | "dtype" | "metadata" => {}
                "storage_ops" => return Err(self.error(value.key, "operations on storage are not read")),
                other => {
                    let text = format!("unknown key `{other}`; {}", suggestion(other, &KEYS));
                    return Err(self.error(value.key, text));
                }
            }
        }
        let matrix = matrix.ok_or_else(|| self.error(pattern.own, "the pattern has no `matrix_file`"))?;
        Ok(Pattern { matrix, reads, sleep })
    }
}

/// Reads the list of patterns; messages call the file `file`.
///
/// # Errors
/// The first mistake, with its place.
pub fn patterns(file: &str, text: &str) -> Result<Vec<Pattern>, Finding> {
    let list = List { file, text };
    let documents = tree::yaml(text)
        .map_err(|bad| list.error((bad.line, bad.column), format!("this is no YAML: {}", bad.text)))?;
    let root = match documents.first() {
        Some(root) if matches!(root.value, Value::Map(_)) => root,
        other => {
            let place = other.map_or((1, 1), |root| root.own);
            return Err(list.error(place, "expected the key `traffic_patterns`"));
        }
    };
    let mut all = Vec::new();
    for (key, value) in root.entries() {
        if key != "traffic_patterns" {
            let text = format!("unknown key `{key}`; expected `traffic_patterns`");
            return Err(list
                .error(value.key, text)
                .with_help("`ct-perftest` runs one pattern; put it into such a list"));
        }
        if !matches!(value.value, Value::List(_)) {
            return Err(list.error(value.own, "expected a list of patterns"));
        }
        for pattern in value.items() {
            all.push(list.pattern(pattern)?);
        }
    }
    match all.is_empty() {
        true => Err(list.error((1, 1), "expected at least one pattern under `traffic_patterns`, found none")),
        false => Ok(all),
    }
}

/// Bytes of a cell: a number, with a unit of 1,024.
fn bytes(word: &Word<'_>) -> Result<u64, Finding> {
    let (number, unit) = match word.word.char_indices().last() {
        Some((at, 'b' | 'B')) => (&word.word[..at], 1_u64),
        Some((at, 'k' | 'K')) => (&word.word[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&word.word[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&word.word[..at], 1 << 30),
        _ => (word.word, 1),
    };
    let found = number.parse::<f64>().ok().map(|number| number * unit as f64);
    // Our choice: as messages in scenarios.
    match found.filter(|bytes| (0.0..=(1_u64 << 50) as f64).contains(bytes)) {
        Some(bytes) => Ok(bytes as u64),
        None => Err(word.error(format!("expected bytes such as 512, 64K or 1.5M, found `{}`", word.word))),
    }
}

/// Reads a matrix: cell j of line i is what rank i sends to rank j.
///
/// # Errors
/// The first mistake, with its place.
pub fn matrix(file: &str, text: &str) -> Result<Vec<Vec<u64>>, Finding> {
    let mut all = Vec::new();
    let mut ranks = 0;
    for line in lines(file, text) {
        ranks = if all.is_empty() { line.words.len() } else { ranks };
        if line.words.len() != ranks || ranks > MOST_RANKS {
            let found = line.words.len();
            let text = match ranks > MOST_RANKS {
                true => format!("expected at most {MOST_RANKS} ranks, found {found}"),
                false => format!("expected {ranks} cells, as in the first line, found {found}"),
            };
            return Err(line.end.error(text));
        }
        all.push(line.words.iter().map(bytes).collect::<Result<Vec<u64>, Finding>>()?);
    }
    match all.len() {
        0 => Err(Word::end(file, text).error("expected a line of cells for each rank, found none")),
        found if found != ranks => {
            Err(Word::end(file, text)
                .error(format!("expected {ranks} lines, one for each rank, found {found}")))
        }
        _ => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use files::damage::Draws;

    const LIST: &str = "traffic_patterns:\n- matrix_file: m0.txt\n  mem_type: cuda\n  xfer_op: READ\n  shards: 1\n  \
                        sleep_before_launch_sec: 0.010\n  metadata:\n    isl: 512\n- matrix_file: m1.txt\n  \
                        sleep_before_launch_sec: 0.025\n";
    const MATRIX: &str = "0 0 1M 1.5K\n0 0 1m 7\n0 0 0 0\n0 0 0 0b\n";

    #[test]
    fn patterns_have_matrices_ways_and_sleeps() {
        let of = |matrix: &str, reads, ms: u64| Pattern {
            matrix: matrix.to_owned(),
            reads,
            sleep: (ms * 1_000_000_000, 0),
        };
        assert_eq!(patterns("p", LIST).unwrap(), [of("m0.txt", true, 10), of("m1.txt", false, 25)]);
        let cells = matrix("m", MATRIX).unwrap();
        assert_eq!(cells[0], [0, 0, 1 << 20, 1536], "units are of 1,024");
        assert_eq!(cells[1], [0, 0, 1 << 20, 7]);
    }

    #[test]
    fn mistakes_have_a_place_and_what_was_expected() {
        let told = |from: &str, to: &str| patterns("p", &LIST.replacen(from, to, 1)).unwrap_err().located();
        assert_eq!(told("READ", "PULL"), "p:4:12: expected READ or WRITE, found `PULL`");
        assert_eq!(told("0.010", "soon"), "p:6:28: expected 0 to 1000000 seconds, found `soon`");
        assert_eq!(told("xfer_op", "xfer_ops"), "p:4:3: unknown key `xfer_ops`; did you mean `xfer_op`?");
        assert_eq!(told("matrix_file: m0.txt\n  ", ""), "p:2:3: the pattern has no `matrix_file`");
        assert!(told("traffic_patterns", "traffic_pattern").contains("expected `traffic_patterns`"));
        assert!(patterns("p", "").is_err() && patterns("p", "traffic_patterns: []\n").is_err());
        let told = |text: &str| matrix("m", text).unwrap_err().located();
        assert_eq!(told("0 1M\n0\n"), "m:2:2: expected 2 cells, as in the first line, found 1");
        assert_eq!(told("0 1Q\n0 0\n"), "m:1:3: expected bytes such as 512, 64K or 1.5M, found `1Q`");
        assert_eq!(told("0 1\n"), "m:1:4: expected 2 lines, one for each rank, found 1");
    }

    #[test]
    fn damaged_files_give_patterns_or_an_error_with_its_place() {
        let mut draws = Draws(6);
        for number in 0..20_000 {
            let list = draws.change(LIST, &["-", ":", "[", "{", "&a", "*a", "1e400", "|", "é"]);
            let cells = draws.change(MATRIX, &["1e30G", "-1", "é", "K", "nan"]);
            for error in [patterns("p", &list).err(), matrix("m", &cells).err()].into_iter().flatten() {
                assert!(error.place.is_some(), "file {number}: {error:?}");
            }
        }
    }
}
