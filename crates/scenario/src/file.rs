//! Text files of users, read up to a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Most bytes of a scenario or a sweep. The largest that we know lists a million flows in 40 MB. Our choice.
pub const LARGEST_SCENARIO: u64 = 256 << 20;
/// Most bytes of a file of another tool, which may list tens of millions of flows. Our choice.
pub const LARGEST_IMPORT: u64 = 1 << 30;

/// The reason why a text file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is larger than this number of bytes.
    #[error("it has more than {0} bytes, the most that ropewalk reads of such a file")]
    TooLarge(u64),
    /// The file is no text.
    #[error("{line}:{column}: expected text in UTF-8, found the byte 0x{byte:02x}")]
    NotText {
        /// Line of the first wrong byte, from 1.
        line: usize,
        /// Column of that byte in characters, from 1.
        column: usize,
        /// The byte.
        byte: u8,
    },
}

impl ReadError {
    /// The message about the file with this name.
    pub fn about(&self, name: &str) -> String {
        match self {
            ReadError::NotText { .. } => format!("{name}:{self}"),
            _ => format!("{name} cannot be read: {self}"),
        }
    }

    /// True if there is no such file.
    pub fn is_not_found(&self) -> bool {
        matches!(self, ReadError::Io(e) if e.kind() == io::ErrorKind::NotFound)
    }
}

/// Reads a text file of at most `largest` bytes.
///
/// # Errors
/// See [`ReadError`].
pub fn read(path: &Path, largest: u64) -> Result<String, ReadError> {
    let mut bytes = Vec::new();
    File::open(path)?.take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        return Err(ReadError::TooLarge(largest));
    }
    String::from_utf8(bytes).map_err(|e| {
        let (good, bad) = e.as_bytes().split_at(e.utf8_error().valid_up_to());
        let good = String::from_utf8_lossy(good);
        let (line, last) = (good.matches('\n').count() + 1, good.rsplit('\n').next().unwrap_or_default());
        ReadError::NotText { line, column: last.chars().count() + 1, byte: bad.first().copied().unwrap_or(0) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, bytes).unwrap();
        file
    }

    #[test]
    fn a_file_over_the_limit_is_refused() {
        assert_eq!(read(file(b"12345").path(), 5).unwrap(), "12345");
        let text = read(file(b"123456").path(), 5).unwrap_err().to_string();
        assert_eq!(text, "it has more than 5 bytes, the most that ropewalk reads of such a file");
    }

    #[cfg(unix)]
    #[test]
    fn an_endless_file_is_refused() {
        assert!(matches!(read(Path::new("/dev/zero"), 1 << 20), Err(ReadError::TooLarge(_))));
    }

    #[test]
    fn a_byte_that_is_no_text_is_named_with_its_place() {
        let text = read(file("a = 1\né = \"\u{fc}".as_bytes()).path(), 99).unwrap();
        assert!(text.ends_with('ü'));
        let error = read(file(b"a = 1\n\xc3\xa9 = \xff").path(), 99).unwrap_err();
        assert_eq!(error.to_string(), "2:5: expected text in UTF-8, found the byte 0xff");
    }
}
