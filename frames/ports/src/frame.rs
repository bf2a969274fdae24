//! What holds for a frame of any port.

/// Longest frame in bytes, without FCS: the usual size of a jumbo frame. IB's MTU of 4096 needs 4178.
pub const LONGEST: usize = 9216;

/// True if a frame was not sent because its receiver has no room or is absent.
#[cfg(target_os = "linux")]
pub(crate) fn is_drop(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, ConnectionReset, NotConnected, NotFound, WouldBlock};
    let kind =
        matches!(error.kind(), WouldBlock | NotFound | ConnectionRefused | ConnectionReset | NotConnected);
    kind || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENETDOWN))
}
