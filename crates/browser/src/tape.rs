//! The frames that the page draws.

use engine::outcome::Frame;

/// The first frames of every link, up to a limit, and the number of all frames beyond it.
#[derive(Debug)]
pub struct Tape {
    /// Frames by time and link.
    pub frames: Vec<Frame>,
    /// Number of frames beyond the limit.
    pub more: u64,
    /// Most frames of one link.
    most: u32,
    /// Frames of each link so far, up to `most`.
    kept: Vec<u32>,
}

impl Tape {
    /// A tape for `links` links that keeps `most` frames of each.
    pub fn new(links: usize, most: u32) -> Tape {
        Tape { frames: Vec::new(), more: 0, most, kept: vec![0; links] }
    }

    /// Adds frames by time and link, which come after all earlier ones.
    pub fn add(&mut self, frames: &[Frame]) {
        for frame in frames {
            let kept = &mut self.kept[frame.link.index()];
            if *kept < self.most {
                *kept += 1;
                self.frames.push(*frame);
            } else {
                self.more += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::outcome::Passed;
    use model::{LinkId, Time};

    #[test]
    fn a_tape_keeps_the_first_frames_of_each_link_and_counts_the_others() {
        let frame = |link, us| Frame {
            link: LinkId(link),
            at: Time::from_us(us),
            what: Passed::Pause { channel: 0, on: true },
        };
        let all = [frame(1, 1), frame(0, 2), frame(1, 3), frame(1, 4), frame(0, 5), frame(1, 6)];
        let mut tape = Tape::new(2, 2);
        all.chunks(4).for_each(|part| tape.add(part));
        assert_eq!(tape.frames, [all[0], all[1], all[2], all[4]]);
        assert_eq!(tape.more, 2);
    }
}
