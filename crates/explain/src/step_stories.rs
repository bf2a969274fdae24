//! Steps whose critical path is known. The pieces must add up to the step, to the picosecond.

use crate::*;
use lab::Prepared;
use results::Results;
use scenario::{Checked, Source};

fn run(text: &str) -> (Checked, Results) {
    let prepared = match Prepared::by(|| scenario::check(&Source::new("story.toml", text), &[])) {
        Ok(prepared) => prepared,
        Err(e) => panic!("{e}\nin:\n{text}"),
    };
    let checked = prepared.checked.clone();
    (checked, lab::run(prepared).results(vec![]))
}

/// Runs a scenario and explains a step.
fn explained(text: &str, name: &str) -> Step {
    let (checked, results) = run(text);
    let step = Step::of(&checked, &results, name).unwrap();
    let parts: u64 = step.account.iter().map(|piece| piece.ps).sum();
    assert_eq!(parts, step.ps, "the pieces add up in\n{}", step.text());
    assert!(step.path.windows(2).all(|two| two[0].to_ps == two[1].from_ps), "{}", step.text());
    assert!(!step.path.iter().any(|leg| leg.kind == "scheduled"), "{}", step.text());
    step
}

/// Time of the pieces of this kind, ps.
fn spent(step: &Step, spent: Spent) -> u64 {
    step.account.iter().filter(|piece| piece.spent == spent).map(|piece| piece.ps).sum()
}

/// A model of one layer per stage on the GPUs of one server, whose activations are so small that a hop takes NVLink's delay. A
/// forward pass takes 10 us, a backward pass 20 us.
fn pipeline(stages: u32, micros: u32, hop_us: u32) -> String {
    format!(
        "[server]\ngpus = {stages}\nnvlink = {{ delay = \"{hop_us}us\" }}\n[topology.rails]\nservers = 1\nspines = 0\n\
         [[workload]]\n[workload.training]\n\
         model = {{ hidden = 8, layers = {stages}, heads = 1, ffn = 1, gated = true, vocab = 1 }}\n\
         parallel = {{ pp = {stages} }}\nbatch = {{ global = {micros}, sequence = 1 }}\nschedule = \"1f1b\"\n\
         compute = {{ forward = \"10us\", backward = \"20us\" }}\n"
    )
}

#[test]
fn the_path_of_a_pipeline_is_computation_bubble_and_hops() {
    // Stages P, micro-batches m, delay of a hop in us, and hops on the path. A GPU computes 30 m us, and the bubble is
    // 30 (P - 1) us.
    for (stages, micros, hop, hops) in [(2, 4, 1, 4), (4, 8, 1, 16), (4, 4, 1, 10), (8, 16, 1, 40)] {
        let step = explained(&pipeline(stages, micros, hop), "step");
        let us = |ps: u64| ps as f64 / 1e6;
        assert_eq!(us(spent(&step, Spent::Compute)), 30.0 * f64::from(micros), "{}", step.text());
        assert_eq!(us(spent(&step, Spent::Bubble)), 30.0 * f64::from(stages - 1), "{}", step.text());
        let copies = us(spent(&step, Spent::Copies));
        assert!((copies - f64::from(hops * hop)).abs() < 0.01, "{copies} us\n{}", step.text());
        assert_eq!(step.account.len(), 3);
        assert!(step.answer.contains("the bubble"), "{}", step.answer);
        // The path begins with the first forward pass of the first stage.
        assert_eq!((step.path[0].rank, step.path[0].name.as_str()), (0, "forward"));
    }
}

/// Data parallelism between two servers under two leaves, each GPU with its own NIC.
fn data_parallel(more: &str) -> String {
    format!(
        "[server]\ngpus = 2\nnvlink = {{ }}\n[topology.rails]\nservers = 4\nkind = \"per-server\"\n\
         servers-per-segment = 2\nspines = 1\nrate = \"100Gbps\"\n[nic.congestion.none]\n{more}\n\
         [[workload]]\nname = \"train\"\n[workload.training]\n\
         model = {{ hidden = 512, layers = 2, heads = 8, ffn = 2048, gated = true, vocab = 1000 }}\n\
         parallel = {{ tp = 2 }}\nbatch = {{ global = 4, sequence = 64 }}\ncompute = {{ flops = \"400TFLOPS\" }}\n"
    )
}

#[test]
fn a_slow_link_under_data_parallelism_is_named() {
    let (checked, _) = run(&data_parallel(""));
    let fabric = &checked.plan.fabric;
    let slow = fabric.links().iter().find(|link| fabric.role(link.from) == "spine").unwrap();
    let (spine, leaf) = (fabric.name(slow.from), fabric.name(slow.to));
    let well = explained(&data_parallel(""), "step");
    let failure = format!("[[failure]]\nlinks = [[\"{spine}\", \"{leaf}\"]]\nrate = 0.05\nat = \"0us\"\n");
    let step = explained(&data_parallel(&failure), "step");
    let late = |step: &Step| {
        let of = |piece: &&Piece| piece.spent == Spent::Late && piece.dimension == "dp";
        step.account.iter().filter(of).map(|piece| piece.ps).sum::<u64>()
    };
    assert!(late(&step) > step.ps / 2, "{}", step.text());
    assert!(step.ps - late(&step) <= well.ps * 2, "{}\n{}", well.text(), step.text());
    let link = step.messages[0].link.as_ref().unwrap();
    let mut ends = [&link.from[..], &link.to[..]];
    let mut expected = [spine, leaf];
    ends.sort_unstable();
    expected.sort_unstable();
    assert_eq!(ends, expected, "{}", step.text());
    assert!(link.busy_share > 0.5, "{}", step.text());
    let text = step.text().replace('\n', " ");
    assert!(text.contains(&format!("{} -> {}", link.from, link.to)), "{text}");
    assert!(text.contains(": slowed to 5 Gb/s."), "{text}");
}

#[test]
fn the_tables_of_steps_and_of_the_timeline_share_out_all_of_the_time() {
    let text = data_parallel("").replace("parallel = { tp = 2 }", "parallel = { tp = 2, pp = 2 }\nsteps = 2");
    let (checked, results) = run(&text);
    let [steps, timeline] = ["steps", "timeline"].map(|name| results.table(name).unwrap());
    let sum = |table: &results::table::Table, columns: &[&str], rank: u64| {
        let ranks = table.counts("rank").unwrap();
        let rows = || (0..table.rows()).filter(|&row| ranks.value(row) == rank);
        columns
            .iter()
            .map(|name| rows().map(|row| table.reals(name).unwrap().value(row)).sum::<f64>())
            .sum::<f64>()
    };
    let waits = ["tp", "cp", "ep", "pp", "dp", "other"].map(|kind| format!("exposed_{kind}_us"));
    let mut pieces: Vec<&str> = waits.iter().map(String::as_str).collect();
    pieces.push("compute_us");
    let ranks = checked.plan.tasks.iter().map(|task| u64::from(task.rank)).max().unwrap() + 1;
    assert_eq!((steps.rows() as u64, timeline.rows() as u64), (2 * ranks, 600 * ranks));
    for rank in 0..ranks {
        let all = sum(steps, &["end_us"], rank) - sum(steps, &["start_us"], rank);
        let shared = sum(steps, &pieces, rank);
        assert!((all - shared - sum(steps, &["bubble_us"], rank)).abs() < 1e-6);
        assert!((shared - sum(timeline, &pieces, rank)).abs() < 1e-6, "rank {rank}");
        // A rank waits only for communication that is under way.
        for kind in ["tp", "pp", "dp"] {
            let under_way = sum(timeline, &[&format!("under_way_{kind}_us")], rank);
            assert!(under_way > 0.0 && under_way <= all, "{kind}, rank {rank}");
        }
    }
    // The two steps follow each other, and the summary has their mean.
    let job = &results.summary.jobs["train"].steps.as_ref().unwrap();
    let last = steps.reals("end_us").unwrap().value(steps.rows() - 1);
    assert!((last - 2.0 * job.time_us).abs() < 1e-6);
    // 4 sequences of 64 tokens.
    assert!((job.tokens_per_second.unwrap() * job.time_us - 4.0 * 64.0 * 1e6).abs() < 1e-3);
    assert!((job.exposed_astra_us - (job.time_us - job.compute_us)).abs() < 1e-9);
}

#[test]
fn steps_are_found_by_number_and_job() {
    let (checked, results) = run(&pipeline(2, 2, 1));
    let step = |name: &str| Step::of(&checked, &results, name).map(|step| (step.job, step.step));
    let job = checked.plan.jobs[0].name.clone();
    for name in ["step", "step:0", &format!("step:{job}"), &format!("step:{job}:0")] {
        assert!(Step::is_asked_by(name));
        assert_eq!(step(name), Ok((job.clone(), 0)), "{name}");
    }
    for (name, wrong) in [
        ("step:1", "there is no step 1; the last is step 0"),
        ("step:other", "there is no job other with steps"),
        ("step:other:0", "there is no job other with steps"),
        (&format!("step:{job}:x"), "expected the number of a step, found `x`"),
    ] {
        assert!(step(name).unwrap_err().contains(wrong), "{:?}", step(name));
    }
    assert!(!Step::is_asked_by("steps") && !Step::is_asked_by("host0->host1"));
    let (checked, results) =
        run("[topology.leaf-spine]\nhosts-per-leaf = 1\n[[workload]]\n[workload.flows]\n\
             list = [{ from = \"host0\", to = \"host1\", bytes = \"1kB\" }]\n");
    assert!(Step::of(&checked, &results, "step").unwrap_err().contains("the workload has no steps"));
}

#[test]
fn a_step_that_the_run_did_not_end_is_an_error() {
    let (checked, results) = run(&format!("[stop]\nafter = \"50us\"\n{}", pipeline(2, 4, 1)));
    assert_eq!(Step::of(&checked, &results, "step").unwrap_err(), "the run ended before the step did");
}
