//! Captures of simulated links that Wireshark opens: RoCEv2 frames, bit by bit, in a pcapng file.
//!
//! | file | what |
//! |---|---|
//! | [`mod@encode`] | a packet of the simulator as the bytes of a real one |
//! | [`addresses`] | MAC and IP addresses, queue pair numbers, UDP ports |
//! | [`pcapng`] | the file |
//! | [`tap`] | where to capture |

pub mod addresses;
pub mod encode;
pub mod pcapng;
pub mod tap;

use model::{LinkId, Packet, Time};

/// A frame at a tap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// When its first bit passes.
    pub at: Time,
    /// The link, in the frame's direction.
    pub link: LinkId,
    /// What it is.
    pub what: Captured,
}

/// What passes a tap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Captured {
    /// A packet.
    Packet(Packet),
    /// A pause or a resume.
    Pause {
        /// The class is to pause; otherwise it may go on.
        class_paused: bool,
    },
}
