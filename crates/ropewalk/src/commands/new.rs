//! `ropewalk new`, and writing files that must not exist yet.

use crate::print;
use lab::failure::Failure;
use results::whole;
use std::io::ErrorKind;
use std::path::Path;

/// Writes a commented scenario to start from.
///
/// # Errors
/// If the name is not a valid file name, or the file exists.
pub fn run(name: &str) -> Result<(), Failure> {
    let stem = name.strip_suffix(".toml").unwrap_or(name);
    if stem.is_empty() || stem.contains(['/', '\\']) || stem.starts_with('.') {
        return Err(Failure::Asked(format!(
            "`{name}` cannot be the name of a scenario; a name such as my-fabric can"
        )));
    }
    let file = format!("{stem}.toml");
    write_new(Path::new(&file), scenario::template(stem))?;
    let word = lab::shell::word(&file);
    print::out(&format!("{file} written. Next: ropewalk check {word}; ropewalk run {word}\n"))
}

/// Writes a file that must not exist yet.
///
/// # Errors
/// If it exists, or the system refuses.
pub fn write_new(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    let wrong = |e: std::io::Error| {
        let why = match e.kind() {
            ErrorKind::AlreadyExists => "it exists already and is not overwritten".to_owned(),
            _ => e.to_string(),
        };
        Failure::Asked(format!("cannot write {}: {why}", path.display()))
    };
    whole::create(path, content).map_err(wrong)
}
