//! Files of other commands than those that run scenarios: TOML, with the messages that scenarios have.

use crate::document::Document;
use crate::source::Source;
use crate::{resolve, resolve::ExplicitKeys};
use files::file::{self, Reading};
use finding::{Finding, code};
use rnic::NicConfig;
use serde::de::DeserializeOwned;
use std::path::Path;

/// A TOML file.
#[derive(Clone, Debug)]
pub struct TableFile {
    source: Source,
    document: Document,
}

impl TableFile {
    /// Reads the file `name`.
    ///
    /// # Errors
    /// If the file cannot be read or is not TOML.
    pub fn open(name: &str) -> Result<Self, Finding> {
        let text =
            file::read(Path::new(name), Reading::SCENARIO).map_err(|e| code::FILE.plain(e.about(name)))?;
        TableFile::new(name, &text)
    }

    /// Takes a text; messages call it `name`.
    ///
    /// # Errors
    /// If the text is not TOML.
    pub fn new(name: &str, text: &str) -> Result<Self, Finding> {
        let source = Source::new(name, text);
        Ok(TableFile { document: Document::new(&source, &[])?, source })
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// Reads the file as a `T`.
    ///
    /// # Errors
    /// The first mistake, with its position.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Finding> {
        self.document.read()
    }

    /// Fills in the defaults of the table `[nic]` that depend on its other keys, and checks it.
    ///
    /// # Errors
    /// An impossible value.
    pub fn fill_nic(&self, nic: &mut NicConfig) -> Result<(), Finding> {
        let explicit = |key: &str| self.document.is_explicit(&["nic".to_owned(), key.to_owned()]);
        let keys = ExplicitKeys {
            cnp: explicit("cnp"),
            cnp_interval_per: explicit("cnp-interval-per"),
            on_nack: explicit("on-nack"),
        };
        resolve::nic(nic, &keys, None).map_err(|error| self.document.locate(error))?;
        nic.validate().map_err(|e| self.document.locate(e.within("nic")))
    }

    /// A mistake in the value at a dotted path.
    pub fn wrong(&self, path: &str, message: &str) -> Finding {
        self.document.locate(code::RANGE.at(path, message))
    }

    /// A mistake at a line and a column, both from 1; columns count characters.
    pub fn wrong_at(&self, line: usize, column: usize, message: &str) -> Finding {
        let text = &self.source.text;
        let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        let rest = text[start..].chars().take(column.saturating_sub(1)).map(char::len_utf8).sum::<usize>();
        let at = start + rest;
        let word = text[at..].find(|c: char| c.is_whitespace() || c == '=').unwrap_or(0);
        code::RANGE.inside(&self.source.file, text, at..at + word, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_have_a_position() {
        let error = TableFile::new("a.toml", "a = \n").unwrap_err();
        assert!(error.located().starts_with("a.toml:1:"), "{}", error.located());
        let file = TableFile::new("a.toml", "[nic]\non-nack = \"as-cnp\"\n[nic.transport.adaptive-routing]")
            .unwrap();
        assert_eq!(file.wrong("nic.on-nack", "wrong").located(), "a.toml:2:11: wrong");
        let mut nic: NicConfig = toml::from_str("[transport.adaptive-routing]").unwrap();
        assert!(file.fill_nic(&mut nic).unwrap_err().text.contains("must be \"none\""));
        assert_eq!(file.wrong_at(2, 1, "wrong").located(), "a.toml:2:1: wrong");
        assert_eq!(file.wrong_at(9, 9, "wrong").place.unwrap().line, 3);
        let silent = TableFile::new("a.toml", "").unwrap();
        silent.fill_nic(&mut nic).unwrap();
        assert_eq!(nic.on_nack, rnic::Reaction::None);
    }
}
