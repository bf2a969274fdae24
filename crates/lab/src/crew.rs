//! Sharing threads among runs: each run gets one thread, and several only if fewer runs than threads are left.
//!
//! Several runs at the same time scale without loss. Threads inside a run do not: they wait for each other at the end of every
//! window. The results are the same, bit for bit.

use crate::failure::Failure;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Mutex;

/// A number of threads, and the number of runs that may share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crew {
    /// Total number of threads.
    pub threads: NonZeroUsize,
    /// Most runs at the same time; `None` for the number of threads. Fewer runs need less memory.
    pub jobs: Option<NonZeroUsize>,
}

impl Crew {
    /// One thread for every core that this process may use.
    pub fn of_machine() -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Crew { threads, jobs: None }
    }

    /// This number of threads, or else one for every core.
    pub fn new(threads: Option<NonZeroUsize>, jobs: Option<NonZeroUsize>) -> Self {
        Crew { threads: threads.unwrap_or(Self::of_machine().threads), jobs }
    }

    /// Calls `work` with each of `items` and the number of threads that it may use. The results are in the order of the
    /// items.
    ///
    /// # Errors
    /// If the system refuses to start threads.
    pub fn side_by_side<T: Send, R: Send>(
        &self,
        items: Vec<T>,
        work: impl Fn(T, NonZeroUsize) -> R + Send + Sync,
    ) -> Result<Vec<R>, Failure> {
        let workers = self.jobs.map_or(self.threads, |jobs| jobs.min(self.threads)).get().min(items.len());
        let queue = Mutex::new(WorkQueue {
            waiting: items.into_iter().enumerate().collect(),
            free: self.threads.get(),
            idle: workers,
        });
        let one_by_one = || {
            let mut done = Vec::new();
            while let Some((number, item, threads)) = take(&queue) {
                done.push((number, work(item, threads)));
                give_back(&queue, threads);
            }
            done
        };
        let mut done = std::thread::scope(|scope| {
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, one_by_one);
            let started: Result<Vec<_>, _> = (0..workers).map(start).collect();
            let started = started.map_err(|e| {
                // The results of workers that did start are discarded, so they should stop early.
                queue.lock().unwrap_or_else(|e| e.into_inner()).waiting.clear();
                Failure::Asked(format!("cannot start threads: {e}"))
            })?;
            let mut done = Vec::new();
            for worker in started {
                done.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            Ok::<_, Failure>(done)
        })?;
        done.sort_by_key(|(number, _)| *number);
        Ok(done.into_iter().map(|(_, result)| result).collect())
    }
}

/// The items that no worker has taken, and the free threads.
struct WorkQueue<T> {
    waiting: VecDeque<(usize, T)>,
    /// Threads that no run uses.
    free: usize,
    /// Workers without a run.
    idle: usize,
}

/// The next item with its number and its share of the free threads.
fn take<T>(queue: &Mutex<WorkQueue<T>>) -> Option<(usize, T, NonZeroUsize)> {
    let mut queue = queue.lock().unwrap_or_else(|e| e.into_inner());
    // All runs that can begin now share the free threads. Each of them gets at least one, because there are at least as many
    // threads as workers.
    let beginning = queue.waiting.len().min(queue.idle).max(1);
    let share = NonZeroUsize::new(queue.free / beginning).unwrap_or(NonZeroUsize::MIN);
    let (number, item) = queue.waiting.pop_front()?;
    queue.free = queue.free.saturating_sub(share.get());
    queue.idle -= 1;
    Some((number, item, share))
}

fn give_back<T>(queue: &Mutex<WorkQueue<T>>, threads: NonZeroUsize) {
    let mut queue = queue.lock().unwrap_or_else(|e| e.into_inner());
    queue.free += threads.get();
    queue.idle += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn n(n: usize) -> NonZeroUsize {
        NonZeroUsize::new(n).unwrap()
    }

    /// Threads of each of `items` runs, if runs that can begin together also end together.
    fn shares(threads: usize, jobs: Option<usize>, items: usize) -> Vec<usize> {
        let crew = Crew { threads: n(threads), jobs: jobs.map(n) };
        let together = threads.min(jobs.unwrap_or(threads)).min(items);
        let meet = std::sync::Barrier::new(together);
        let begun = AtomicUsize::new(0);
        // Otherwise the last run would get one thread or two, depending on whether another run has just ended.
        let in_whole_groups = items - items % together.max(1);
        let shares = crew.side_by_side((0..items).collect(), |_, threads| {
            if begun.fetch_add(1, Ordering::SeqCst) < in_whole_groups {
                meet.wait();
            }
            threads.get()
        });
        shares.unwrap()
    }

    #[test]
    fn each_run_gets_one_thread_before_any_gets_two() {
        // Two threads: each of six runs gets one; a single run gets both.
        assert_eq!(shares(2, None, 6), [1; 6]);
        assert_eq!(shares(2, None, 1), [2]);
        // Five threads for two runs; then four threads for one run at a time, which saves memory.
        let mut two = shares(5, None, 2);
        two.sort_unstable();
        assert_eq!(two, [2, 3]);
        assert_eq!(shares(4, Some(1), 3), [4; 3]);
        assert_eq!(shares(4, Some(2), 2), [2; 2]);
        assert_eq!(shares(1, Some(8), 3), [1; 3]);
        assert!(shares(3, None, 0).is_empty());
    }

    #[test]
    fn runs_never_use_more_threads_than_the_crew_has() {
        for (threads, items) in [(3, 7), (4, 3), (8, 5)] {
            let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let crew = Crew { threads: n(threads), jobs: None };
            let order = crew.side_by_side((0..items).collect(), |i, mine| {
                most.fetch_max(now.fetch_add(mine.get(), Ordering::SeqCst) + mine.get(), Ordering::SeqCst);
                std::thread::sleep(std::time::Duration::from_millis(2 + i as u64 % 3));
                now.fetch_sub(mine.get(), Ordering::SeqCst);
                i
            });
            assert_eq!(order.unwrap(), (0..items).collect::<Vec<_>>(), "results keep their order");
            assert!(most.into_inner() <= threads);
        }
    }
}
