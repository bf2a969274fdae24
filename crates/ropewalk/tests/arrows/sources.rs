//! The source files of all crates, as the tests of arrows read them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The identifiers of a text, each with the text that follows it.
pub(crate) fn words(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = &rest[rest.find(of_word)?..];
        let (word, behind) = rest.split_at(rest.find(|c| !of_word(c)).unwrap_or(rest.len()));
        rest = behind;
        Some((word, behind))
    })
}

/// A source file without comments and tests.
pub(crate) struct Source {
    pub code: String,
    pub strings: Vec<String>,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let (mut code, mut strings) = (String::new(), Vec::new());
        let mut rest = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        while let Some(c) = rest.chars().next() {
            let raw =
                rest.strip_prefix('r').map(|r| r.trim_start_matches('#')).filter(|r| r.starts_with('"'));
            if rest.starts_with("//") {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            } else if let Some(quoted) =
                raw.filter(|_| !code.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
            {
                let end = format!("\"{}", "#".repeat(rest.len() - quoted.len() - 1));
                let (string, behind) = quoted[1..].split_once(&end).expect("a raw string ends");
                strings.push(string.to_owned());
                rest = behind;
            } else if c == '"' {
                let mut escaped = false;
                let end = rest[1..].find(|c| {
                    let end = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    end
                });
                let end = end.expect("a string ends") + 1;
                strings.push(rest[1..end].to_owned());
                rest = &rest[end + 1..];
            } else if let Some(quote) = ["'\"'", "'\\\"'"].into_iter().find(|quote| rest.starts_with(quote)) {
                rest = &rest[quote.len()..];
            } else {
                code.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        Source { code, strings }
    }
}

/// The Rust files of all crates except tests: path below `crates` or `frames`, and text.
pub(crate) fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the folder of the project");
    let rooms = ["crates", "frames"].map(|name| root.join(name));
    let entries = rooms.iter().flat_map(|room| std::fs::read_dir(room).expect("a folder"));
    let mut open: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path().join("src")).collect();
    let (mut files, mut tests) = (Vec::new(), BTreeSet::new());
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(path).expect("a folder").map(|e| e.expect("an entry").path()));
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            let folder = match path.file_stem().and_then(|stem| stem.to_str()) {
                Some("lib" | "main" | "mod") => path.parent().expect("a folder").to_owned(),
                _ => path.with_extension(""),
            };
            for module in text.split("#[cfg(test)]\nmod ").skip(1).filter_map(|rest| rest.split_once(';')) {
                tests.insert(folder.join(module.0));
            }
            files.push((path, text));
        }
    }
    let is_test = |path: &Path| tests.iter().any(|test| path.with_extension("").starts_with(test));
    let of_product = files.into_iter().filter(|(path, _)| !is_test(path));
    let below = |path: PathBuf| {
        let inside = rooms.iter().find_map(|room| path.strip_prefix(room).ok());
        inside.expect("a file of a crate").display().to_string()
    };
    of_product.map(|(path, text)| (below(path), text)).collect()
}
