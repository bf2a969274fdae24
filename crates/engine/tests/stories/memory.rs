//! Claim: a run ends with its books in order before memory runs out, and it names the queue that has grown. Queues may be
//! longer than 4 GiB.

use crate::lab::{agreed_on, lay, mistakes};
use engine::outcome::{Ending, Memory, Outcome};
use engine::{Kind, Observer, Progress, link_name};
use std::num::NonZeroUsize;

/// Fifteen senders without congestion control fill the queue of one receiver.
const INCAST: &str = "[topology.leaf-spine]\nleaves = 2\nspines = 8\nhosts-per-leaf = 8\n\
                      [switch]\nbuffer = \"1000GB\"\npfc = \"off\"\necn = \"off\"\n\
                      [nic.transport.ideal]\n[nic.congestion.none]\n\
                      [[workload]]\nincast = { bytes = \"1GB\", senders = 15, receiver = \"host0\" }\n";

const ENGINES: [Kind; 4] =
    [Kind::Reference, Kind::Window, Kind::HalfWindow, Kind::Threads(NonZeroUsize::new(2).unwrap())];

/// A machine on which a run may take `left` bytes. Every link crossing takes 16 B of them.
struct Machine {
    left: u64,
    /// Link crossings so far.
    hops: u64,
    looks: u64,
}

impl Observer for Machine {
    fn on_progress(&mut self, progress: Progress) -> bool {
        self.looks += 1;
        self.hops = progress.hops;
        true
    }

    fn room(&mut self) -> u64 {
        self.left.saturating_sub(self.hops * 16)
    }
}

fn run(text: &str, kind: Kind, left: u64) -> (Outcome, u64) {
    let checked = lay(text);
    let mut machine = Machine { left, hops: 0, looks: 0 };
    let run = sim::run(&checked.plan, &checked.schemes, &checked.nics, kind, &mut machine);
    assert_eq!(mistakes(&checked.plan, &run), [""; 0], "{kind:?}");
    (run, machine.looks)
}

#[test]
fn an_incast_without_congestion_control_ends_when_memory_is_short_and_names_its_queue() {
    for kind in ENGINES {
        let (run, _) = run(INCAST, kind, 8_000_000);
        let Ending::Memory(memory) = run.ending else { panic!("{kind:?} ended as {:?}", run.ending) };
        let Memory { queues, longest, in_flight, records } = memory;
        let (link, longest) = longest.expect("a long queue");
        let fabric = lay(INCAST).plan.fabric;
        assert_eq!(link_name(&fabric, link), "leaf0 -> host0", "{kind:?}");
        assert!(run.data.in_flight > 50_000 && run.data.in_flight * 16 < 8_000_000, "{}", run.data.in_flight);
        // The account is the memory of the packets, and of free slots for at most as many.
        let packets = run.data.in_flight * 16;
        assert!((packets * 9 / 10..=packets * 2).contains(&longest), "{kind:?}: {longest} for {packets}");
        assert!(queues >= longest && queues + in_flight < packets * 3, "{kind:?}: {memory:?}");
        assert!(records < 1_000_000, "{kind:?}: {records}");
    }
}

#[test]
fn a_run_is_looked_at_more_often_as_memory_becomes_short() {
    let text = format!("{INCAST}[stop]\nafter = \"400us\"\n");
    for kind in ENGINES {
        let (ample, few) = run(&text, kind, u64::MAX / 2);
        // At the end 1 MB is left.
        let (tight, many) = run(&text, kind, (ample.data_hops + ample.control_hops) * 16 + 1_000_000);
        assert_eq!((&ample.ending, &tight.ending), (&Ending::Stopped, &Ending::Stopped), "{kind:?}");
        assert_eq!(ample.data, tight.data, "{kind:?}: looking never changes a result");
        assert!(many > few, "{kind:?}: {few} looks and {many} looks");
    }
}

#[test]
fn a_queue_beyond_4_gib_is_counted_in_full() {
    let text = format!("{INCAST}[wire]\npayload = \"9000B\"\n[stop]\nafter = \"7500us\"\n");
    let run = agreed_on(&lay(&text), &text);
    let longest = run.links.iter().map(|link| link.max_queue).max().unwrap();
    assert!(longest > 1 << 32, "{longest}");
    assert!(run.max_buffer.iter().any(|most| most.get() >= longest));
}
