//! The last step of a job ends when the job does: no task and no message of it stands outside its steps.

use crate::{Prepared, run};
use scenario::{Checked, Source, builtin, check};
use std::fs;
use std::path::Path;

/// Runs a scenario, whose jobs with steps must end with their last step. Returns their number.
fn jobs_that_end_with_their_steps(checked: Checked, what: &str) -> usize {
    let run = run(Prepared { checked, setup_s: 0.0 });
    let plan = &run.checked.plan;
    assert_eq!(run.summary.ending, "finished", "{what}");
    let mut found = 0;
    for (number, job) in (0u16..).zip(&plan.jobs) {
        let Some(steps) = &run.summary.jobs[&job.name].steps else { continue };
        let tasks = plan.tasks.iter().zip(&run.outcome.tasks).filter(|(task, _)| task.job == number);
        let messages =
            plan.messages.iter().zip(&run.outcome.messages).filter(|(message, _)| message.job == number);
        let ends = tasks.map(|(_, record)| record.end).chain(messages.map(|(_, record)| record.received));
        let last = ends.max().map_or(0.0, model::Time::as_us);
        let end = job.start.as_us() + steps.time_us * steps.count as f64;
        assert!((end - last).abs() < 1e-6, "{what}, {}: {end} us, and {last} us", job.name);
        found += 1;
    }
    found
}

/// Four servers of four GPUs under two leaves.
const FABRIC: &str = "[server]\ngpus = 4\nnvlink = {}\n[topology.rails]\nservers = 4\nkind = \"per-server\"\n\
                      servers-per-segment = 2\nspines = 2\nrate = \"100Gbps\"\n[[workload]]\nstart = \"3us\"\n";

/// Checks a workload on that fabric; its files are in `folder`.
fn on_fabric(folder: &Path, workload: &str) -> Checked {
    let source = Source::new(folder.join("s.toml").display().to_string(), format!("{FABRIC}{workload}\n"));
    check(&source, &[]).unwrap_or_else(|e| panic!("{workload}: {}", e.located()))
}

#[test]
fn steps_of_workloads_end_with_their_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let mut workloads = Vec::new();
    for kind in ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce"] {
        workloads.push(format!("collective = {{ kind = \"{kind}\", bytes = \"100kB\", repeat = 2 }}"));
    }
    for algorithm in
        ["ring", "tree", "halving-doubling", "recursive-doubling", "hierarchical", "nvls", "nccl"]
    {
        let call = format!("kind = \"all-reduce\", bytes = \"100kB\", algorithm = \"{algorithm}\"");
        workloads.push(format!("collective = {{ {call} }}"));
    }
    for more in [
        "parallel = { tp = 4, pp = 2 }",
        "parallel = { tp = 2, pp = 4 }\nschedule = { interleaved = 2 }",
        "parallel = { tp = 4 }\noptimizer = \"zero-3\"",
        "parallel = { tp = 4, cp = 2 }\noverlap = \"tp\"\nsteps = 2",
        "parallel = { tp = 4, pp = 4 }\noptimizer = \"replicated\"\nschedule = \"gpipe\"",
    ] {
        workloads.push(format!(
            "[workload.training]\nmodel = {{ hidden = 64, layers = 8, heads = 8, ffn = 128, gated = true, vocab = 100 }}\n\
             batch = {{ global = 16, sequence = 64 }}\ncompute = {{ flops = \"100TFLOPS\" }}\n{more}"
        ));
    }
    workloads.push(
        "graph = [{ name = \"a\", compute = \"1us\" }, { name = \"b\", send = { from = 0, to = 9, bytes = \"1MB\" }, after = [\"a\"] }]"
            .to_owned(),
    );
    for workload in workloads {
        assert_eq!(jobs_that_end_with_their_steps(on_fabric(folder.path(), &workload), &workload), 1);
    }
}

/// A node of a Chakra trace with whole numbers as attributes, after its length.
fn node(id: u8, kind: u8, micros: u8, after: &[u8], attributes: &[(&str, u8)]) -> Vec<u8> {
    let mut node = vec![0x08, id, 0x12, 1, b'n', 0x18, kind, 0x38, micros];
    after.iter().for_each(|id| node.extend([0x28, *id]));
    for (name, number) in attributes {
        node.extend([0x52, name.len() as u8 + 4, 0x0a, name.len() as u8]);
        node.extend(name.bytes());
        node.extend([0x48, *number]);
    }
    node.insert(0, node.len() as u8);
    node
}

#[test]
fn steps_of_imported_jobs_end_with_their_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| fs::write(folder.path().join(name), content).unwrap();
    // Rank 1 receives one of two messages; the other one, which is larger, arrives at last.
    write(
        "two.goal",
        b"num_ranks 8\nrank 0 {\na: calc 5000\nsend 8192b to 5\nb: send 1000000b to 5 tag 9\nb requires a\n}\n\
          rank 5 {\nrecv 8192b from 0\n}\n",
    );
    // The update of weights takes longer than all else.
    write(
        "update.txt",
        b"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 16 checkpoints: 0\n1\n\
          a -1 100 ALLREDUCE 4096 90 NONE 0 80 ALLREDUCE 10000 90000\n",
    );
    write(
        "stages.txt",
        b"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 1 pp: 4 vpp: 1 ga: 2 all_gpus: 16 pp_comm: 100000\n1\n\
          a -1 100 NONE 0 90 NONE 0 80 NONE 0 100\n",
    );
    let metadata = b"\x07\x0a\x050.0.4";
    for rank in 0..8u8 {
        let mut trace = metadata.to_vec();
        trace.extend(node(1, 4, 20, &[], &[]));
        trace.extend(node(2, 7, 0, &[1], &[("comm_type", 0), ("comm_size", 100)]));
        trace.extend(node(3, 2, 0, &[2], &[("tensor_size", 120)]));
        if rank == 0 {
            trace.extend(node(4, 5, 0, &[], &[("comm_dst", 4), ("comm_size", 127)]));
        }
        write(&format!("t.{rank}.et"), &trace);
    }
    for workload in [
        "goal = { file = \"two.goal\" }",
        "goal = { file = \"two.goal\", send-done = \"eager\" }",
        "simai = { file = \"update.txt\" }",
        "simai = { file = \"stages.txt\" }",
        "chakra = { file = \"t.0.et\" }",
        "chakra = { file = \"t.0.et\", remote-memory = \"1Mbps\" }",
    ] {
        assert_eq!(jobs_that_end_with_their_steps(on_fabric(folder.path(), workload), workload), 1);
    }
}

#[test]
fn steps_of_built_in_scenarios_end_with_their_jobs() {
    let mut names = Vec::new();
    for built_in in builtin::ALL {
        // Slices of collectives take a minute to lay out, and change no kind of job.
        let ideal = built_in.text.contains("[server]").then(|| "server.cost=none".to_owned());
        let checked = scenario::load(built_in.name, &ideal.into_iter().collect::<Vec<_>>()).unwrap();
        if checked.plan.operations.is_empty() {
            continue;
        }
        let mut sets = Vec::new();
        for (i, workload) in checked.scenario.workload.iter().enumerate() {
            // A small model and few bytes, so that the test takes seconds.
            sets.extend(match workload.kinds()[..] {
                ["training"] => vec![
                    format!("workload.{i}.training.model={{hidden=64,layers=8,heads=8,ffn=128,gated=true,vocab=100}}"),
                    format!("workload.{i}.training.batch={{global=16,sequence=64}}"),
                ],
                ["collective"] => vec![format!("workload.{i}.collective.bytes=64kB")],
                _ => Vec::new(),
            });
        }
        let small = scenario::load(built_in.name, &sets).unwrap_or_else(|e| panic!("{}: {e}", built_in.name));
        assert!(jobs_that_end_with_their_steps(small, built_in.name) > 0, "{}", built_in.name);
        names.push(built_in.name);
    }
    assert!(names.len() >= 3, "{names:?}");
}

/// Case: a pipeline of two stages on four servers. SimAI adds the time of 2 x vpp x ga messages to the step.
#[test]
fn messages_of_a_pipeline_stand_in_the_step_one_after_another() {
    let folder = tempfile::tempdir().unwrap();
    let file = |bytes: u64| {
        format!(
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 1 pp: 2 vpp: 3 ga: 2 all_gpus: 16 pp_comm: {bytes}\n1\n\
             a -1 100000 NONE 0 100000 NONE 0 100000 NONE 0 100\n"
        )
    };
    let mut times = Vec::new();
    for bytes in [0, 1_000_000, 2_000_000] {
        fs::write(folder.path().join("step.txt"), file(bytes)).unwrap();
        let workload = "simai = { file = \"step.txt\" }\n[nic.congestion.none]";
        // One flow per link: every message takes the time that it takes alone.
        let text =
            format!("{FABRIC}{workload}\n").replace("spines = 2", "spines = 8\nuplink-rate = \"800Gbps\"");
        let source = Source::new(folder.path().join("s.toml").display().to_string(), text);
        let run = run(Prepared { checked: check(&source, &[]).unwrap(), setup_s: 0.0 });
        let steps = run.summary.jobs["simai"].steps.clone().unwrap();
        let pp = steps.exposed.get("pp").map_or(0.0, |exposed| exposed.us);
        assert!((steps.compute_us - 300.0).abs() < 0.5, "{}", steps.compute_us);
        assert!((steps.time_us - steps.compute_us - pp).abs() < 0.01 * steps.time_us, "{steps:?}");
        times.push(steps.time_us);
    }
    // 12 messages of 1 MB more, at 100 Gb/s with the headers of their frames.
    let (first, second) = (times[1] - times[0], times[2] - times[1]);
    assert!(second > 12.0 * 80.0 && second < 12.0 * 80.0 * 1.1, "{times:?}");
    assert!(first >= second, "{times:?}");
}
