//! What became of every field: read, ignored with a reason, or in contradiction.

use crate::read::Input;
use crate::said::Place;
use files::printable;
use serde::Serialize;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// The field of a row about a file that is not read.
pub const WHOLE_FILE: &str = "the whole file";

/// The lists while files are read.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    read: BTreeMap<(String, String, String), Row>,
    ignored: BTreeMap<(String, String, String), Row>,
    pub(crate) contradicts: Vec<Contradiction>,
    /// Numbers of contradictions by rule and text.
    numbers: BTreeMap<(&'static str, String), usize>,
    pub(crate) assumed: Vec<String>,
}

/// A field, or all fields of one name in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Name of the file.
    pub file: String,
    /// Line of the first one, from 1.
    pub line: usize,
    /// The field, such as `PORT speed`.
    pub field: String,
    /// Number of values.
    pub values: usize,
    /// The setting that it became, or the reason why it is ignored.
    pub what: String,
}

/// Two statements that do not fit together, or one that has an effect which nobody wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// Name of the rule.
    pub rule: &'static str,
    /// What does not fit.
    pub text: String,
    /// What to do.
    pub advice: String,
    /// The first places.
    pub places: Vec<Place>,
    /// Number of places.
    pub cases: usize,
}

/// Most places of a contradiction that are named. Our choice: the rest looks alike.
pub(crate) const MOST_PLACES: usize = 4;

impl Ledger {
    pub(crate) fn read(&mut self, at: &Place, field: &str, setting: &str) {
        note(&mut self.read, at, field, setting);
    }

    pub(crate) fn ignored(&mut self, at: &Place, field: &str, why: &str) {
        note(&mut self.ignored, at, field, why);
    }

    pub(crate) fn assumed(&mut self, text: impl Into<String>) {
        let text = printable::name(&text.into());
        if !self.assumed.contains(&text) {
            self.assumed.push(text);
        }
    }

    /// Adds a contradiction; those of one rule and text are one with several places.
    pub(crate) fn contradicts(&mut self, rule: &'static str, text: String, advice: &str, places: Vec<Place>) {
        let text = printable::name(&text);
        let number = *self.numbers.entry((rule, text.clone())).or_insert_with(|| {
            let advice = advice.to_owned();
            self.contradicts.push(Contradiction { rule, text, advice, places: Vec::new(), cases: 0 });
            self.contradicts.len() - 1
        });
        let one = &mut self.contradicts[number];
        one.cases += 1;
        for place in places {
            if one.places.len() < MOST_PLACES && !one.places.contains(&place) {
                one.places.push(place);
            }
        }
    }

    /// Notes the files of which no list has a row.
    pub(crate) fn name_all(&mut self, inputs: &[Input]) {
        let listed = self.read.values().chain(self.ignored.values()).map(|row| row.file.clone());
        let mut listed: BTreeSet<String> = listed.collect();
        listed.extend(self.contradicts.iter().flat_map(|it| &it.places).map(|place| place.file.to_string()));
        for input in inputs.iter().filter(|input| !listed.contains(&input.name)) {
            let at = Place::line(&input.name.as_str().into(), 1);
            self.ignored(&at, WHOLE_FILE, "it has no cable, no port and no setting");
        }
    }

    pub(crate) fn rows(self) -> (Vec<Row>, Vec<Row>) {
        (self.read.into_values().collect(), self.ignored.into_values().collect())
    }
}

/// Notes a value. Texts of files lose what a terminal obeys.
fn note(rows: &mut BTreeMap<(String, String, String), Row>, at: &Place, field: &str, what: &str) {
    let (field, what) = (printable::name(field), printable::name(what));
    match rows.entry((at.file.to_string(), field.clone(), what.clone())) {
        Entry::Occupied(mut row) => {
            let row = row.get_mut();
            row.values += 1;
            row.line = row.line.min(at.line);
        }
        Entry::Vacant(free) => {
            free.insert(Row { file: at.file.to_string(), line: at.line, field, values: 1, what });
        }
    }
}
