//! Paths from one place to another.

use std::path::{Component, Path, PathBuf};

/// The path that leads from the folder of a file that is yet to be written to another file. Without a common start, or if one of the
/// two does not exist, it is the absolute path.
pub(super) fn from_folder_of(file: &Path, to: &Path) -> PathBuf {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let absolute = || std::path::absolute(to).unwrap_or_else(|_| to.to_owned());
    // Links are followed first: behind a link, `..` leads elsewhere.
    match (folder.canonicalize(), to.canonicalize()) {
        (Ok(from), Ok(to)) => between(&from, &to).unwrap_or(to),
        _ => absolute(),
    }
}

/// The path from one absolute folder to an absolute path.
fn between(from: &Path, to: &Path) -> Option<PathBuf> {
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let normal = |part: &Component<'_>| matches!(part, Component::Normal(_));
    if common == 0 || !from[common..].iter().all(normal) {
        return None;
    }
    let up = from[common..].iter().map(|_| Component::ParentDir);
    Some(up.chain(to[common..].iter().copied()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_up_to_the_common_folder_and_down_again() {
        for (from, to, path) in [
            ("/a/b", "/a/b/c.cm", "c.cm"),
            ("/a/b", "/a/c.cm", "../c.cm"),
            ("/a/b/c", "/d/e.cm", "../../../d/e.cm"),
            ("/", "/d/e.cm", "d/e.cm"),
        ] {
            assert_eq!(between(Path::new(from), Path::new(to)), Some(path.into()), "{from} {to}");
        }
    }

    #[test]
    fn a_file_that_does_not_exist_keeps_its_absolute_path() {
        let folder = tempfile::tempdir().unwrap();
        let (scenario, file) = (folder.path().join("s.toml"), folder.path().join("missing.cm"));
        assert_eq!(from_folder_of(&scenario, &file), file);
        std::fs::write(&file, "").unwrap();
        assert_eq!(from_folder_of(&scenario, &file), Path::new("missing.cm"));
    }
}
