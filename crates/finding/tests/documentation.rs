//! The list of codes in `docs/findings.md` is that of the code; `GOLDEN=write` writes it anew.

use finding::{Severity, code};
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/findings.md");

/// The lists of all codes.
fn codes() -> String {
    let mut text = String::new();
    for (title, severity) in [("Errors", Severity::Error), ("Warnings", Severity::Warning)] {
        let _ = write!(text, "\n## {title}\n\n");
        for code in code::ALL.iter().filter(|code| code.severity == severity) {
            let _ = writeln!(text, "* `{}`: {}", code.name, code.about);
        }
    }
    text
}

#[test]
fn the_documentation_lists_every_code() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (prose, listed) = page.split_at(page.find("\n## Errors\n").unwrap_or(page.len()));
    if std::env::var("GOLDEN").is_ok_and(|how| how == "write") {
        std::fs::write(PAGE, prose.to_owned() + &codes()).unwrap();
    } else {
        assert_eq!(listed, codes());
    }
}

#[test]
fn every_code_has_a_name_of_its_own_and_whole_sentences() {
    let mut names: Vec<&str> = code::ALL.iter().map(|code| code.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    for code in code::ALL {
        assert!(code.about.starts_with(char::is_uppercase) || code.about.starts_with("ropewalk"));
        assert!(code.about.ends_with('.'), "{}", code.name);
    }
}
