//! Growth of collections that hold packets, events and records. A collection doubles while it is small. Once it is large, it
//! grows by a quarter: a run then needs little more memory than its packets, and memory runs out slowly enough to be noticed.

use std::collections::{BinaryHeap, VecDeque};

/// Size from which a collection grows by a quarter, bytes. Our choice: allocators take larger blocks from the system one by
/// one, and enlarge them without a copy.
pub(crate) const LARGE: usize = 1 << 20;

/// A collection that can make room for one more element.
pub(crate) trait Gentle {
    /// Makes room for one more element. The collection itself doubles; this function acts only on a large one.
    fn make_room(&mut self);
}

macro_rules! gentle {
    ($($collection:ident: $($bound:ident)?;)+) => {
        $(impl<T $(: $bound)?> Gentle for $collection<T> {
            #[inline(always)]
            fn make_room(&mut self) {
                if self.len() == self.capacity() && self.len() * size_of::<T>() >= LARGE {
                    self.reserve_exact(self.len() / 4);
                }
            }
        })+
    };
}

gentle! {
    Vec: ;
    VecDeque: ;
    BinaryHeap: Ord;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_collection_grows_by_a_quarter() {
        let mut list: Vec<u64> = Vec::new();
        let mut most_free = 0.0f64;
        for n in 0..3_000_000 {
            list.make_room();
            list.push(n);
            if list.len() * 8 > 2 * LARGE {
                most_free = most_free.max(list.capacity() as f64 / list.len() as f64);
            }
        }
        assert!((1.2..1.3).contains(&most_free), "{most_free}");
        let mut small: Vec<u64> = vec![1];
        small.make_room();
        assert_eq!(small.capacity(), 1, "a small collection grows by itself");
    }
}
