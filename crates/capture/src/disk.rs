//! The space that is left on the disk of a capture.

use results::text::bytes;
use std::io;
use std::path::Path;

/// Space that a capture leaves for the other results and for other programs: a hundredth of the disk, and at most 100 MB.
/// Our choice.
const PART: u64 = 100;
const MOST: u64 = 100_000_000;

/// Refuses to go on when the disk of a directory would be nearly full with this many bytes more.
#[allow(clippy::unnecessary_cast, reason = "numbers of blocks have 32 bits on macOS")]
pub(crate) fn has_room(dir: &Path, more: u64) -> io::Result<()> {
    // A system that does not tell refuses the write when the disk is full.
    let Ok(disk) = nix::sys::statvfs::statvfs(dir) else { return Ok(()) };
    let fragment = disk.fragment_size() as u64;
    enough(more, disk.blocks_available() as u64 * fragment, disk.blocks() as u64 * fragment)
}

fn enough(more: u64, left: u64, whole: u64) -> io::Result<()> {
    if left.saturating_sub(more) >= (whole / PART).min(MOST) {
        return Ok(());
    }
    let text = format!("the disk is nearly full ({} of {} are left)", bytes(left), bytes(whole));
    Err(io::Error::new(io::ErrorKind::StorageFull, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hundredth_of_a_disk_is_left_alone_and_at_most_100_mb() {
        assert!(enough(50, 1_050, 100_000).is_ok() && enough(0, 100_000_000, 1 << 40).is_ok());
        let full = enough(1, 100_000_000, 1 << 40).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert!(full.to_string().starts_with("the disk is nearly full (100 MB of "), "{full}");
        assert!(enough(0, 999, 100_000).is_err());
        assert!(has_room(Path::new("no directory of this name"), u64::MAX).is_ok());
    }
}
