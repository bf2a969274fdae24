//! The prefix cache of an instance: blocks of prompts, of which the least recently used leaves first.

use std::collections::{BTreeMap, BTreeSet};

/// Blocks by their ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    /// Most blocks.
    most: usize,
    /// Last use of each block.
    uses: BTreeMap<u64, u64>,
    /// Blocks by their last use.
    order: BTreeSet<(u64, u64)>,
    clock: u64,
}

impl Cache {
    /// A cache of so many blocks.
    pub(crate) fn new(blocks: u64) -> Self {
        Cache { most: usize::try_from(blocks).unwrap_or(usize::MAX), ..Cache::default() }
    }

    /// Number of blocks at the start of a prompt that it has.
    pub(crate) fn hit(&self, blocks: &[u64]) -> u64 {
        blocks.iter().take_while(|block| self.uses.contains_key(block)).count() as u64
    }

    /// Uses the blocks of a prompt, and keeps them. The start of a prompt outlasts its end.
    pub(crate) fn keep(&mut self, blocks: &[u64]) {
        if self.most == 0 {
            return;
        }
        for &block in blocks.iter().rev() {
            self.clock += 1;
            if let Some(before) = self.uses.insert(block, self.clock) {
                self.order.remove(&(before, block));
            }
            self.order.insert((self.clock, block));
        }
        while self.uses.len() > self.most {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            self.uses.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_hits_its_common_start_with_earlier_ones() {
        let mut cache = Cache::new(u64::MAX);
        assert_eq!(cache.hit(&[1, 2, 3]), 0);
        cache.keep(&[1, 2, 3]);
        assert_eq!(cache.hit(&[1, 2, 4, 3]), 2);
        assert_eq!(cache.hit(&[2, 3]), 2);
        cache.keep(&[1, 2, 4]);
        assert_eq!(cache.hit(&[1, 2, 4]), 3);
    }

    #[test]
    fn a_full_cache_drops_the_ends_of_the_oldest_prompts_first() {
        let mut cache = Cache::new(4);
        cache.keep(&[1, 2, 3]);
        cache.keep(&[1, 7, 8]);
        assert_eq!((cache.hit(&[1, 2, 3]), cache.hit(&[1, 7, 8])), (2, 3), "block 3 has left");
        cache.keep(&[5, 6]);
        assert_eq!((cache.hit(&[1, 7, 8]), cache.hit(&[5, 6])), (2, 2));
        let mut none = Cache::new(0);
        none.keep(&[1]);
        assert_eq!(none.hit(&[1]), 0);
    }
}
