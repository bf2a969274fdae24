//! The workloads of the bench, scaled down: the reference engine, the window engine, its half windows and its
//! threads give the same outcome, bit for bit. What `make bench` measures is what this holds to be right.

#[path = "../benches/hops/workloads.rs"]
#[expect(dead_code, reason = "the bench runs them at other lengths, too")]
mod workloads;

use engine::outcome::Effort;
use engine::{Kind, Outcome};
use std::num::NonZeroUsize;
use workloads::{ALL, Length, Workload};

fn outcome(workload: &Workload, kind: Kind) -> Outcome {
    let checked = workload.checked(Length::Small).unwrap();
    let outcome = sim::run(&checked.plan, &checked.schemes, &checked.nics, kind, &mut ());
    assert_eq!(outcome.violations, Vec::<String>::new(), "{} on {kind:?}", workload.name);
    Outcome { effort: Effort::default(), ..outcome }
}

#[test]
fn every_workload_of_the_bench_has_one_outcome() {
    let two = NonZeroUsize::new(2).unwrap();
    for workload in ALL {
        let reference = outcome(workload, Kind::Reference);
        assert!(reference.data.accepted > 400, "{}: too small to prove anything", workload.name);
        for kind in [Kind::Window, Kind::HalfWindow, Kind::Threads(two)] {
            assert!(outcome(workload, kind) == reference, "{} on {kind:?}", workload.name);
        }
    }
}

#[test]
fn workloads_do_what_their_lines_say() {
    let of = |name: &str| ALL.iter().find(|w| w.name == name).unwrap();
    let incast = outcome(of("incast"), Kind::Window);
    assert!(incast.control.pause > 0 && incast.control.cnp > 0, "an incast pauses and marks");
    // Ten percent of the time that a host's link could be busy while the run lasts.
    let sparse = of("sparse").checked(Length::Small).unwrap();
    let run = outcome(of("sparse"), Kind::Window);
    let hosts = sparse.plan.fabric.hosts();
    let busy: u64 = run.links[..hosts].iter().map(|link| link.busy.ps()).sum();
    let share = busy as f64 / (run.end.ps() * hosts as u64) as f64;
    assert!((0.06..0.14).contains(&share), "{share}");
    // Of two runs that valgrind counts, the longer one sends more: the difference is per hop.
    for workload in ALL {
        let bytes =
            |length| -> u64 { workload.checked(length).unwrap().plan.messages.iter().map(|m| m.bytes).sum() };
        assert!(bytes(Length::Long) >= 2 * bytes(Length::Short), "{}", workload.name);
    }
}
