//! The workloads of the bench, scaled down: the reference engine, and the window engine with half windows and with
//! threads, give the same outcome, bit for bit. `make bench` thus measures an engine whose results are checked.

#[path = "../../benches/hops/workloads.rs"]
#[expect(dead_code, reason = "the bench runs them at other lengths, and others")]
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
fn workloads_match_their_descriptions() {
    let of = |name: &str| ALL.iter().find(|w| w.name == name).unwrap();
    let incast = outcome(of("incast"), Kind::Window);
    assert!(incast.control.pause > 0 && incast.control.cnp > 0, "an incast pauses and marks");
    for name in ["cut", "weighted"] {
        assert!(outcome(of(name), Kind::Window).data.cut > 100, "{name}: switches cut data");
    }
    let two_ports = of("two-ports").checked(Length::Small).unwrap().plan.fabric;
    assert_eq!((two_ports.servers(), two_ports.hosts()), (128, 256), "two ports at every host");
    // Ten percent of the capacity of a host's link during the run.
    let sparse = of("sparse").checked(Length::Small).unwrap();
    let run = outcome(of("sparse"), Kind::Window);
    let hosts = sparse.plan.fabric.hosts();
    let busy: u64 = run.links[..hosts].iter().map(|link| link.busy.ps()).sum();
    let share = busy as f64 / (run.end.ps() * hosts as u64) as f64;
    assert!((0.06..0.14).contains(&share), "{share}");
    // The longer of the two runs under valgrind must have more hops, because instructions per hop come from the
    // difference.
    for workload in ALL {
        let bytes =
            |length| -> u64 { workload.checked(length).unwrap().plan.messages.iter().map(|m| m.bytes).sum() };
        assert!(bytes(Length::Long) >= 2 * bytes(Length::Short), "{}", workload.name);
    }
}
