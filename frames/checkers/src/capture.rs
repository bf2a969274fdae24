//! Frames with times and places.

/// The side of the switch on which a frame was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The frame went into the switch.
    In,
    /// The frame left the switch.
    Out,
    /// The capture does not say. The frame counts as one that went in and left.
    Through,
}

/// A captured frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Time since any start, ns.
    pub at: u64,
    /// The port, by its place in [`Capture::ports`].
    pub port: u32,
    /// The side.
    pub way: Way,
    /// Number that the capturing switch gave the frame, if it numbers them.
    pub number: Option<u64>,
    /// The frame from the destination address to the last byte before the FCS.
    pub bytes: Vec<u8>,
}

/// Frames in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// Names of the ports.
    pub ports: Vec<String>,
    /// The frames.
    pub frames: Vec<Frame>,
}

impl Capture {
    /// True if every frame has a side.
    pub fn has_sides(&self) -> bool {
        self.frames.iter().all(|frame| frame.way != Way::Through)
    }
}
