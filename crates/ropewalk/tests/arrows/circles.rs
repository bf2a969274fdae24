//! Circles of files: files of a crate each of which uses the next one. Such files can only be understood together.
//!
//! A file uses another one if a path in it leads to an item there: a path that starts with `crate`, `super`, `self` or a child
//! module. A re-export is no item: the path leads on to the file behind it. Tests do not count.

use crate::sources::{Source, sources};
use std::collections::{BTreeMap, BTreeSet};

/// Most files of a circle.
const MOST: usize = 3;

#[test]
fn no_circle_of_files_is_large() {
    let mut large = Vec::new();
    for (name, uses) in uses_of_all() {
        for circle in circles_of(&uses).into_iter().filter(|circle| circle.len() > MOST) {
            println!("{name}: {} files", circle.len());
            for file in &circle {
                let inside: Vec<_> = uses[file].intersection(&circle).collect();
                println!("    {file} uses {inside:?}");
            }
            large.push(circle);
        }
    }
    assert!(large.is_empty(), "{large:#?}");
}

/// By crate, the files that each file uses.
fn uses_of_all() -> BTreeMap<String, Uses> {
    let mut crates: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (path, text) in sources() {
        let name = path.split('/').next().expect("a crate").to_owned();
        crates.entry(name).or_default().push((path, text));
    }
    crates.into_iter().map(|(name, files)| (name, uses_of(&files))).collect()
}

type Uses = BTreeMap<String, BTreeSet<String>>;

/// The files that each file of a crate uses.
fn uses_of(files: &[(String, String)]) -> Uses {
    let parsed = files.iter().map(|(path, text)| (path, Module::new(path, text)));
    let mut modules: BTreeMap<Vec<String>, Module> = BTreeMap::new();
    for (path, module) in parsed {
        let place = place(path);
        // A program and a library beside it have the same root; few programs have modules of their own.
        if !modules.contains_key(&place) || path.ends_with("lib.rs") {
            modules.insert(place, module);
        }
    }
    let mut uses = Uses::new();
    for (place, module) in &modules {
        let found = uses.entry(module.file.clone()).or_default();
        for path in &module.paths {
            if let Some(target) = resolve(&modules, place, path, 0) {
                found.insert(target.to_owned());
            }
        }
        found.remove(&module.file);
    }
    uses
}

/// The place of a file in its crate's tree of modules.
fn place(path: &str) -> Vec<String> {
    let below = path.split("/src/").nth(1).expect("below src").trim_end_matches(".rs");
    let mut place: Vec<String> = below.split('/').map(str::to_owned).collect();
    if place.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        place.pop();
    }
    place
}

/// The file to which a path in the module at `place` leads; `None` if it leads out of the crate.
fn resolve<'m>(
    modules: &'m BTreeMap<Vec<String>, Module>,
    place: &[String],
    path: &[String],
    depth: usize,
) -> Option<&'m str> {
    let mut at = place.to_vec();
    let mut rest = path;
    while let Some((first, behind)) = rest.split_first() {
        match first.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()),
            _ => break,
        }
        rest = behind;
    }
    if rest.len() == path.len() && !modules.contains_key(&[&at[..], &path[..1]].concat()) {
        return None;
    }
    loop {
        let module = modules.get(&at)?;
        let Some((first, behind)) = rest.split_first() else { return Some(&module.file) };
        let child = [&at[..], std::slice::from_ref(first)].concat();
        if modules.contains_key(&child) {
            (at, rest) = (child, behind);
            continue;
        }
        let mut exports = module.exports.iter().filter(|(name, _)| name == first).map(|(_, path)| path);
        if depth < 8
            && let Some(path) = exports.next_back()
        {
            return resolve(modules, &at, &[&path[..], behind].concat(), depth + 1);
        }
        let globs = module.exports.iter().filter(|(name, _)| name == "*").map(|(_, path)| path);
        for path in globs.filter(|_| depth < 8 && !module.items.contains(first)) {
            let whole = [&path[..], rest].concat();
            if let Some(target) = resolve(modules, &at, &whole, depth + 1)
                && modules.values().any(|module| module.file == target && module.items.contains(first))
            {
                return Some(target);
            }
        }
        return Some(&module.file);
    }
}

/// A file as a module.
struct Module {
    file: String,
    /// Paths that may lead to other files.
    paths: Vec<Vec<String>>,
    /// Names that stand for a path: those of `use` declarations. `*` stands for all names of a module.
    exports: Vec<(String, Vec<String>)>,
    items: BTreeSet<String>,
}

impl Module {
    fn new(file: &str, text: &str) -> Self {
        let code = Source::new(text).code;
        let tokens = tokens(&code);
        let mut module =
            Module { file: file.to_owned(), paths: Vec::new(), exports: Vec::new(), items: BTreeSet::new() };
        let mut i = 0;
        while i < tokens.len() {
            let before = if i > 0 { tokens[i - 1] } else { "" };
            if tokens[i] == "use" && tokens.get(i + 1) != Some(&"<") {
                let is_export = before == "pub" || before == ")";
                let mut leaves = Vec::new();
                i = leaves_of(&tokens, i + 1, &[], &mut leaves);
                for (name, path) in leaves {
                    if !is_export {
                        let end = if name == "*" { path.len() - 1 } else { path.len() };
                        module.paths.push(path[..end].to_vec());
                    }
                    let end = if name == "*" { path.len() - 1 } else { path.len() };
                    module.exports.push((name, path[..end].to_vec()));
                }
                continue;
            }
            if matches!(before, "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union") {
                module.items.insert(tokens[i].to_owned());
            }
            let starts = before != "::" && tokens.get(i + 1) == Some(&"::") && is_word(tokens[i]);
            if !starts {
                i += 1;
                continue;
            }
            let mut path = vec![tokens[i].to_owned()];
            while tokens.get(i + 1) == Some(&"::") && tokens.get(i + 2).is_some_and(|token| is_word(token)) {
                path.push(tokens[i + 2].to_owned());
                i += 2;
            }
            module.paths.push(path);
            i += 1;
        }
        module
    }
}

/// Adds the leaves of a tree of `use` from token `i` on, each with the name that it gets; returns the token behind the tree.
fn leaves_of(
    tokens: &[&str],
    mut i: usize,
    before: &[String],
    leaves: &mut Vec<(String, Vec<String>)>,
) -> usize {
    let mut path = before.to_vec();
    loop {
        match tokens[i] {
            "{" => {
                i += 1;
                while !matches!(tokens[i], "}" | ";") {
                    i = leaves_of(tokens, i, &path, leaves);
                    i += usize::from(tokens[i] == ",");
                }
                return i + 1;
            }
            "::" => i += 1,
            "as" => {
                leaves.push((tokens[i + 1].to_owned(), path));
                return i + 2;
            }
            "," | "}" | ";" => {
                if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
                    path.pop();
                }
                leaves.push((path.last().cloned().unwrap_or_default(), path));
                return i;
            }
            word => {
                path.push(word.to_owned());
                i += 1;
            }
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::`, and single characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let of_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            c if of_word(c) => rest.find(|c| !of_word(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        tokens.push(token);
        rest = behind.trim_start();
    }
    tokens
}

/// The circles among files: each is the set of all files that reach each other.
fn circles_of(uses: &Uses) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = uses
        .keys()
        .map(|file| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![file]);
            while let Some(file) = open.pop() {
                open.extend(uses.get(file).into_iter().flatten().filter(|next| seen.insert(*next)));
            }
            (file, seen)
        })
        .collect();
    let circle = |file: &String| -> BTreeSet<String> {
        let back = |other: &&&String| reached[**other].contains(file);
        reached[file].iter().filter(back).map(|other| (*other).clone()).collect()
    };
    let circles: BTreeSet<_> = uses.keys().map(circle).filter(|circle| circle.len() > 1).collect();
    circles.into_iter().collect()
}

#[test]
fn circles_are_found_through_re_exports_and_none_through_tests() {
    let files = [
        ("a/src/lib.rs", "mod b; mod c; pub use b::B; fn f() { c::g::<u8>() }"),
        ("a/src/b.rs", "use crate::c::{self, g}; pub struct B;"),
        ("a/src/c/mod.rs", "mod d; pub use d::g;\n#[cfg(test)]\nmod tests { use crate::e::E; }"),
        ("a/src/c/d.rs", "pub fn g() { let b: super::super::B; }"),
        ("a/src/e.rs", "use super::b::B; use std::fmt; // crate::c\n"),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let uses = uses_of(&files);
    let of = |file: &str| uses[file].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(of("a/src/lib.rs"), ["a/src/c/d.rs"]);
    assert_eq!(of("a/src/b.rs"), ["a/src/c/d.rs", "a/src/c/mod.rs"]);
    assert_eq!(of("a/src/e.rs"), ["a/src/b.rs"]);
    let circles = circles_of(&uses);
    assert_eq!(circles.len(), 1);
    assert!(circles[0].iter().eq(&["a/src/b.rs", "a/src/c/d.rs"]), "{circles:?}");
}
