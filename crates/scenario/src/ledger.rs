//! A ledger of small collectives and training steps: what each operation moves and computes, and the longest chain of computation. A change of the table is
//! reviewed as a measurement is; `GOLDEN=write` writes it anew.

use crate::{Checked, Source, Survey, check};
use model::plan::{Role, Trigger, Work};
use model::{Plan, Time};
use std::collections::BTreeMap;
use std::fmt::Write;

const LEDGER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ledger.txt");

/// Servers of two GPUs; a model of four layers and 3.2 million parameters, or more with experts.
const HEAD: &str = "[server]\ngpus = 2\nnvlink = { rate = \"800Gbps\", delay = \"1us\" }\n[topology.rails]\nservers = 4\nspines = 1\n\
                    [[workload]]\n[workload.training]\n";

/// What differs from step to step.
const STEPS: &[(&str, &str)] = &[
    ("data parallelism alone, replicated", "optimizer = \"replicated\""),
    ("distributed optimizer, small buckets", "bucket = \"1MB\"\ngradient = \"2B\""),
    ("zero-3", "optimizer = \"zero-3\""),
    ("tensor parallelism", "parallel = { tp = 2 }"),
    ("tensor parallelism without sequence parallelism", "parallel = { tp = 2, sequence-parallel = false }"),
    ("tensor parallelism behind computation", "parallel = { tp = 2 }\noverlap = \"tp\""),
    ("context parallelism", "parallel = { cp = 2, tp = 2 }"),
    ("a pipeline, 1f1b", "parallel = { pp = 4, tp = 2 }"),
    ("a pipeline, gpipe, two replicas", "parallel = { pp = 2, tp = 2, dp = 2 }\nschedule = \"gpipe\""),
    ("a pipeline, interleaved", "parallel = { pp = 2, tp = 2 }\nschedule = { interleaved = 2 }"),
    ("two steps of uneven stages", "parallel = { pp = 3, tp = 1, dp = 2 }\nsteps = 2"),
    ("experts", "parallel = { ep = 2, tp = 2 }\nrouting = { skew = 0.5, capacity = 1.25 }"),
    (
        "experts, a message for each token",
        "parallel = { ep = 2, tp = 2 }\nrouting = { message = \"token\", token-bytes = [6, 0] }",
    ),
    ("experts once per server", "parallel = { ep = 8 }\nrouting = { once-per-server = true }"),
];

/// Collectives of three servers with three GPUs, or of one.
const COLLECTIVES: &[(u32, &str)] = &[
    (3, "kind = \"all-reduce\""),
    (3, "kind = \"all-reduce\", algorithm = \"tree\", tuning = { channels = 2, message = \"100kB\" }"),
    (3, "kind = \"all-reduce\", algorithm = \"nvls\""),
    (3, "kind = \"all-reduce\", algorithm = \"hierarchical\""),
    (3, "kind = \"reduce-scatter\", tuning = { channels = 3, nic = \"own\" }"),
    (3, "kind = \"all-gather\", repeat = 2"),
    (3, "kind = \"all-to-all\", tuning = { channels = 3, window = 2 }"),
    (3, "kind = \"all-to-all\", tuning = { nic = \"own\" }"),
    (3, "kind = \"broadcast\", groups = \"rail\""),
    (3, "kind = \"reduce\", groups = \"server\""),
    (3, "kind = \"all-reduce\", algorithm = \"nccl\""),
    (3, "kind = \"all-gather\", algorithm = \"nccl\""),
    (1, "kind = \"all-reduce\", algorithm = \"nvls\""),
    (1, "kind = \"all-gather\", algorithm = \"nvls\", tuning = { protocol = \"ll128\" }"),
    (1, "kind = \"all-reduce\", algorithm = \"nccl\""),
    (1, "kind = \"all-to-all\""),
];

fn collective(&(servers, keys): &(u32, &str)) -> Source {
    let text = format!(
        "[server]\ngpus = 3\nnvlink = {{ rate = \"800Gbps\", delay = \"1us\" }}\n[topology.rails]\nservers = {servers}\nspines = 1\n\
         [[workload]]\ncollective = {{ bytes = \"1MB\", {keys} }}\n"
    );
    Source::new("collective.toml", text)
}

fn lay(step: (&str, &str)) -> Checked {
    let laid = check(&training(step), &[]);
    laid.unwrap_or_else(|e| panic!("{}: {e:?}", step.0))
}

fn training((name, keys): (&str, &str)) -> Source {
    let moe = if name.starts_with("experts") {
        ", moe = { experts = 8, top-k = 2, shared = 1, dense-layers = 1 }"
    } else {
        ""
    };
    let model = format!(
        "model = {{ hidden = 256, layers = 4, heads = 4, kv-heads = 2, ffn = 1024, vocab = 1000, positions = 64{moe} }}\n"
    );
    // A pipeline of three stages has six GPUs.
    let head =
        if keys.contains("pp = 3") { HEAD.replace("servers = 4", "servers = 3") } else { HEAD.to_owned() };
    let compute = if keys.contains("compute") { "" } else { "compute = { flops = \"1TFLOPS\" }\n" };
    let text = format!("{head}{model}{compute}batch = {{ global = 16, micro = 1, sequence = 64 }}\n{keys}\n");
    Source::new("step.toml", text)
}

/// The longest chain of computation from the start to the end of a plan, if all else took no time.
fn chain(plan: &Plan) -> Time {
    let (tasks, messages) = (plan.tasks.len(), plan.messages.len());
    let mut needs: Vec<u32> =
        plan.tasks.iter().map(|task| task.needs).chain(plan.messages.iter().map(|m| m.needs)).collect();
    let mut begin = vec![Time::ZERO; tasks + messages];
    let mut ready: Vec<usize> = (0..needs.len()).filter(|&i| needs[i] == 0).collect();
    let (mut longest, mut done) = (Time::ZERO, 0);
    while let Some(i) = ready.pop() {
        done += 1;
        let (end, then) = match i.checked_sub(tasks) {
            None => {
                let task = &plan.tasks[i];
                let time = if let Work::On { time, .. } = task.work { time } else { Time::ZERO };
                (begin[i] + time, vec![task.on_done.clone()])
            }
            Some(m) => {
                (begin[i], vec![plan.messages[m].on_received.clone(), plan.messages[m].on_acked.clone()])
            }
        };
        longest = longest.max(end);
        for trigger in then.into_iter().flatten() {
            let next = match plan.triggers[trigger as usize] {
                Trigger::Task(task) => task.index(),
                Trigger::Message(message) => tasks + message.index(),
            };
            begin[next] = begin[next].max(end);
            needs[next] -= 1;
            if needs[next] == 0 {
                ready.push(next);
            }
        }
    }
    assert_eq!(done, needs.len(), "all work becomes ready");
    longest
}

fn ledger(name: &str, checked: &Checked) -> String {
    let plan = &checked.plan;
    let mut told = format!("# {name}\n");
    if plan.jobs[0].tokens > 0 {
        let (tokens, longest) = (plan.jobs[0].tokens, chain(plan).as_us());
        writeln!(told, "{tokens} tokens; the longest chain of computation takes {longest:.3} us").unwrap();
    }
    let mut of: BTreeMap<(&str, &str, u64, u32), u32> = BTreeMap::new();
    for operation in &plan.operations {
        *of.entry((operation.dimension, operation.name, operation.bytes, operation.ranks)).or_default() += 1;
    }
    for ((dimension, name, bytes, ranks), times) in of {
        writeln!(told, "{times} x {dimension} {name}: {bytes} B of {ranks}").unwrap();
    }
    let copied = plan.tasks.iter().map(|task| match task.work {
        Work::Copy { time, .. } => time.as_us(),
        Work::Slice { times, .. } => plan.slices[times as usize].out.as_us(),
        _ => 0.0,
    });
    writeln!(
        told,
        "copies take {:.3} us, one after the other; {} queue pairs",
        copied.sum::<f64>(),
        plan.qps.len()
    )
    .unwrap();
    let mut computes: BTreeMap<(&str, u32), Time> = BTreeMap::new();
    for task in plan.tasks.iter().filter(|task| task.role == Role::Compute) {
        if let Work::On { time, .. } = task.work {
            let name = plan.operations.get(task.operation as usize).map_or("", |operation| operation.name);
            let sum = computes.entry((name, task.rank)).or_default();
            *sum += time;
        }
    }
    // Ranks that compute alike share a line.
    let mut alike: BTreeMap<(&str, Time), Vec<u32>> = BTreeMap::new();
    computes.into_iter().for_each(|((name, rank), time)| alike.entry((name, time)).or_default().push(rank));
    for ((name, time), ranks) in alike {
        writeln!(told, "{name}: {:.3} us on ranks {ranks:?}", time.as_us()).unwrap();
    }
    let sent: u64 = plan.messages.iter().map(|message| message.bytes).sum();
    writeln!(
        told,
        "{} messages with {sent} B; {} tasks; {} triggers\n",
        plan.messages.len(),
        plan.tasks.len(),
        plan.triggers.len()
    )
    .unwrap();
    told
}

#[test]
fn collectives_and_steps_do_what_their_ledger_says() {
    let steps = STEPS.iter().map(|&step| ledger(step.0, &lay(step)));
    let collectives = COLLECTIVES.iter().map(|it| {
        let name = format!("{} servers: {}", it.0, it.1);
        ledger(&name, &check(&collective(it), &[]).unwrap_or_else(|e| panic!("{name}: {e:?}")))
    });
    let told: String = collectives.chain(steps).collect();
    if std::env::var("GOLDEN").is_ok_and(|how| how == "write") {
        std::fs::write(LEDGER, &told).unwrap();
    }
    let known = std::fs::read_to_string(LEDGER).unwrap_or_default();
    let differs = told.lines().zip(known.lines()).find(|(new, old)| new != old);
    assert!(told == known, "{differs:?} in\n{told}");
}

/// With a jitter, of zero here, messages and tasks are laid out and counted one by one.
#[test]
fn traffic_is_counted_as_if_every_message_and_task_were_laid_out() {
    let costs = COLLECTIVES.iter().map(|it| {
        let cost = "cost = \"h100\"";
        let keys = match it.1.contains("tuning = {") {
            true => it.1.replace("tuning = {", &format!("tuning = {{ {cost},")),
            false => format!("{}, tuning = {{ {cost} }}", it.1),
        };
        collective(&(it.0, &keys))
    });
    let collectives = COLLECTIVES.iter().map(collective).chain(costs);
    // Two collectives of the same ranks by other NICs, and a step beside another one.
    let sum = "collective = { kind = \"all-reduce\", bytes = \"1MB\", algorithm = \"ring\"";
    let graph = format!(
        "[server]\ngpus = 2\nnvlink = {{ rate = \"800Gbps\", delay = \"1us\" }}\n[topology.rails]\nservers = 4\nspines = 1\n\
         [[workload]]\ngraph = [{{ name = \"a\", {sum} }} }}, {{ name = \"b\", {sum}, tuning = {{ nic = \"own\" }} }} }}]\n"
    );
    let [first, second] = [0, 1].map(|step| training(STEPS[step]).text);
    let second = second.split_once("[[workload]]").map_or("", |(_, job)| job);
    // So many messages that servers stand for others behind the same switches.
    let many = "[server]\ngpus = 8\nnvlink = { rate = \"800Gbps\", delay = \"1us\" }\n[topology.rails]\nservers = 14\n\
                servers-per-segment = 7\nspines = 1\n[[workload]]\ncollective = { kind = \"all-to-all\", bytes = \"1MB\" }\n";
    let others = [graph, format!("{first}[[workload]]{second}"), many.to_owned()]
        .map(|text| Source::new("other.toml", text));
    for source in STEPS.iter().map(|&step| training(step)).chain(collectives).chain(others) {
        let survey = |sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
            Survey::new(&source, &sets).unwrap_or_else(|e| panic!("{e:?}"))
        };
        let (counted, whole) = (survey(&[]), survey(&["workload.0.jitter=0ns"]));
        let fresh = ["workload.0.qp=per-message", "workload.0.jitter=0ns"];
        assert_eq!(survey(&fresh[..1]).queue_pairs(), survey(&fresh).queue_pairs(), "{}", source.text);
        assert_eq!(format!("{:#?}", counted.traffic), format!("{:#?}", whole.traffic), "{}", source.text);
        assert_eq!(counted.queue_pairs(), whole.queue_pairs());
        let plan = check(&source, &[]).unwrap().plan;
        assert_eq!(plan.messages.len() as u64, counted.traffic.messages);
        assert_eq!(
            (plan.tasks.len() as u64, plan.qps.len() as u64),
            (counted.traffic.tasks, counted.queue_pairs())
        );
    }
}

/// A replica has 15 sends forwards and 15 backwards for each of its 32 micro-batches, by 8 ranks. A ring of n ranks has n - 1 steps.
#[test]
fn a_step_of_sixteen_thousand_gpus_is_counted_without_its_messages() {
    for (servers, replicas) in [(256, 16), (2048, 128)] {
        let text = format!(
            "[server]\ngpus = 8\nnvlink = {{ rate = \"2966Gbps\", delay = \"1us\" }}\n\
             [topology.rails]\nservers = {servers}\nservers-per-segment = 64\nspines = 16\n\
             [[workload]]\n[workload.training]\nmodel = \"llama-3.1-405b\"\nparallel = {{ tp = 8, pp = 16 }}\n\
             batch = {{ global = {}, micro = 1, sequence = 8192 }}\ncompute = {{ flops = \"400TFLOPS\" }}\n",
            32 * replicas
        );
        let source = Source::new("s.toml", text);
        if replicas == 128 {
            let laid_out = Survey::new(&source, &["workload.0.jitter=0ns".to_owned()]).unwrap_err();
            assert!(laid_out.text.starts_with("expected at most 67108864 messages"), "{laid_out:?}");
        }
        let survey = Survey::new(&source, &[]).unwrap();
        let rows = &survey.traffic.operations;
        let rings: u64 = rows.iter().filter(|row| row.dimension == "dp").map(|row| row.count).sum();
        assert_eq!(survey.traffic.messages, rings * replicas * (replicas - 1) + replicas * 8 * 32 * 30);
        assert_eq!(rows.iter().map(|row| row.members).max(), Some(8 * servers));
        let told = survey.findings().iter().map(|warning| warning.text.as_str());
        let refused = told.filter(|text| text.starts_with("no whole run is possible: ")).count();
        assert!(replicas < 128 || refused == 1, "{:?}", survey.findings());
    }
}

/// Without communication, p stages that take f forward and b backward end m micro-batches after (m + p - 1)(f + b).
#[test]
fn a_pipeline_has_the_chain_of_its_closed_form() {
    let of = |keys: &str| chain(&lay(("a pipeline", keys)).plan);
    let times = "compute = { forward = \"1us\", backward = \"2us\" }";
    for (pp, dp) in [(2, 4), (4, 2)] {
        let micros = 16 / dp;
        let step = of(&format!("parallel = {{ pp = {pp}, dp = {dp} }}\n{times}"));
        assert_eq!(step, Time::from_us((micros + pp - 1) * 3), "{pp} stages");
    }
}
