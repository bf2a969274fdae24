//! Network interfaces of Linux by packet sockets (packet(7)): frames come in by a ring of blocks that the kernel fills
//! (TPACKET_V3), and leave in batches (sendmmsg).
//!
//! The kernel hands a block over when it is full, or after a millisecond. On an idle interface a frame therefore waits up to a
//! tick of the kernel's clock.
#![expect(unsafe_code, reason = "no library has a safe face for the ring that a packet socket shares")]

use crate::frame::{LONGEST, is_drop};
use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

/// Size of a block, bytes, and number of blocks. Our choice: 16 MB hold 0.1 s of a 1 Gb/s link.
const BLOCK: usize = 1 << 18;
const BLOCKS: usize = 64;
/// Time after which the kernel hands over a block that is not full, ms: the shortest that it knows.
const HAND_OVER: u32 = 1;
/// Most frames of one system call.
const BATCH: usize = 64;
/// Bytes of a VLAN tag, which the kernel takes out of frames.
const TAG: usize = 4;
/// Bytes of two addresses, behind which a VLAN tag stands.
const ADDRESSES: usize = 12;

/// A network interface.
#[derive(Debug)]
pub struct Packet {
    socket: OwnedFd,
    ring: Ring,
    /// Frames that wait to be sent, one behind the other, and their lengths.
    waiting: Vec<u8>,
    lengths: Vec<usize>,
}

/// The ring of blocks.
#[derive(Debug)]
struct Ring {
    start: NonNull<u8>,
    /// Block that is read next or now.
    block: usize,
    /// Frames of this block that are left, and the offset of the next one.
    left: u32,
    offset: usize,
}

// SAFETY: the ring belongs to its value alone, and no other pointer into it exists.
unsafe impl Send for Ring {}

impl Packet {
    /// Opens the interface with this name for all frames, whoever they are for.
    ///
    /// # Errors
    /// If the system refuses: there is no such interface, or the user may not open packet sockets.
    pub fn open(name: &str) -> io::Result<Self> {
        let text = CString::new(name).map_err(|_| io::Error::other("the name contains a zero byte"))?;
        // SAFETY: the text ends with a zero byte and lives until the call returns.
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the call has no pointers. Protocol 0 takes no frames until the socket is bound.
        let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open, and nothing else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        set(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as libc::c_int))?;
        // Frames that this socket sends must not come back.
        set(&socket, libc::PACKET_IGNORE_OUTGOING, &1)?;
        // Without a queueing discipline, as a switch has its own queues.
        set(&socket, libc::PACKET_QDISC_BYPASS, &1)?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: BLOCK as u32,
            tp_frame_nr: BLOCKS as u32,
            tp_retire_blk_tov: HAND_OVER,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::PACKET_RX_RING, &request)?;
        let ring = Ring::map(&socket)?;
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address is a `sockaddr_ll` of this length and lives until the call returns.
        check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
        let all = libc::packet_mreq {
            mr_ifindex: index as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(&socket, libc::PACKET_ADD_MEMBERSHIP, &all)?;
        Ok(Packet { socket, ring, waiting: Vec::with_capacity(BATCH * LONGEST), lengths: Vec::new() })
    }

    /// [`crate::Port::receive`]. A VLAN tag that the kernel has taken out stands in its place again.
    ///
    /// # Errors
    /// None; the ring needs no system call.
    pub fn receive(&mut self, most: usize, mut take: impl FnMut(&[u8])) -> io::Result<usize> {
        let mut taken = 0;
        while taken < most && self.ring.next(&mut take) {
            taken += 1;
        }
        Ok(taken)
    }

    /// [`crate::Port::send`].
    ///
    /// # Errors
    /// If the system refuses.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<bool> {
        if self.lengths.len() == BATCH {
            self.flush()?;
        }
        self.waiting.extend_from_slice(frame);
        self.lengths.push(frame.len());
        Ok(true)
    }

    /// [`crate::Port::flush`].
    ///
    /// # Errors
    /// If the system refuses.
    pub fn flush(&mut self) -> io::Result<u64> {
        let mut dropped = 0;
        let mut parts = Vec::with_capacity(self.lengths.len());
        let mut rest = self.waiting.as_mut_slice();
        for length in self.lengths.drain(..) {
            let (frame, behind) = rest.split_at_mut(length);
            parts.push(libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: length });
            rest = behind;
        }
        // SAFETY: all fields are integers and pointers, for which zero is a value.
        let empty: libc::mmsghdr = unsafe { std::mem::zeroed() };
        let mut messages = vec![empty; parts.len()];
        for (message, part) in messages.iter_mut().zip(&mut parts) {
            (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (ptr::from_mut(part), 1);
        }
        let mut at = 0;
        while at < messages.len() {
            let left = &mut messages[at..];
            // SAFETY: each header points to one part of `parts`, which points into `waiting`; all live until the call returns.
            let sent =
                unsafe { libc::sendmmsg(self.socket.as_raw_fd(), left.as_mut_ptr(), left.len() as u32, 0) };
            match sent {
                1.. => at += sent as usize,
                _ => {
                    let error = io::Error::last_os_error();
                    if !is_drop(&error) && error.raw_os_error() != Some(libc::EMSGSIZE) {
                        self.waiting.clear();
                        return Err(error);
                    }
                    // The first frame that is left has no room, or is longer than the interface allows.
                    (at, dropped) = (at + 1, dropped + 1);
                }
            }
        }
        self.waiting.clear();
        Ok(dropped)
    }

    /// [`crate::Port::missed`].
    pub fn missed(&mut self) -> u64 {
        let mut counts = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut length = size_of::<libc::tpacket_stats_v3>() as libc::socklen_t;
        // SAFETY: the call writes at most `length` bytes into `counts`, which lives until it returns.
        let done = unsafe {
            let counts = (&raw mut counts).cast();
            let option = libc::PACKET_STATISTICS;
            libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_PACKET, option, counts, &raw mut length)
        };
        if done < 0 { 0 } else { counts.tp_drops.into() }
    }
}

impl AsFd for Packet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Ring {
    fn map(socket: &OwnedFd) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let fd = socket.as_raw_fd();
        // SAFETY: the kernel chooses the place of the memory, and the socket has a ring of this size.
        let start = unsafe { libc::mmap(ptr::null_mut(), BLOCK * BLOCKS, access, libc::MAP_SHARED, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("the ring is nowhere"))?;
        Ok(Ring { start, block: 0, left: 0, offset: 0 })
    }

    /// Hands the next frame to `take`; false if none has arrived.
    fn next(&mut self, take: &mut impl FnMut(&[u8])) -> bool {
        while self.left == 0 {
            let Some(head) = self.head() else { return false };
            (self.left, self.offset) = (head.num_pkts, head.offset_to_first_pkt as usize);
            if self.left == 0 {
                self.give_back();
            }
        }
        // SAFETY: the block belongs to this program while its status says so, and the kernel has written `left` more headers
        // into it, the first at `offset`.
        let header = unsafe {
            let at = self.start.as_ptr().add(self.block * BLOCK + self.offset);
            ptr::read_unaligned(at.cast::<libc::tpacket3_hdr>())
        };
        let from = self.offset + usize::from(header.tp_mac);
        let length = (header.tp_snaplen as usize).min(BLOCK - from.min(BLOCK));
        // SAFETY: the frame lies inside the block, which this program owns until `give_back`.
        let frame =
            unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(self.block * BLOCK + from), length) };
        match header.tp_status & libc::TP_STATUS_VLAN_VALID != 0 && length >= ADDRESSES {
            true => take(&with_tag(frame, header.hv1.tp_vlan_tci as u16, header.hv1.tp_vlan_tpid)),
            false => take(frame),
        }
        self.offset += header.tp_next_offset as usize;
        self.left -= 1;
        if self.left == 0 {
            self.give_back();
        }
        true
    }

    /// Head of the block that is next, if the kernel has handed the block over.
    fn head(&self) -> Option<libc::tpacket_hdr_v1> {
        // The status comes first: the kernel writes the head before the status, and nothing of the head is read before it.
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the block belongs to this program, as its status says, and the kernel has written its head.
        Some(unsafe { ptr::read_volatile(&raw const (*self.description()).hdr.bh1) })
    }

    /// Status of the block that is next.
    fn status(&self) -> &AtomicU32 {
        // SAFETY: both sides write the status, so it is read and written as an atomic only.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.description()).hdr.bh1.block_status) }
    }

    /// The description that the kernel keeps at the start of the block that is next.
    fn description(&self) -> *mut libc::tpacket_block_desc {
        // SAFETY: the ring has this many blocks of this size.
        unsafe { self.start.as_ptr().add(self.block * BLOCK).cast() }
    }

    /// Gives the block back to the kernel.
    fn give_back(&mut self) {
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.block = (self.block + 1) % BLOCKS;
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this size, and no reference into it outlives the ring.
        unsafe { libc::munmap(self.start.as_ptr().cast(), BLOCK * BLOCKS) };
    }
}

/// A frame with its VLAN tag.
fn with_tag(frame: &[u8], control: u16, ether_type: u16) -> Vec<u8> {
    let mut whole = Vec::with_capacity(frame.len() + TAG);
    whole.extend_from_slice(&frame[..ADDRESSES]);
    whole.extend_from_slice(&ether_type.to_be_bytes());
    whole.extend_from_slice(&control.to_be_bytes());
    whole.extend_from_slice(&frame[ADDRESSES..]);
    whole
}

/// Sets an option of a packet socket.
fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let value = ptr::from_ref(value).cast();
    // SAFETY: the call reads `length` bytes of the value, which is as long and lives until it returns.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, value, length) })
}

fn check(done: libc::c_int) -> io::Result<()> {
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread plays the kernel: it writes the number of frames, then hands the block over. If the head is read before the
    /// status, the number of the round before comes up sooner or later.
    #[test]
    fn the_head_is_that_of_the_block_that_was_handed_over() {
        const ROUNDS: u32 = 20_000;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: the system chooses the place of the memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), BLOCK * BLOCKS, access, kind, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        let ring = |block| Ring { start: NonNull::new(start.cast()).unwrap(), block, left: 0, offset: 0 };
        let (mine, kernels) = (ring(0), std::mem::ManuallyDrop::new(ring(0)));
        assert!(mine.head().is_none(), "the kernel has not handed it over");
        let kernel = std::thread::spawn(move || {
            let ring = kernels;
            for round in 1..=ROUNDS {
                while ring.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0 {
                    std::thread::yield_now();
                }
                // SAFETY: the block belongs to this side.
                unsafe { (&raw mut (*ring.description()).hdr.bh1.num_pkts).write_volatile(round) };
                ring.status().store(libc::TP_STATUS_USER, Ordering::Release);
            }
        });
        for round in 1..=ROUNDS {
            let head = loop {
                match mine.head() {
                    Some(head) => break head,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(head.num_pkts, round);
            mine.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        kernel.join().unwrap();
    }

    #[test]
    fn a_tag_stands_behind_the_addresses() {
        let frame: Vec<u8> = (0..20).collect();
        let whole = with_tag(&frame, 0x6005, 0x8100);
        assert_eq!(whole[..12], frame[..12]);
        assert_eq!(whole[12..16], [0x81, 0, 0x60, 5]);
        assert_eq!(whole[16..], frame[12..]);
    }
}
