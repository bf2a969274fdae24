//! GOAL as text.

use super::{ANY, Dependency, Kind, MOST_RANKS, On, Operation, Program, Schedule};
use finding::{Finding, code, suggestion};
use std::collections::BTreeMap;
use std::ops::Range;

/// Words of the language, which are no labels.
const WORDS: [&str; 12] =
    ["num_ranks", "rank", "send", "recv", "calc", "requires", "irequires", "to", "from", "tag", "cpu", "nic"];

/// True if a text looks like a GOAL schedule: its first word outside comments is `num_ranks`.
pub fn is_goal(text: &str) -> bool {
    let mut cursor = Cursor { file: "", text, at: 0 };
    cursor.gaps().is_ok() && cursor.word() == "num_ranks"
}

/// Reads a schedule from a text; messages call it `file`.
pub fn read(file: &str, text: &str, warnings: &mut Vec<Finding>) -> Result<Schedule, Finding> {
    let mut cursor = Cursor { file, text, at: 0 };
    cursor.gaps()?;
    cursor.expect("num_ranks")?;
    cursor.blanks();
    let at = cursor.at;
    let ranks = cursor.number("a number of ranks", u32::MAX.into())? as u32;
    if ranks == 0 || ranks > MOST_RANKS {
        let what = format!("expected 1 to {MOST_RANKS} ranks, found {ranks}");
        return Err(cursor.error(at..cursor.at, what));
    }
    let mut schedule = Schedule { ranks, programs: BTreeMap::new() };
    loop {
        cursor.gaps()?;
        if cursor.rest().is_empty() {
            break;
        }
        cursor.expect("rank")?;
        cursor.blanks();
        let at = cursor.at;
        let rank = cursor.number("the number of a rank", u32::MAX.into())? as u32;
        if rank >= ranks {
            let what =
                format!("there is no rank {rank}; with `num_ranks {ranks}` the last one is {}", ranks - 1);
            return Err(cursor.error(at..cursor.at, what));
        }
        if schedule.programs.contains_key(&rank) {
            return Err(cursor.error(at..cursor.at, format!("rank {rank} stands in the file twice")));
        }
        cursor.gaps()?;
        cursor.symbol('{')?;
        let program = RankReader::new(ranks).read(&mut cursor, rank)?;
        schedule.programs.insert(rank, program);
    }
    let absent = ranks as usize - schedule.programs.len();
    if absent > 0 {
        let text = format!("ranks without a program in {file}: {absent} of {ranks}; they do nothing");
        warnings.push(code::NO_EFFECT.at("file", text));
    }
    schedule.programs.retain(|_, program| !program.operations.is_empty());
    Ok(schedule)
}

/// A position in a text.
struct Cursor<'a> {
    file: &'a str,
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn error(&self, span: Range<usize>, message: impl Into<String>) -> Finding {
        code::CONTENT.inside(self.file, self.text, span, message)
    }

    /// An error at the next word.
    fn expected(&self, what: &str) -> Finding {
        let next = self.next();
        let found = if next.is_empty() { "the end of the file".into() } else { format!("`{next}`") };
        let found = if next == "\n" || next == "\r" { "the end of the line".into() } else { found };
        self.error(self.at..self.at + next.len(), format!("expected {what}, found {found}"))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The next word, number or character.
    fn next(&self) -> &'a str {
        let rest = self.rest();
        let word = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        match rest.chars().next() {
            Some(first) if word == 0 => &rest[..first.len_utf8()],
            _ => &rest[..word],
        }
    }

    /// Skips blanks and tabs.
    fn blanks(&mut self) {
        self.at += self.rest().bytes().take_while(|b| matches!(b, b' ' | b'\t')).count();
    }

    /// Skips blanks, empty lines and comments.
    fn gaps(&mut self) -> Result<(), Finding> {
        loop {
            let rest = self.rest();
            let blank = rest.bytes().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')).count();
            self.at += blank;
            let rest = &rest[blank..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(inside) = rest.strip_prefix("/*") {
                let Some(end) = inside.find("*/") else {
                    return Err(self.error(self.at..self.at + 2, "the comment `/*` has no end `*/`"));
                };
                self.at += end + 4;
            } else {
                return Ok(());
            }
        }
    }

    /// Takes a word of letters, digits and underscores; empty if there is none.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        self.at += length;
        &rest[..length]
    }

    /// Takes a word if it comes next, after blanks.
    fn takes(&mut self, word: &str) -> bool {
        let before = self.at;
        self.blanks();
        if self.word() == word {
            return true;
        }
        self.at = before;
        false
    }

    fn expect(&mut self, word: &str) -> Result<(), Finding> {
        if self.takes(word) {
            return Ok(());
        }
        self.blanks();
        Err(self.expected(&format!("`{word}`")))
    }

    fn symbol(&mut self, symbol: char) -> Result<(), Finding> {
        self.blanks();
        if !self.rest().starts_with(symbol) {
            return Err(self.expected(&format!("`{symbol}`")));
        }
        self.at += symbol.len_utf8();
        Ok(())
    }

    /// Takes a whole number of at most `most`; messages call it `what`.
    fn number(&mut self, what: &str, most: u64) -> Result<u64, Finding> {
        self.blanks();
        let rest = self.rest();
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return Err(self.expected(what));
        }
        let span = self.at..self.at + length;
        let number = rest[..length].parse::<u64>().ok().filter(|&number| number <= most);
        self.at = span.end;
        let digits = &rest[..length.min(24)];
        number.ok_or_else(|| self.error(span, format!("expected {what} of at most {most}, found {digits}")))
    }

    /// Takes a number of a rank or a tag, or -1 for any.
    fn number_or_any(&mut self, what: &str) -> Result<u32, Finding> {
        self.blanks();
        if self.rest().starts_with("-1") && !self.rest()[2..].starts_with(|c: char| c.is_ascii_digit()) {
            self.at += 2;
            return Ok(ANY);
        }
        Ok(self.number(&format!("{what} or -1"), u64::from(ANY) - 1)? as u32)
    }

    /// Takes the end of a statement: the end of the line, or of the rank's program.
    fn end(&mut self) -> Result<(), Finding> {
        self.blanks();
        let rest = self.rest();
        if rest.is_empty() || rest.starts_with(['\n', '}']) || rest.starts_with("\r\n") {
            return Ok(());
        }
        let error = self.expected("the end of the line");
        Err(match rest.starts_with("//") || rest.starts_with("/*") {
            true => error.with_help("a comment stands on a line of its own, between statements"),
            false => error,
        })
    }
}

/// The program of a rank while it is read.
struct RankReader<'a> {
    ranks: u32,
    program: Program,
    labels: BTreeMap<&'a str, u32>,
    /// Positions of the dependencies.
    places: Vec<Range<usize>>,
}

impl<'a> RankReader<'a> {
    fn new(ranks: u32) -> Self {
        RankReader { ranks, program: Program::default(), labels: BTreeMap::new(), places: Vec::new() }
    }

    /// Reads all statements up to the `}`.
    fn read(mut self, cursor: &mut Cursor<'a>, rank: u32) -> Result<Program, Finding> {
        loop {
            cursor.gaps()?;
            if cursor.rest().starts_with('}') {
                cursor.at += 1;
                break;
            }
            if cursor.rest().is_empty() {
                return Err(cursor.expected(&format!("a statement of rank {rank} or `}}`")));
            }
            self.statement(cursor)?;
            cursor.end()?;
        }
        let Some(cycle) = self.program.cycle() else { return Ok(self.program) };
        let names: BTreeMap<u32, &str> =
            self.labels.iter().map(|(&label, &number)| (number, label)).collect();
        let name = |number: u32| format!("`{}`", names.get(&number).copied().unwrap_or_default());
        let text = format!("rank {rank}: {}", self.program.cycle_text(&cycle, &name));
        let last = cycle.iter().map(|&d| self.places[d].clone()).max_by_key(|place| place.start);
        Err(cursor.error(last.unwrap_or_default(), text))
    }

    fn statement(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Finding> {
        let start = cursor.at;
        let word = cursor.word();
        let span = start..cursor.at;
        if word.is_empty() {
            return Err(cursor.expected("a statement"));
        }
        cursor.blanks();
        if cursor.rest().starts_with(':') {
            self.label(cursor, word, span)?;
            cursor.at += 1;
            cursor.blanks();
            let at = cursor.at;
            let word = cursor.word();
            return match self.operation(cursor, word)? {
                true => Ok(()),
                false => {
                    cursor.at = at;
                    Err(cursor.expected("`send`, `recv` or `calc`"))
                }
            };
        }
        if self.operation(cursor, word)? {
            return Ok(());
        }
        let on = match (cursor.takes("requires"), cursor.takes("irequires")) {
            (true, _) => On::Finish,
            (_, true) => On::Start,
            _ => {
                let words = ["send", "recv", "calc", "requires", "irequires"];
                let text = format!("`{word}` starts no statement; {}", suggestion(word, &words));
                return Err(cursor
                    .error(span, text)
                    .with_help("a label is followed by `:`, by `requires` or by `irequires`"));
            }
        };
        let then = self.find(cursor, word, span.clone())?;
        cursor.blanks();
        let at = cursor.at;
        let word = cursor.word();
        if word.is_empty() {
            return Err(cursor.expected("a label"));
        }
        let first = self.find(cursor, word, at..cursor.at)?;
        self.program.dependencies.push(Dependency { first, then, on });
        self.places.push(span.start..cursor.at);
        Ok(())
    }

    /// Gives the next operation a label.
    fn label(&mut self, cursor: &Cursor<'a>, word: &'a str, span: Range<usize>) -> Result<(), Finding> {
        if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(
                cursor.error(span, format!("expected a label that starts with a letter, found `{word}`"))
            );
        }
        if WORDS.contains(&word) {
            return Err(cursor.error(span, format!("`{word}` is a word of the language and no label")));
        }
        if self.labels.insert(word, self.program.operations.len() as u32).is_some() {
            return Err(cursor.error(span, format!("the label `{word}` stands twice in one rank")));
        }
        Ok(())
    }

    /// The number of the operation with this label.
    fn find(&self, cursor: &Cursor<'a>, word: &str, span: Range<usize>) -> Result<u32, Finding> {
        self.labels.get(word).copied().ok_or_else(|| {
            let labels = self.labels.keys().copied();
            let near = finding::nearest(word, labels).map(|near| format!("; did you mean `{near}`?"));
            let text = format!("no operation above has the label `{word}`{}", near.unwrap_or_default());
            cursor.error(span, text)
        })
    }

    /// Reads an operation whose first word was read. False if that word starts no operation.
    fn operation(&mut self, cursor: &mut Cursor<'a>, word: &str) -> Result<bool, Finding> {
        let mut operation = Operation { kind: Kind::Compute, peer: 0, tag: 0, size: 0, cpu: 0, nic: 0 };
        match word {
            "send" | "recv" => {
                operation.size = cursor.number("a number of bytes", u64::MAX)?;
                cursor.blanks();
                if !cursor.rest().starts_with('b') {
                    return Err(cursor.expected("`b` after the number of bytes"));
                }
                cursor.at += 1;
                let send = word == "send";
                cursor.expect(if send { "to" } else { "from" })?;
                cursor.blanks();
                let at = cursor.at;
                operation.kind = if send { Kind::Send } else { Kind::Receive };
                operation.peer = match send {
                    true => cursor.number("a rank", u32::MAX.into())? as u32,
                    false => cursor.number_or_any("a rank")?,
                };
                if operation.peer >= self.ranks && (send || operation.peer != ANY) {
                    let text =
                        format!("there is no rank {}; the last one is {}", operation.peer, self.ranks - 1);
                    return Err(cursor.error(at..cursor.at, text));
                }
                if cursor.takes("tag") {
                    operation.tag = cursor.number_or_any("a tag")?;
                }
            }
            "calc" => operation.size = cursor.number("a number of nanoseconds", u64::MAX)?,
            _ => return Ok(false),
        }
        if cursor.takes("cpu") {
            operation.cpu = cursor.number("the number of a cpu", u8::MAX.into())? as u8;
        }
        if operation.kind != Kind::Compute && cursor.takes("nic") {
            operation.nic = cursor.number("the number of a NIC", u8::MAX.into())? as u8;
        }
        self.program.operations.push(operation);
        Ok(true)
    }
}
