//! Ports for Ethernet frames.
//!
//! | file | frames come from and go to |
//! |---|---|
//! | [`unix`] | a unix datagram socket, one frame per datagram: the network backend `dgram` of QEMU |
//! | [`packet`] | a network interface of Linux, by a packet socket: a ring in shared memory in, batches of system calls out |
//! | [`tap`] | a tap device, for guests and tools that bring none of these |
//! | [`pcap`] | capture files: pcap and pcapng in, pcapng out |
//! | [`signals`] | (no frames) signals of the system as events |
//!
//! [`Port`] is any of the first three. A port never waits: [`wait`] waits for several. A frame has the bytes from destination
//! address to the last one before the FCS.
//!
//! The crate knows nothing of RoCEv2. All unsafe code of the ports is in [`packet`] and [`tap`]: the calls of Linux for which no
//! library has a safe face.

mod frame;
pub mod pcap;

#[cfg(target_os = "linux")]
mod any;
#[cfg(target_os = "linux")]
pub mod packet;
#[cfg(target_os = "linux")]
pub mod signals;
#[cfg(target_os = "linux")]
pub mod tap;
#[cfg(target_os = "linux")]
pub mod unix;

#[cfg(target_os = "linux")]
pub use any::{Port, wait};
pub use frame::LONGEST;
