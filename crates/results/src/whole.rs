//! Writing a file as a whole or not at all.
//!
//! All commands write their files through this module. A symbolic link is followed. A device or a pipe is written to:
//! renaming a file over it would destroy it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Links that are followed before a path counts as a circle (Linux follows as many).
const LINKS: usize = 40;

/// The path behind symbolic links. The last link may lead to a path at which nothing is.
///
/// # Errors
/// If the links form a circle, or cannot be read.
pub fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                let to = fs::read_link(&path)?;
                // An absolute `to` replaces the whole path.
                path = path.parent().unwrap_or(Path::new("")).join(to);
            }
            _ => return Ok(path),
        }
    }
    Err(io::Error::other("the symbolic links form a circle"))
}

/// True if something stands at the path that a new file cannot replace: a device, a pipe or a socket.
pub fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Writes `bytes`; see [`write_with`].
///
/// # Errors
/// If the system refuses.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    write_with(path, |mut file| file.write_all(bytes.as_ref()))
}

/// Writes a file with `write`. A reader sees the old content or the new one, never a part.
///
/// # Errors
/// If the system or `write` refuses. The old file stays.
pub fn write_with(path: &Path, write: impl FnOnce(File) -> io::Result<()>) -> io::Result<()> {
    if is_device(path) {
        return OpenOptions::new().write(true).open(path).and_then(write);
    }
    let path = behind_links(path)?;
    let (part, file) = beside(&path)?;
    let done = write(file).and_then(|()| fs::rename(&part, &path));
    if done.is_err() {
        drop(fs::remove_file(&part));
    }
    done
}

/// Writes a file that must not exist yet.
///
/// # Errors
/// If anything is there, even a link to nothing, or the system refuses. No part of the file stays.
pub fn create(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let done = file.write_all(bytes.as_ref());
    if done.is_err() {
        drop(fs::remove_file(path));
    }
    done
}

/// True for the name of the part that an interrupted [`write`] of the file `of` leaves behind.
pub fn is_part(name: &str, of: &str) -> bool {
    name.strip_prefix('.')
        .and_then(|rest| rest.strip_prefix(of))
        .is_some_and(|rest| rest.starts_with(".new-"))
}

/// A new file in the folder of `path`. It takes no name that is in use, so it overwrites nothing.
fn beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let Some(name) = path.file_name() else { return Err(ErrorKind::IsADirectory.into()) };
    let name = name.to_string_lossy();
    let mut number = 0;
    loop {
        let part = path.with_file_name(format!(".{name}.new-{}-{number}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&part) {
            Ok(file) => return Ok((part, file)),
            // An earlier process with this number was killed, or another thread is at work.
            Err(e) if e.kind() == ErrorKind::AlreadyExists && number < 100 => number += 1,
            Err(e) => return Err(e),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::tempdir;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_old_file_is_replaced_and_nothing_else_is_left() {
        let tmp = tempdir().unwrap();
        let file = tmp.path().join("status.json");
        write(&file, "old").unwrap();
        write(&file, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        let failed = write_with(&file, |mut part| {
            part.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "the disk is full");
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(names(tmp.path()), ["status.json"]);
    }

    #[test]
    fn a_link_is_followed_and_stays() {
        let tmp = tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        fs::create_dir(at("far")).unwrap();
        fs::write(at("far/file"), "old").unwrap();
        symlink("far/file", at("relative")).unwrap();
        symlink(at("relative"), at("twice")).unwrap();
        symlink("far/missing", at("to-nothing")).unwrap();
        symlink("circle", at("circle")).unwrap();
        for (link, text, file) in
            [("relative", "1", "far/file"), ("twice", "2", "far/file"), ("to-nothing", "3", "far/missing")]
        {
            write(&at(link), text).unwrap();
            assert_eq!(fs::read_to_string(at(file)).unwrap(), text);
            assert!(at(link).is_symlink(), "{link}");
        }
        assert!(write(&at("circle"), "4").is_err());
        assert!(at("circle").is_symlink());
        assert_eq!(names(tmp.path()), ["circle", "far", "relative", "to-nothing", "twice"]);
        assert_eq!(names(&at("far")), ["file", "missing"]);
    }

    #[test]
    fn a_device_is_written_to_and_stays() {
        let tmp = tempdir().unwrap();
        let link = tmp.path().join("null");
        symlink("/dev/null", &link).unwrap();
        for path in [Path::new("/dev/null"), &link] {
            assert!(is_device(path));
            write(path, "text").unwrap();
            assert!(is_device(path));
        }
        // No space is ever left on this device.
        assert_eq!(write(Path::new("/dev/full"), "text").unwrap_err().kind(), ErrorKind::StorageFull);
        assert!(is_device(Path::new("/dev/full")) && link.is_symlink());
    }

    #[test]
    fn a_pipe_is_written_to_and_stays() {
        let tmp = tempdir().unwrap();
        let pipe = tmp.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let read = {
            let pipe = pipe.clone();
            std::thread::spawn(move || fs::read_to_string(pipe).unwrap())
        };
        write(&pipe, "text").unwrap();
        assert_eq!(read.join().unwrap(), "text");
        assert!(is_device(&pipe));
        assert_eq!(names(tmp.path()), ["pipe"]);
    }

    #[test]
    fn the_new_part_takes_no_name_in_use() {
        let tmp = tempdir().unwrap();
        let stale = tmp.path().join(format!(".file.new-{}-0", std::process::id()));
        symlink(tmp.path().join("victim"), &stale).unwrap();
        write(&tmp.path().join("file"), "text").unwrap();
        assert!(stale.is_symlink() && !tmp.path().join("victim").exists());
    }

    #[test]
    fn a_new_file_never_replaces_anything() {
        let tmp = tempdir().unwrap();
        let (file, link) = (tmp.path().join("file"), tmp.path().join("link"));
        create(&file, "one").unwrap();
        symlink("nothing", &link).unwrap();
        for taken in [&file, &link] {
            assert_eq!(create(taken, "two").unwrap_err().kind(), ErrorKind::AlreadyExists);
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    }
}
