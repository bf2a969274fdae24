//! Buffers of frames. All of them are allocated at the start; a frame is a handle to one of them, so handing a frame from
//! port to port copies no byte.

/// A frame in a [`Pool`], from destination address to the last byte before the FCS. The handle is the only one to its
/// buffer. Whoever has it must hand it on or [put it back](Pool::put_back): a dropped handle loses its buffer.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Frame {
    buffer: u32,
    len: u32,
}

impl Frame {
    /// Length of the frame, bytes.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Number of the frame's buffer.
    pub(crate) const fn slot(&self) -> usize {
        self.buffer as usize
    }

    /// True if the frame has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A fixed number of buffers of one size.
#[derive(Debug)]
pub struct Pool {
    bytes: Box<[u8]>,
    /// Size of each buffer, bytes.
    size: usize,
    free: Vec<u32>,
    count: usize,
}

impl Pool {
    /// `count` buffers of `size` bytes each. [`crate::frame::LONGEST`] is enough for every Ethernet frame with IB's
    /// largest MTU.
    pub fn new(count: u32, size: usize) -> Self {
        let bytes = vec![0; count as usize * size].into();
        Pool { bytes, size, free: (0..count).rev().collect(), count: count as usize }
    }

    /// An empty frame; `None` if no buffer is free.
    pub fn take(&mut self) -> Option<Frame> {
        Some(Frame { buffer: self.free.pop()?, len: 0 })
    }

    /// A frame with these bytes; `None` if no buffer is free or the bytes do not fit.
    pub fn copy_of(&mut self, bytes: &[u8]) -> Option<Frame> {
        if bytes.len() > self.size {
            return None;
        }
        let mut frame = self.take()?;
        self.buffer(&mut frame)[..bytes.len()].copy_from_slice(bytes);
        self.set_len(&mut frame, bytes.len());
        Some(frame)
    }

    /// A second frame with the same bytes; `None` if no buffer is free.
    pub fn duplicate(&mut self, frame: &Frame) -> Option<Frame> {
        let copy = self.free.pop()?;
        let from = frame.buffer as usize * self.size;
        self.bytes.copy_within(from..from + frame.len(), copy as usize * self.size);
        Some(Frame { buffer: copy, len: frame.len })
    }

    /// The frame's bytes.
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        let from = frame.buffer as usize * self.size;
        &self.bytes[from..from + frame.len()]
    }

    /// The frame's bytes, to be changed in place.
    pub fn bytes_mut(&mut self, frame: &Frame) -> &mut [u8] {
        let from = frame.buffer as usize * self.size;
        &mut self.bytes[from..from + frame.len()]
    }

    /// The frame's whole buffer, for a port that reads into it and then [sets the length](Pool::set_len).
    pub fn buffer(&mut self, frame: &mut Frame) -> &mut [u8] {
        let from = frame.buffer as usize * self.size;
        &mut self.bytes[from..from + self.size]
    }

    /// Sets the frame's length, at most the size of a buffer.
    pub fn set_len(&mut self, frame: &mut Frame, len: usize) {
        frame.len = len.min(self.size) as u32;
    }

    /// Frees the frame's buffer.
    pub fn put_back(&mut self, frame: Frame) {
        self.free.push(frame.buffer);
    }

    /// Number of free buffers.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Number of buffers, free or not.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Size of each buffer, bytes.
    pub fn size(&self) -> usize {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_keeps_its_bytes_and_an_empty_pool_refuses() {
        let mut pool = Pool::new(2, 8);
        let first = pool.copy_of(b"first").unwrap();
        let second = pool.duplicate(&first).unwrap();
        pool.bytes_mut(&second)[0] = b'F';
        assert_eq!((pool.bytes(&first), pool.bytes(&second)), (&b"first"[..], &b"First"[..]));
        assert!(pool.take().is_none() && pool.duplicate(&first).is_none());
        pool.put_back(first);
        assert_eq!((pool.free(), pool.count()), (1, 2));
        assert!(pool.copy_of(b"much too long").is_none());
        assert_eq!(pool.free(), 1);
    }
}
