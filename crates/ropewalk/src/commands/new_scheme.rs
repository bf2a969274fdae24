//! `ropewalk new-scheme`: a crate outside the repository with a scheme, a congestion control and a recovery mode of one's own.

use crate::commands::new::write_new;
use crate::print;
use lab::failure::Failure;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The files of the crate, as `crates/mine` has them.
const FILES: [(&str, &str); 6] = [
    ("src/main.rs", include_str!("../../../mine/src/main.rs")),
    ("src/lib.rs", include_str!("../../../mine/src/lib.rs")),
    ("src/scheme.rs", include_str!("../../../mine/src/scheme.rs")),
    ("src/control.rs", include_str!("../../../mine/src/control.rs")),
    ("src/transport.rs", include_str!("../../../mine/src/transport.rs")),
    ("tests/rules.rs", include_str!("../../../mine/tests/rules.rs")),
];

/// Crates that the new one uses, or whose names cargo reserves.
const CRATES: [&str; 10] =
    ["strand", "serde", "schemars", "ropewalk", "std", "core", "alloc", "test", "proc-macro", "build"];

/// Crates of ropewalk's workspace with a profile of their own that the face does not use: cargo would warn of them.
const UNUSED: [&str; 3] = ["bump", "tor", "workshop"];

/// Words of Rust, which no crate can have as its name.
const KEYWORDS: [&str; 47] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "unsafe", "use", "virtual", "while",
];

/// Writes the crate, which takes ropewalk from the folder `sources`.
///
/// # Errors
/// If the name is no name or taken, a file exists, or the folder has no sources of ropewalk.
pub fn run(name: &str, dir: &Path, sources: Option<&Path>) -> Result<(), Failure> {
    if let Some(why) = unfit(name) {
        return Err(Failure::Asked(format!("`{name}` cannot be the name of parts of your own: {why}")));
    }
    let face = match sources {
        Some(sources) => Some(face_in(sources)?),
        None => {
            Some(Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("strand")).filter(|face| face.is_dir())
        }
    };
    let wrong =
        |path: &Path, e: std::io::Error| Failure::Asked(format!("cannot make {}: {e}", path.display()));
    for part in ["src", "tests"] {
        let part = dir.join(part);
        std::fs::create_dir_all(&part).map_err(|e| wrong(&part, e))?;
    }
    let near = face.is_some();
    write_new(&dir.join("Cargo.toml"), manifest(name, face))?;
    for (file, text) in FILES {
        write_new(&dir.join(file), renamed(text, name))?;
    }
    let word = lab::shell::word(&dir.display().to_string());
    if !near {
        print::out(
            "Cargo.toml takes ropewalk from its public repository, as the folder of this program's sources is gone; \
             --sources names another\n",
        )?;
    }
    print::out(&format!(
        "{} written. Next: cd {word}; cargo test; cargo run --release -- run quickstart --set scheme.{name}={{}}\n",
        dir.display()
    ))
}

/// The face of ropewalk in a folder of its sources.
fn face_in(sources: &Path) -> Result<PathBuf, Failure> {
    let face = sources.join("crates/strand");
    match face.join("Cargo.toml").is_file().then(|| face.canonicalize()) {
        Some(Ok(face)) => Ok(face),
        _ => Err(Failure::Asked(format!(
            "{} has no sources of ropewalk: expected the folder that has crates/strand",
            sources.display()
        ))),
    }
}

/// Why a crate and its parts cannot have this name.
fn unfit(name: &str) -> Option<&'static str> {
    let reserved = CRATES.contains(&name) || KEYWORDS.contains(&name);
    schemes::own::unfit_for_all(name).or(reserved.then_some("cargo or Rust gives this word another meaning"))
}

/// A file of `crates/mine` for a scheme of another name.
fn renamed(text: &str, name: &str) -> String {
    let mut text = text.replace("mine::", &format!("{}::", name.replace('-', "_")));
    for (before, after) in [
        ("\"", "\""),
        ("--schemes ", ","),
        ("scheme.", "]"),
        ("nic.congestion.", "]"),
        ("nic.transport.", "]"),
    ] {
        text = text.replace(&format!("{before}mine{after}"), &format!("{before}{name}{after}"));
    }
    text
}

/// The manifest. The face of ropewalk lies in the directory `face`, or in the public repository.
fn manifest(name: &str, face: Option<PathBuf>) -> String {
    let face = match face {
        Some(path) => format!("path = {:?}", path.display().to_string()),
        None => format!("git = {:?}, tag = \"v{}\"", env!("CARGO_PKG_REPOSITORY"), env!("CARGO_PKG_VERSION")),
    };
    format!(
        r#"[package]
name = "{name}"
version = "0.1.0"
edition = "2024"
publish = false

[dependencies]
strand = {{ {face} }}
schemars = "1.2"
serde = {{ version = "1.0", features = ["derive"] }}

# What has to be fast is optimised, as in ropewalk itself. The tests run thousands of scenarios.
{profiles}
[profile.dev.package.{name}]
opt-level = 1

[profile.release.package.{name}]
opt-level = 3
codegen-units = 1

[workspace]
"#,
        profiles = profiles()
    )
}

/// The profiles of ropewalk's own workspace, which cargo takes from the root alone: without the crates that the face does not use.
fn profiles() -> String {
    let root: Table = include_str!("../../../../Cargo.toml").parse().unwrap_or_default();
    let mut kept = Table::new();
    for name in ["dev", "release"] {
        let Some(Value::Table(profile)) = root.get("profile").and_then(|all| all.get(name)) else { continue };
        let mut profile = profile.clone();
        if let Some(Value::Table(crates)) = profile.get_mut("package") {
            crates.retain(|name, _| !UNUSED.contains(&name));
        }
        kept.insert(name.to_owned(), Value::Table(profile));
    }
    toml::to_string(&Table::from_iter([("profile".to_owned(), Value::Table(kept))])).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_bear_the_new_name_alone() {
        for (file, text) in FILES {
            let words = renamed(text, "two-choices");
            let left = words.split(|c: char| !c.is_alphanumeric()).any(|word| word == "mine");
            assert!(!left, "{file}: {words}");
        }
        assert!(renamed(FILES[0].1, "two-choices").contains("two_choices::PARTS"));
        assert!(renamed(FILES[1].1, "two-choices").contains("\"two-choices\","));
    }

    #[test]
    fn sources_are_known_by_the_face_in_them() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert!(face_in(&root).is_ok_and(|face| face.is_absolute() && face.ends_with("crates/strand")));
        assert!(face_in(&root.join("crates")).is_err());
    }

    #[test]
    fn the_manifest_asks_for_the_versions_that_ropewalk_has() {
        let own: Table = manifest("two-choices", None).parse().unwrap();
        let all: Table = include_str!("../../../../Cargo.toml").parse().unwrap();
        let version =
            |of: &toml::Value| of.as_str().or_else(|| of.get("version")?.as_str()).map(str::to_owned);
        for name in ["schemars", "serde"] {
            assert_eq!(version(&own["dependencies"][name]), version(&all["workspace"]["dependencies"][name]));
        }
        let engine = &own["profile"]["release"]["package"]["engine"];
        assert_eq!(engine, &all["profile"]["release"]["package"]["engine"]);
        let near: Table = manifest("two-choices", Some("/a/\"b".into())).parse().unwrap();
        assert_eq!(near["dependencies"]["strand"]["path"].as_str(), Some("/a/\"b"));
    }

    #[test]
    fn names_that_a_crate_or_one_of_its_parts_cannot_have_are_refused() {
        assert_eq!(unfit("two-choices2"), None);
        for name in [
            "",
            "2c",
            "-a",
            "a-",
            "Two",
            "a_b",
            "a b",
            "themis",
            "long-haul",
            "swift",
            "irn",
            "loop",
            "strand",
        ] {
            assert!(unfit(name).is_some(), "{name}");
        }
    }
}
