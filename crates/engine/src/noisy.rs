//! Noise on links, see [`model::noise`].

use crate::failing::LinkLoss;
use model::draw::{Key, Purpose};
use model::noise::Gilbert;
use model::{LinkId, Noise, Plan};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The noisy links of a run, in ascending order.
///
/// One node serves a link, and one thread at a time serves a node, in order of time. So the state of a link does not
/// depend on the number of threads.
#[derive(Debug, Default)]
pub(crate) struct Noisy {
    noise: Noise,
    links: Vec<NoisyLink>,
}

#[derive(Debug)]
struct NoisyLink {
    /// Time that the frames of a pair of codewords take, ps. Pairs follow each other from time 0 on, at the link's own rate.
    pair: u64,
    codewords: Key,
    bursts: Key,
    bad: AtomicBool,
}

impl Noisy {
    pub(crate) fn new(plan: &Plan) -> Self {
        let noise = plan.noise.clone();
        let new = |&LinkId(link): &LinkId| {
            let key = |purpose| Key::new(plan.seed, purpose, link.into());
            let bursts = key(Purpose::Burst);
            // A link begins in the state that it has in the long run. No frame has this ordinal.
            let bad = noise.gilbert.is_some_and(|gilbert| gilbert.bad().hits(bursts.draw2(u64::MAX, 0)));
            let bits = u128::from(Noise::PAIR) * 8 * 1_000_000_000_000;
            let rate = plan.fabric.links()[link as usize].rate.bps();
            let pair = (bits / u128::from(rate.max(1))).clamp(1, u64::MAX.into()) as u64;
            NoisyLink { pair, codewords: key(Purpose::Codeword), bursts, bad: AtomicBool::new(bad) }
        };
        Noisy { links: noise.links.iter().map(new).collect(), noise }
    }

    /// How a noisy link loses the frame that takes this span of its time, if it does. Called once for every start.
    #[inline(never)]
    pub(crate) fn loses(&self, link: usize, span: Range<u64>) -> Option<LinkLoss> {
        let place = self.noise.links.binary_search(&LinkId(link as u32)).ok()?;
        let link = &self.links[place];
        let in_burst = self.noise.gilbert.is_some_and(|gilbert| link.loses_in_burst(gilbert, span.start));
        if in_burst {
            return Some(LinkLoss::Burst);
        }
        let chance = self.noise.codeword_loss;
        let mut pairs = span.start / link.pair..=(span.end - 1) / link.pair;
        let touches = !chance.is_zero() && pairs.any(|pair| chance.hits(link.codewords.draw(pair)));
        touches.then_some(LinkLoss::Codeword)
    }
}

impl NoisyLink {
    /// Steps the link before the frame that starts at `at`; true if the link loses the frame.
    fn loses_in_burst(&self, gilbert: Gilbert, at: u64) -> bool {
        let was_bad = self.bad.load(Relaxed);
        let turns = if was_bad { gilbert.bad_to_good } else { gilbert.good_to_bad };
        let bad = was_bad != turns.hits(self.bursts.draw2(at, 0));
        self.bad.store(bad, Relaxed);
        bad && gilbert.loss_in_bad.hits(self.bursts.draw2(at, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Probability;

    fn link(pair: u64) -> NoisyLink {
        let key = |purpose| Key::new(5, purpose, 0);
        let bad = AtomicBool::new(false);
        NoisyLink { pair, codewords: key(Purpose::Codeword), bursts: key(Purpose::Burst), bad }
    }

    fn noisy(codeword_loss: f64, gilbert: Option<Gilbert>) -> Noisy {
        // 1280 B at 400 Gb/s.
        let noise = Noise {
            codeword_loss: Probability::new(codeword_loss),
            gilbert,
            links: vec![LinkId(0)],
            llr: None,
        };
        Noisy { noise, links: vec![link(25_600)] }
    }

    /// Frames of so many bytes at 400 Gb/s, one after the other: whether each is lost.
    fn lost(noisy: &Noisy, bytes: u64, frames: u64) -> Vec<bool> {
        let time = bytes * 20;
        (0..frames).map(|i| noisy.loses(0, i * time..(i + 1) * time).is_some()).collect()
    }

    fn count(lost: &[bool]) -> f64 {
        lost.iter().filter(|lost| **lost).count() as f64
    }

    fn runs(lost: &[bool]) -> Vec<usize> {
        lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect()
    }

    /// 84 B are 64 B with preamble and gap: 1280 / 84 = 15.2.
    #[test]
    fn a_pair_of_codewords_takes_one_or_two_long_frames_with_it_or_some_fifteen_short_ones() {
        let noisy = noisy(1e-4, None);
        let long = runs(&lost(&noisy, 4178, 400_000));
        assert!(!long.is_empty() && long.iter().all(|n| (1..=2).contains(n)), "{long:?}");
        let short = runs(&lost(&noisy, 84, 1_500_000));
        assert!(!short.is_empty() && short.iter().all(|n| (15..=17).contains(n)), "{short:?}");
    }

    /// A frame of L bytes touches L / 1280 + 1 pairs on average.
    #[test]
    fn a_frame_is_lost_as_often_as_the_pairs_that_it_touches() {
        let noisy = noisy(1e-3, None);
        for bytes in [84, 1520, 4178] {
            let frames = 1_000_000;
            let share = count(&lost(&noisy, bytes, frames)) / frames as f64;
            let expected = 1e-3 * (bytes as f64 / 1280.0 + 1.0);
            // Four standard deviations of the number of lost pairs.
            let margin = 4.0 / (1e-3 * frames as f64 * bytes as f64 / 1280.0).sqrt();
            assert!((share / expected - 1.0).abs() < margin, "{bytes}: {share} {expected}");
        }
    }

    /// The mean loss is the share of bad frames times the loss in bad ones; a burst has 1 / `bad_to_good` frames.
    #[test]
    fn bursts_have_the_mean_loss_and_the_mean_length_of_the_chain() {
        let gilbert = |to_bad, to_good, loss| Gilbert {
            good_to_bad: Probability::new(to_bad),
            bad_to_good: Probability::new(to_good),
            loss_in_bad: Probability::new(loss),
        };
        for (to_bad, to_good, loss) in [(1e-3, 0.1, 0.5), (0.01, 0.3, 0.3), (0.002, 0.05, 1.0)] {
            let noisy = noisy(0.0, Some(gilbert(to_bad, to_good, loss)));
            let frames = 2_000_000;
            let lost = lost(&noisy, 1520, frames);
            let (share, expected) = (count(&lost) / frames as f64, to_bad / (to_bad + to_good) * loss);
            assert!((share / expected - 1.0).abs() < 0.05, "{share} {expected}");
            if loss == 1.0 {
                let runs = runs(&lost);
                let mean = runs.iter().sum::<usize>() as f64 / runs.len() as f64;
                assert!((mean * to_good - 1.0).abs() < 0.05, "{mean}");
            }
        }
    }
}
