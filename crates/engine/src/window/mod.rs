//! The window engine: time is cut into windows shorter than any link's delay. Within a window, the engine computes
//! one node after the other, without a global event queue.
//!
//! The actions of a node within a window reach other nodes in later windows only. So nodes are independent within a
//! window: any number of threads can compute them in any order. The files, in the order of a packet's path:
//!
//! | file | content |
//! |---|---|
//! | [`mod@setup`], [`tie`] | constants of the run that only this engine needs; the order of arrivals at one instant |
//! | [`layout`] | where the state of each node is |
//! | [`clock`] | between two windows: the choice of the next one, and the end of the run |
//! | [`crew`] | threads that share the groups of a window |
//! | [`group`] | the state of nodes, and their visits |
//! | [`context`] | what visits share: the open window, and working memory |
//! | [`turns`] | double windows: two sides of the fabric that take turns |
//! | [`mod@way`] | the way in which the visit of a switch is computed |
//! | [`local`], [`mod@line`] | a switch whose scheme acts on every port by itself; its arrivals by port and class |
//! | [`short`], [`departures`], [`charged`] | a port of such a switch: with little to do, in general, and in heavy visits or near a cap |
//! | [`ledger`], [`decide`] | charges of a lossless buffer beside its ports, and decisions by arrivals alone |
//! | [`shelf`] | large annexes, which stay in their lanes meanwhile |
//! | [`switch`], [`sort`], [`order`], [`play`] | other switches: arrivals and departures in order of time |
//! | [`sums`] | the charges of a buffer, counted from queues |
//! | [`classed`], [`classed_host`], [`classed_switch`], [`desk`] | ports whose classes are not plain |
//! | [`host`], [`server`] | a host in one window, with one port or several |
//! | [`nic`] | a NIC whose ports serve all its queue pairs |
//! | [`step`] | the steps in which ports of a host are computed |
//! | [`live`] | runs that a program drives |
//! | [`port`], [`queue`], [`wire`] | a port, its queues, and its wire |
//! | [`out`], [`lanes`], [`far`] | packets that leave a node, and their way to the far end |

mod charged;
mod classed;
mod classed_host;
mod classed_switch;
mod clock;
mod context;
mod crew;
mod decide;
mod departures;
mod desk;
mod far;
mod group;
mod host;
mod lanes;
mod layout;
mod ledger;
mod line;
mod live;
mod local;
mod nic;
mod order;
mod out;
mod play;
mod port;
mod queue;
mod server;
mod setup;
mod shelf;
mod short;
mod sort;
mod step;
mod sums;
mod switch;
mod tie;
mod turns;
mod way;
mod wire;

pub(crate) use live::live;

use crate::books::{Closing, Tally, close};
use crate::cut;
use crate::observer::Observer;
use crate::outcome::{Effort, Ending, LinkRecord, Memory, Outcome};
use crate::view::Views;
use clock::Clock;
use context::{Context, Workspace};
use group::Group;
use lanes::{Board, Mail};
use layout::Layout;
use model::{Parcel, Parts, Plan, QpId, Time};
use setup::Setup;

/// Runs a plan on `threads` threads, with windows of the plan's full length divided by `divisor`. The result
/// depends on neither.
pub(crate) fn run<P: Parts>(
    plan: &Plan,
    parts: &P,
    threads: usize,
    divisor: u64,
    observer: &mut dyn Observer,
) -> Outcome {
    let setup = Setup::new(plan);
    // Half windows check that turns change nothing.
    let sides = if divisor == 1 { turns::sides(&setup) } else { None };
    let attempt = Attempt { threads, divisor, is_first: true };
    let mut run = advance(&setup, parts, attempt, sides.as_deref(), observer);
    if run.end.cause == clock::Cause::Quiet {
        run = advance(&setup, parts, Attempt { is_first: false, ..attempt }, None, observer);
    }
    let Advanced { layout, mut groups, mut board, clock, end } = run;
    let end = ending(&setup, &layout, &mut groups, &mut board, &clock, end);
    match cut::shorter(plan, observer.cutter()) {
        Some(plan) => finish(&Setup::new(&plan), groups, &board, clock, end),
        None => finish(&setup, groups, &board, clock, end),
    }
}

/// How a run is computed, which its outcome does not show.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    threads: usize,
    /// Windows have the plan's full length divided by this.
    divisor: u64,
    /// False if the run begins anew. The observer learns of one start only.
    is_first: bool,
}

/// The state of a run after its last window.
#[expect(clippy::vec_box, reason = "the clock takes any pointer to a group")]
struct Advanced<P: Parts> {
    layout: Layout,
    groups: Vec<Box<Group<P>>>,
    board: Board<P::Annex>,
    clock: Clock,
    end: clock::End,
}

/// Computes all windows, in turns of the two `sides` if that is possible. A run in turns may end as
/// [`clock::Cause::Quiet`], and must then begin anew without sides.
fn advance<P: Parts>(
    setup: &Setup<'_>,
    parts: &P,
    Attempt { threads, divisor, is_first }: Attempt,
    sides: Option<&[u8]>,
    observer: &mut dyn Observer,
) -> Advanced<P> {
    let layout = Layout::new(setup.fabric());
    let length = (setup.window / divisor).max(1);
    let mut groups = groups_of(setup, parts, &layout, length);
    let views = views_of(setup, &groups);
    let mut clock = Clock::new(setup, length, views, size_of::<Parcel<P::Annex>>());
    if let Some(sides) =
        sides.filter(|_| !clock.views.are_asked_for() && groups.iter().all(|g| g.knows_middles()))
    {
        groups.iter_mut().for_each(|group| group.take_sides(sides));
        clock = clock.in_turns();
    }
    // WebAssembly cannot start threads.
    let threads = if cfg!(target_family = "wasm") { 1 } else { threads.clamp(1, groups.len()) };
    let mail = Mail::new(layout.mail_words(), threads);
    let mut board = board_of(&groups);
    if is_first {
        observer.on_start();
    }
    clock.has_room(setup, &groups, observer);
    let end = if threads == 1 {
        let mut workspace = Workspace::default();
        loop {
            match clock.advance(setup, &mut groups, &mut board, &mail, observer) {
                clock::Step::Visit(window) => {
                    let view = clock.views.known();
                    let (board, mail, outbox) = (&board, &mail, mail.outbox(0));
                    let context = Context { setup, window, board, mail, outbox, view };
                    groups.iter_mut().for_each(|group| group.visit(context, &mut workspace));
                }
                clock::Step::End(end) => break end,
            }
        }
    } else {
        let order = layout.neighbourhoods(setup.fabric());
        crew::run(setup, &mut groups, &mut board, &mail, (&order, threads), &mut clock, observer)
    };
    Advanced { layout, groups, board, clock, end }
}

/// The state of all groups before the first window.
#[expect(clippy::vec_box, reason = "the clock takes any pointer to a group")]
fn groups_of<P: Parts>(setup: &Setup<'_>, parts: &P, layout: &Layout, length: u64) -> Vec<Box<Group<P>>> {
    let mut groups: Vec<Box<Group<P>>> =
        (0..layout.groups.len()).map(|g| Box::new(Group::new(setup, parts, layout, g))).collect();
    for (i, qp) in setup.plan.qps.iter().enumerate() {
        let sender = layout.locate(setup.fabric().node_of(qp.from));
        groups[sender.group as usize].add_outgoing(setup, parts, sender.index, QpId(i as u32));
    }
    groups.iter_mut().for_each(|group| group.ready(setup, length));
    groups
}

fn views_of<P: Parts>(setup: &Setup<'_>, groups: &[Box<Group<P>>]) -> Views {
    let interest = groups.iter().flat_map(|group| group.switches()).find_map(|switch| switch.interest.view);
    Views::new(setup, interest)
}

fn board_of<P: Parts>(groups: &[Box<Group<P>>]) -> Board<P::Annex> {
    groups.iter().map(|group| group.empty_lanes()).collect()
}

/// The way in which a run ended, with its details, and the time at which it was cut off.
fn ending<P: Parts>(
    setup: &Setup<'_>,
    layout: &Layout,
    groups: &mut [Box<Group<P>>],
    board: &mut Board<P::Annex>,
    clock: &Clock,
    clock::End { cause, at }: clock::End,
) -> (Ending, Option<Time>) {
    if matches!(cause, clock::Cause::Stalled | clock::Cause::Stopped)
        && let Some(end) = crate::stall::exceeded(setup, groups.iter().map(|group| group.liveness()))
    {
        return end;
    }
    let ending = match cause {
        clock::Cause::Stalled => stalled(setup, layout, groups),
        clock::Cause::Finished => Ending::Finished,
        clock::Cause::Stopped => Ending::Stopped,
        // A run that ends because it is quiet begins anew.
        clock::Cause::Interrupted | clock::Cause::Quiet => Ending::Interrupted,
        clock::Cause::Memory => {
            let mut memory = Memory { records: clock.sampler.memory(), ..Memory::default() };
            let lanes = groups.iter_mut().zip(board);
            lanes.for_each(|(group, written)| group.add_memory(&mut memory, written));
            Ending::Memory(memory)
        }
    };
    (ending, at)
}

fn stalled<P: Parts>(setup: &Setup<'_>, layout: &Layout, groups: &[Box<Group<P>>]) -> Ending {
    let fabric = setup.fabric();
    let blocked = |gp: usize| {
        let link = &fabric.links()[gp];
        groups[layout.locate(link.from).group as usize].blocked(setup, layout.port(link.from, link.port))
    };
    let hosts = || groups.iter().flat_map(|group| group.hosts());
    let since = hosts().map(|host| host.liveness.last_progress).max();
    let waiting = hosts().flat_map(|host| host.waiting(setup)).collect();
    Ending::Stalled(crate::stall::explain(setup, waiting, since, blocked))
}

/// Sums up the groups' counts and records.
#[expect(clippy::vec_box, reason = "the clock takes any pointer to a group")]
fn finish<P: Parts>(
    setup: &Setup<'_>,
    mut groups: Vec<Box<Group<P>>>,
    board: &Board<P::Annex>,
    mut clock: Clock,
    (ending, stopped_at): (Ending, Option<Time>),
) -> Outcome {
    let fabric = setup.fabric();
    if !clock.sampler.is_blind() {
        clock.sample(setup, &mut groups);
    }
    let mut links = vec![LinkRecord::default(); fabric.links().len()];
    let mut paused_since = vec![u64::MAX; fabric.links().len()];
    let mut effort = Effort { windows: clock.windows, ..Effort::default() };
    let (mut last_sent, mut queues) = (0, Vec::new());
    for (group, written) in groups.iter_mut().zip(board) {
        group.count_in_flight(clock.last, written);
        last_sent = last_sent.max(group.report(&mut links, &mut paused_since));
        queues.extend(group.queues());
        effort.merge(group.effort());
    }
    let mut tally = Tally::default();
    let (mut hosts, mut switches, mut tasks, mut recorders) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for group in groups {
        let parted = group.split();
        hosts.extend(parted.hosts);
        switches.extend(parted.switches);
        tasks.extend(parted.tasks);
        tally.merge(&parted.tally);
        recorders.push(parted.recorder);
    }
    hosts.sort_by_key(|(id, _)| *id);
    switches.sort_by_key(|(id, _)| *id);
    let hosts: Vec<_> = hosts.into_iter().map(|(_, host)| host).collect();
    let mut switches: Vec<_> = switches.into_iter().map(|(_, switch)| switch).collect();
    switches.iter_mut().for_each(|s| s.buffer.sample());
    tally.data_hops = links.iter().map(|l| l.frames).sum::<u64>() - tally.control_hops;
    let (hosts, switches, recorders) = (&hosts[..], &switches[..], &recorders[..]);
    close(
        setup,
        Closing {
            ending,
            stopped_at,
            last_sent,
            hosts,
            switches,
            tasks,
            links,
            paused_since,
            queues,
            recorders,
            sampler: clock.sampler,
            tally,
            effort,
        },
    )
}
