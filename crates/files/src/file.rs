//! Files of users, read up to a limit. A file that gzip has packed is read like its content.

use crate::room::{Room, amount};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// How much of a file is read. A file for whose content there is no memory is refused before it is parsed.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Most bytes, unpacked.
    most: u64,
    /// Bytes of memory that each of them takes until a run can start.
    memory: u64,
}

impl Reading {
    /// A scenario or a sweep. The largest that we know lists a million flows in 59 MB; `check` took 3.2 GB for it. Most bytes: our
    /// choice.
    pub const SCENARIO: Reading = Reading { most: 256 << 20, memory: 54 };
    /// Flows of HPCC's simulator, which become a scenario: measured, 3.1 GB for a million flows in 19 MB.
    pub const HPCC: Reading = Reading::import(162);
    /// A log that is read line by line: the text and its lines.
    pub const LOG: Reading = Reading::import(3);

    /// A file of another tool, which may list tens of millions of flows (our choice).
    pub const fn import(memory: u64) -> Self {
        Reading::up_to(1 << 30, memory)
    }

    /// At most so many bytes, each of which takes so much memory.
    pub const fn up_to(most: u64, memory: u64) -> Self {
        Reading { most, memory }
    }
}

/// The reason why a text file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is larger than this number of bytes.
    #[error("it has more than {0} bytes, the most that ropewalk reads of such a file")]
    TooLarge(u64),
    /// There is not enough memory for its content.
    #[error("it takes at least {} of memory, and {} has {} left", amount(*.0), .1.limit, amount(.1.left))]
    NoRoom(u64, Room),
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
            ReadError::Io(e) if e.kind() == io::ErrorKind::IsADirectory => {
                format!("{name} is a directory; name a file")
            }
            _ => format!("{name} cannot be read: {self}"),
        }
    }

    /// True if there is no such file.
    pub fn is_not_found(&self) -> bool {
        matches!(self, ReadError::Io(e) if e.kind() == io::ErrorKind::NotFound)
    }
}

/// The first bytes of a file that gzip has packed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The mark of UTF-8 that some editors put at the start of a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a text file.
///
/// # Errors
/// See [`ReadError`].
pub fn read(path: &Path, reading: Reading) -> Result<String, ReadError> {
    text(bytes(path, reading)?)
}

/// Reads a file.
pub fn bytes(path: &Path, reading: Reading) -> Result<Vec<u8>, ReadError> {
    let file = File::open(path)?;
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    unpacked(file, reading, Room::now()).map_err(|error| match error {
        ReadError::NoRoom(least, room) => {
            ReadError::NoRoom(least.max(size.saturating_mul(reading.memory)), room)
        }
        _ => error,
    })
}

/// The first bytes of a file, unpacked, up to `most`.
pub fn start(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    content(File::open(path)?)?.take(most).read_to_end(&mut start)?;
    Ok(start)
}

/// True if gzip has packed a file.
pub fn is_packed(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(2).read_to_end(&mut start)?;
    Ok(start == GZIP)
}

/// The content of a source, unpacked if gzip has packed it. A packed file that is too large is unpacked up to the limit.
pub fn unpacked(source: impl Read, reading: Reading, room: Option<Room>) -> Result<Vec<u8>, ReadError> {
    let fits = room.map_or(u64::MAX, |room| room.left / reading.memory);
    let limit = reading.most.min(fits);
    let mut bytes = Vec::new();
    content(source)?.take(limit + 1).read_to_end(&mut bytes)?;
    match room {
        _ if bytes.len() as u64 <= limit => Ok(bytes),
        Some(room) if fits < reading.most => Err(ReadError::NoRoom((limit + 1) * reading.memory, room)),
        _ => Err(ReadError::TooLarge(reading.most)),
    }
}

fn content<'a>(mut source: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut start = Vec::new();
    source.by_ref().take(2).read_to_end(&mut start)?;
    let packed = start == GZIP;
    let whole = io::Cursor::new(start).chain(source);
    Ok(if packed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}

/// A text without a byte order mark.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// The text that these bytes are.
pub fn text(bytes: Vec<u8>) -> Result<String, ReadError> {
    let text = String::from_utf8(bytes).map_err(|e| {
        let (good, bad) = e.as_bytes().split_at(e.utf8_error().valid_up_to());
        let good = String::from_utf8_lossy(good);
        let (line, last) = (good.matches('\n').count() + 1, good.rsplit('\n').next().unwrap_or_default());
        ReadError::NotText { line, column: last.chars().count() + 1, byte: bad.first().copied().unwrap_or(0) }
    })?;
    Ok(match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::Limit;

    const FIVE: Reading = Reading::up_to(5, 1);

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, bytes).unwrap();
        file
    }

    #[test]
    fn a_file_over_the_limit_is_refused() {
        assert_eq!(read(file(b"12345").path(), FIVE).unwrap(), "12345");
        let text = read(file(b"123456").path(), FIVE).unwrap_err().to_string();
        assert_eq!(text, "it has more than 5 bytes, the most that ropewalk reads of such a file");
    }

    #[test]
    fn a_file_whose_content_does_not_fit_into_memory_is_refused_before_it_is_unpacked() {
        let room = Some(Room { left: 999, limit: Limit::AddressSpace });
        let taken =
            |bytes: usize| unpacked(&*vec![b'a'; bytes], Reading::import(100), room).map(|it| it.len());
        assert_eq!(taken(9).unwrap(), 9);
        let text = taken(10).unwrap_err().to_string();
        assert_eq!(
            text,
            "it takes at least 1 MB of memory, and the address space of this process (ulimit -v) has 1 MB left"
        );
        let bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let bomb = {
            let mut bomb = bomb;
            io::Write::write_all(&mut bomb, &[0; 100_000]).unwrap();
            bomb.finish().unwrap()
        };
        let unpacked = unpacked(&*bomb, Reading::import(100), room);
        assert!(bomb.len() < 999 && matches!(unpacked, Err(ReadError::NoRoom(1000, _))));
    }

    #[test]
    fn a_packed_file_is_read_like_its_content() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut packed, b"12345").unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(read(file(&packed).path(), FIVE).unwrap(), "12345");
        assert!(matches!(read(file(&packed).path(), Reading::up_to(4, 1)), Err(ReadError::TooLarge(4))));
        assert_eq!(start(file(&packed).path(), 2).unwrap(), b"12");
        assert!(is_packed(file(&packed).path()).unwrap() && !is_packed(file(b"12345").path()).unwrap());
        let cut = read(file(&packed[..packed.len() - 9]).path(), FIVE).unwrap_err();
        assert!(matches!(cut, ReadError::Io(_)), "{cut}");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_text() {
        assert_eq!(read(file("\u{feff}a = 1\n".as_bytes()).path(), Reading::SCENARIO).unwrap(), "a = 1\n");
        assert_eq!(read(file("a\u{feff}".as_bytes()).path(), Reading::SCENARIO).unwrap(), "a\u{feff}");
    }

    #[cfg(unix)]
    #[test]
    fn an_endless_file_is_refused() {
        assert!(matches!(read(Path::new("/dev/zero"), FIVE), Err(ReadError::TooLarge(_))));
    }

    #[test]
    fn a_byte_that_is_no_text_is_named_with_its_place() {
        let text = read(file("a = 1\né = \"\u{fc}".as_bytes()).path(), Reading::SCENARIO).unwrap();
        assert!(text.ends_with('ü'));
        let error = read(file(b"a = 1\n\xc3\xa9 = \xff").path(), Reading::SCENARIO).unwrap_err();
        assert_eq!(error.to_string(), "2:5: expected text in UTF-8, found the byte 0xff");
    }
}
