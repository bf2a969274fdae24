//! Threads that share the groups of a window. They meet once per window; a packet's path has no lock and no atomic
//! operation.
//!
//! Every thread has groups of its own, so that their state stays in its caches. A thread that has finished its
//! groups takes remaining groups of others. The result does not depend on which thread visits a group. A window with
//! little work costs less than waking a thread, so the calling thread visits all its groups alone.

use super::clock::{Cause, Clock, End, Step};
use super::context::{Context, Workspace};
use super::group::Group;
use super::lanes::{Board, Mail};
use super::out::Window;
use super::setup::Setup;
use crate::observer::Observer;
use model::Parts;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;

/// Stands in for the crate `atomic-wait`, which does not know WebAssembly. A run has one thread there, so nobody waits.
#[cfg(target_family = "wasm")]
mod atomic_wait {
    use std::sync::atomic::AtomicU32;

    pub(super) fn wait(_: &AtomicU32, _: u32) {
        std::hint::spin_loop();
    }

    pub(super) fn wake_all(_: &AtomicU32) {}
}

/// Windows between two assignments of groups to threads: often enough to follow a workload, rarely enough that
/// groups stay in their thread's caches. Our choice.
const REBALANCE: u64 = 256;
/// Polls before a waiting thread goes to sleep: about ten microseconds, which is less than most windows take and
/// about the cost of waking it. Our choice.
const SPINS: u32 = 1_000;

/// Least expected work of a window that is shared, ns. Waking a thread takes 5 to 50 us, until it takes its first
/// group; below this bound it comes too late to take any. Our choice. The small fabrics of tests share some windows.
const SHARED_WORK: u64 = if cfg!(debug_assertions) { 1_500 } else { 30_000 };
/// Work per lane and per packet, ns, of a core at 3.5 GHz with the default model: 25 M packets per second where lanes
/// are full. The estimate decides only who visits a group.
const LANE_WORK: u64 = 100;
const PACKET_WORK: u64 = 35;

/// State that all threads share.
struct Shared<'r, 'g, P: Parts> {
    groups: Vec<Apart<Mutex<&'g mut Group<P>>>>,
    /// The open window and its groups by thread; written only between windows.
    assignment: RwLock<Assignment<'r, P::Annex>>,
    /// Number of groups already taken from each thread's share.
    taken: Vec<Apart<AtomicUsize>>,
    /// Number of windows opened; [`OVER`] after the last.
    opened: Gate,
    /// Number of threads that have finished the open window.
    done: Gate,
    /// True if a thread has panicked.
    broken: AtomicBool,
}

/// A value in cache lines of its own; processors fetch lines in pairs.
#[repr(align(128))]
struct Apart<T>(T);

struct Assignment<'r, A> {
    window: Window,
    board: &'r mut Board<A>,
    /// The known view of all queues.
    view: Vec<u32>,
    /// Groups by thread.
    shares: Vec<Vec<usize>>,
}

const OVER: u32 = u32::MAX;

/// Runs all windows on `threads` threads, including the calling one. Neighbours are close to each other in `order`.
pub(super) fn run<P: Parts>(
    setup: &Setup<'_>,
    groups: &mut [Box<Group<P>>],
    board: &mut Board<P::Annex>,
    mail: &Mail,
    (order, threads): (&[usize], usize),
    clock: &mut Clock,
    observer: &mut dyn Observer,
) -> End {
    let loads: Vec<u64> = board.iter().map(|lanes| lanes.len() as u64).collect();
    let window = Window::default();
    let shared = Shared {
        groups: groups.iter_mut().map(|group| Apart(Mutex::new(&mut **group))).collect(),
        assignment: RwLock::new(Assignment {
            window,
            board,
            view: clock.views.known().to_vec(),
            shares: share(order, &loads, threads),
        }),
        taken: (0..threads).map(|_| Apart(AtomicUsize::new(0))).collect(),
        opened: Gate::default(),
        done: Gate::default(),
        broken: AtomicBool::new(false),
    };
    let at_end = observer.at_thread_end();
    thread::scope(|scope| {
        for me in 1..threads {
            let (shared, at_end) = (&shared, &at_end);
            scope.spawn(move || {
                let (mut seen, mut workspace) = (0, Workspace::default());
                while let Some(round) = shared.wait_for_window(seen) {
                    seen = round;
                    let _done = Done(shared);
                    shared.visit(setup, mail, me, &mut workspace);
                }
                at_end();
            });
        }
        let _over = Over(&shared.opened);
        let (workspace, estimate) = (Workspace::default(), Estimate::default());
        let mut leader = Leader { setup, mail, clock, observer, order, loads, workspace, estimate };
        let mut round = 0;
        loop {
            match shared.advance(&mut leader) {
                Some(end) => return end,
                None => {
                    round = (round + 1) % OVER;
                    shared.done.set(0);
                    shared.opened.set(round);
                    shared.visit(setup, mail, 0, &mut leader.workspace);
                    let all = threads as u32 - 1;
                    let mut done = 0;
                    while done != all {
                        done = shared.done.wait_past(done);
                    }
                    // The scope passes the panic on when it joins its threads.
                    if shared.broken.load(Ordering::Relaxed) {
                        return End { cause: Cause::Interrupted, at: None };
                    }
                }
            }
        }
    })
}

/// State of the calling thread.
struct Leader<'l, P: Parts> {
    setup: &'l Setup<'l>,
    mail: &'l Mail,
    clock: &'l mut Clock,
    observer: &'l mut dyn Observer,
    /// All groups, neighbours close to each other.
    order: &'l [usize],
    /// Load of every group, in packets.
    loads: Vec<u64>,
    workspace: Workspace<P::Annex>,
    estimate: Estimate,
}

/// Expected work of a window, from the number of its lanes and from the length of the lanes before.
#[derive(Debug, Default)]
struct Estimate {
    /// Number of packets read before the last window.
    read: u64,
    /// Number of lanes in the last window.
    lanes: u64,
}

impl Estimate {
    /// Expected work of window `number`, ns; called once for every window.
    fn work(&mut self, mail: &Mail, number: u64) -> u64 {
        let (lanes, read) = (mail.lanes(number), mail.packets());
        let packets = lanes * (read - self.read) / self.lanes.max(1);
        *self = Estimate { read, lanes };
        lanes * LANE_WORK + packets * PACKET_WORK
    }
}

impl<P: Parts> Shared<'_, '_, P> {
    /// Goes to the next window that is worth sharing, and visits those before alone; returns the end of the run if it
    /// comes first. All other threads wait, so no lock is ever contended.
    fn advance(&self, leader: &mut Leader<'_, P>) -> Option<End> {
        let Leader { setup, mail, clock, observer, order, loads, workspace, estimate } = leader;
        let mut groups: Vec<MutexGuard<'_, &mut Group<P>>> = self.groups.iter().map(|g| lock(&g.0)).collect();
        let mut refs: Vec<&mut Group<P>> = groups.iter_mut().map(|group| &mut ***group).collect();
        let mut assignment = self.assignment.write().unwrap_or_else(PoisonError::into_inner);
        let assignment = &mut *assignment;
        loop {
            let window = match clock.advance(setup, &mut refs, assignment.board, mail, *observer) {
                Step::Visit(window) => window,
                Step::End(end) => return Some(end),
            };
            assignment.view.copy_from_slice(clock.views.known());
            if clock.windows.is_multiple_of(REBALANCE) {
                for (load, group) in loads.iter_mut().zip(&mut refs) {
                    // Half of the old load stays in the sum, because workloads come in phases.
                    *load = *load / 2 + group.take_load();
                }
                assignment.shares = share(order, loads, self.taken.len());
            }
            if estimate.work(mail, window.number) >= SHARED_WORK {
                assignment.window = window;
                self.taken.iter().for_each(|taken| taken.0.store(0, Ordering::Relaxed));
                return None;
            }
            let Assignment { board, view, .. } = assignment;
            let context = Context { setup, window, board, mail, outbox: mail.outbox(0), view };
            refs.iter_mut().for_each(|group| group.visit(context, workspace));
        }
    }

    /// Visits this thread's groups, then remaining groups of other threads.
    fn visit(&self, setup: &Setup<'_>, mail: &Mail, me: usize, workspace: &mut Workspace<P::Annex>) {
        let assignment = self.assignment.read().unwrap_or_else(PoisonError::into_inner);
        let context = Context {
            setup,
            window: assignment.window,
            board: assignment.board,
            mail,
            outbox: mail.outbox(me),
            view: &assignment.view,
        };
        let threads = self.taken.len();
        for whose in (me..threads).chain(0..me) {
            let share = &assignment.shares[whose];
            while let Some(group) = share.get(self.taken[whose].0.fetch_add(1, Ordering::Relaxed)) {
                lock(&self.groups[*group].0).visit(context, workspace);
            }
        }
    }

    /// Waits for a window other than `seen`; `None` if the run is over.
    fn wait_for_window(&self, seen: u32) -> Option<u32> {
        let opened = self.opened.wait_past(seen);
        (opened != OVER).then_some(opened)
    }
}

/// A number whose changes threads wait for.
#[derive(Debug, Default)]
struct Gate {
    value: AtomicU32,
    /// Number of threads that sleep until the number changes.
    asleep: AtomicU32,
}

impl Gate {
    fn set(&self, value: u32) {
        self.value.store(value, Ordering::SeqCst);
        self.wake();
    }

    fn raise(&self) {
        self.value.fetch_add(1, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) > 0 {
            atomic_wait::wake_all(&self.value);
        }
    }

    /// Waits until the number differs from `seen`, and returns it. The thread polls first and then sleeps, which
    /// leaves a busy machine to others.
    fn wait_past(&self, seen: u32) -> u32 {
        for _ in 0..SPINS {
            let value = self.value.load(Ordering::SeqCst);
            if value != seen {
                return value;
            }
            std::hint::spin_loop();
        }
        self.asleep.fetch_add(1, Ordering::SeqCst);
        let mut value = self.value.load(Ordering::SeqCst);
        while value == seen {
            atomic_wait::wait(&self.value, seen);
            value = self.value.load(Ordering::SeqCst);
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        value
    }
}

/// Reports that a thread has finished a window, even if it panics.
struct Done<'s, 'r, 'g, P: Parts>(&'s Shared<'r, 'g, P>);

impl<P: Parts> Drop for Done<'_, '_, '_, P> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
        self.0.done.raise();
    }
}

/// Ends all other threads, even if this thread panics.
struct Over<'s>(&'s Gate);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.set(OVER);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Assigns groups to threads, with about the same load for each. Neighbours in `order` mostly get one thread, because a lane from one
/// thread to another costs several cache misses. The largest load of a thread comes first, so that small ones are left to be taken.
fn share(order: &[usize], loads: &[u64], threads: usize) -> Vec<Vec<usize>> {
    // An idle group costs a look, too.
    let load = |group: usize| loads[group].max(1);
    let all: u64 = order.iter().map(|group| load(*group)).sum();
    let mut shares = vec![Vec::new(); threads];
    let mut before = 0;
    for group in order {
        // The thread of the middle of its load.
        let middle = before + load(*group) / 2;
        shares[(middle * threads as u64 / all) as usize].push(*group);
        before += load(*group);
    }
    for share in &mut shares {
        share.sort_by_key(|group| std::cmp::Reverse(loads[*group]));
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_of_threads_differ_little_and_neighbours_share_a_thread() {
        let loads = [90, 10, 50, 50, 30, 20, 0, 0, 0];
        let order = [0, 1, 6, 2, 3, 7, 4, 5, 8];
        let shares = share(&order, &loads, 2);
        let sums: Vec<u64> = shares.iter().map(|s| s.iter().map(|g| loads[*g]).sum()).collect();
        assert_eq!(sums, [150, 100]);
        assert_eq!(shares, [vec![0, 2, 1, 6], vec![3, 4, 5, 7, 8]], "the largest first");
    }
}
