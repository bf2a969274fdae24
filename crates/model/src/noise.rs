//! Noise on links: codewords that cannot be repaired, and bursts of losses; and link-level retry, which repeats lost frames.

use crate::{LinkId, Probability};

/// Noise on links. CNPs, signals and PFC frames are never lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noise {
    /// Chance that a pair of codewords cannot be repaired. All frames that touch it are lost.
    pub codeword_loss: Probability,
    /// Bursts of losses.
    pub gilbert: Option<Gilbert>,
    /// The noisy directions of links, in ascending order.
    pub links: Vec<LinkId>,
    /// Most times in a row that link-level retry sends a frame again; `None` without it.
    pub llr: Option<u8>,
}

impl Noise {
    /// Bytes of frames in a pair of codewords. RS(544,514) carries 514 symbols of 10 bits, which are 20 blocks of 257 bits
    /// with 256 bits of frames each (IEEE 802.3, clause 91), and 400GBASE-R interleaves two codewords (clause 119).
    pub const PAIR: u64 = 2 * 20 * 256 / 8;
}

/// A link that is good or bad, and that may change before each frame (Gilbert, Capacity of a burst-noise channel, 1960).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gilbert {
    /// Chance that a good link turns bad before a frame.
    pub good_to_bad: Probability,
    /// Chance that a bad link turns good before a frame.
    pub bad_to_good: Probability,
    /// Chance that a bad link loses a frame.
    pub loss_in_bad: Probability,
}

impl Gilbert {
    /// Share of frames at which the link is bad, in the long run.
    pub fn bad(&self) -> Probability {
        let (to_bad, to_good) = (self.good_to_bad.share(), self.bad_to_good.share());
        Probability::new(if to_bad > 0.0 { to_bad / (to_bad + to_good) } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_bad_frames_follows_from_both_chances() {
        let gilbert = |to_bad, to_good| Gilbert {
            good_to_bad: Probability::new(to_bad),
            bad_to_good: Probability::new(to_good),
            loss_in_bad: Probability::ZERO,
        };
        assert_eq!(gilbert(0.0, 0.5).bad(), Probability::ZERO);
        assert_eq!(gilbert(0.25, 0.75).bad(), Probability::new(0.25));
        assert_eq!(gilbert(0.5, 0.0).bad(), Probability::new(1.0));
    }
}
