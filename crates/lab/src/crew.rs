//! Threads: whole runs side by side first; a run is split only when fewer runs are left than threads.
//!
//! Runs side by side scale without loss. Threads inside a run scale less well, as they wait for each other at the end of
//! every window. The results are the same, bit for bit.

use crate::failure::Failure;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Mutex;

/// The number of threads, and how many runs may share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crew {
    /// All threads.
    pub threads: NonZeroUsize,
    /// Most runs side by side; `None` for as many as there are threads. Fewer need less memory.
    pub jobs: Option<NonZeroUsize>,
}

impl Crew {
    /// One thread for every core that this process may use.
    pub fn of_machine() -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Crew { threads, jobs: None }
    }

    /// As many threads as asked for, else one for every core.
    pub fn new(threads: Option<NonZeroUsize>, jobs: Option<NonZeroUsize>) -> Self {
        Crew { threads: threads.unwrap_or(Self::of_machine().threads), jobs }
    }

    /// Calls `work` for every item with the number of threads that it may use. Results are in the order of the items.
    ///
    /// # Errors
    /// If the system gives no threads.
    pub fn side_by_side<T: Send, R: Send>(
        &self,
        items: Vec<T>,
        work: impl Fn(T, NonZeroUsize) -> R + Send + Sync,
    ) -> Result<Vec<R>, Failure> {
        let workers = self.jobs.map_or(self.threads, |jobs| jobs.min(self.threads)).get().min(items.len());
        let desk = Mutex::new(Desk {
            waiting: items.into_iter().enumerate().collect(),
            free: self.threads.get(),
            idle: workers,
        });
        let one_by_one = || {
            let mut done = Vec::new();
            while let Some((number, item, threads)) = take(&desk) {
                done.push((number, work(item, threads)));
                give_back(&desk, threads);
            }
            done
        };
        let mut done = std::thread::scope(|scope| {
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, one_by_one);
            let started: Result<Vec<_>, _> = (0..workers).map(start).collect();
            let started = started.map_err(|e| {
                // Threads that did start end early: their results are lost.
                desk.lock().unwrap_or_else(|e| e.into_inner()).waiting.clear();
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

/// The remaining items, and the idle workers and threads.
struct Desk<T> {
    waiting: VecDeque<(usize, T)>,
    /// Threads that no run uses.
    free: usize,
    /// Workers without a run.
    idle: usize,
}

/// The next item, its number, and its share of the free threads.
fn take<T>(desk: &Mutex<Desk<T>>) -> Option<(usize, T, NonZeroUsize)> {
    let mut desk = desk.lock().unwrap_or_else(|e| e.into_inner());
    // All runs that can begin now share the free threads. Every run gets a thread, as there are at least as many threads
    // as workers.
    let beginning = desk.waiting.len().min(desk.idle).max(1);
    let share = NonZeroUsize::new(desk.free / beginning).unwrap_or(NonZeroUsize::MIN);
    let (number, item) = desk.waiting.pop_front()?;
    desk.free = desk.free.saturating_sub(share.get());
    desk.idle -= 1;
    Some((number, item, share))
}

fn give_back<T>(desk: &Mutex<Desk<T>>, threads: NonZeroUsize) {
    let mut desk = desk.lock().unwrap_or_else(|e| e.into_inner());
    desk.free += threads.get();
    desk.idle += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn n(n: usize) -> NonZeroUsize {
        NonZeroUsize::new(n).unwrap()
    }

    /// The threads of each of `items` runs if no run ends before all runs that can begin have begun.
    fn shares(threads: usize, jobs: Option<usize>, items: usize) -> Vec<usize> {
        let crew = Crew { threads: n(threads), jobs: jobs.map(n) };
        let together = threads.min(jobs.unwrap_or(threads)).min(items);
        let meet = std::sync::Barrier::new(together);
        let first = AtomicUsize::new(0);
        let shares = crew.side_by_side((0..items).collect(), |_, threads| {
            if first.fetch_add(1, Ordering::SeqCst) < together {
                meet.wait();
            }
            threads.get()
        });
        shares.unwrap()
    }

    #[test]
    fn whole_runs_come_first_and_spare_threads_split_them() {
        // Two cores: six runs go two by two; one run gets both.
        assert_eq!(shares(2, None, 6), [1; 6]);
        assert_eq!(shares(2, None, 1), [2]);
        // Five threads for two runs, then for one at a time, as memory may ask for.
        let mut two = shares(5, None, 2);
        two.sort_unstable();
        assert_eq!(two, [2, 3]);
        assert_eq!(shares(4, Some(1), 3), [4; 3]);
        assert_eq!(shares(4, Some(2), 2), [2; 2]);
        assert_eq!(shares(1, Some(8), 3), [1; 3]);
        assert!(shares(3, None, 0).is_empty());
    }

    #[test]
    fn no_more_threads_work_at_once_than_there_are() {
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
