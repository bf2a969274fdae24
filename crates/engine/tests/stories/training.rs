//! Claim: training steps take the time of their pipeline, and ranks send the bytes of their parallelism.

use crate::lab::{agreed_on, lay};
use model::Time;
use model::plan::Role;

/// A model of one layer per stage on the GPUs of one server, whose activations are so small that a hop takes NVLink's delay.
fn pipeline(stages: u32, micros: u32, hop_us: u32, schedule: &str) -> String {
    format!(
        "[server]\ngpus = {stages}\nnvlink = {{ delay = \"{hop_us}us\" }}\n[topology.rails]\nservers = 1\nspines = 0\n\
         [[workload]]\n[workload.training]\n\
         model = {{ hidden = 8, layers = {}, heads = 1, ffn = 1, gated = true, vocab = 1 }}\n\
         parallel = {{ pp = {stages} }}\nbatch = {{ global = {micros}, sequence = 1 }}\nschedule = {schedule}\n\
         compute = {{ forward = \"10us\", backward = \"20us\" }}\n",
        if schedule.contains("interleaved") { 2 * stages } else { stages }
    )
}

/// Time of a step, us, without the picoseconds of the activations.
fn step_us(text: &str) -> u64 {
    let checked = lay(text);
    let run = agreed_on(&checked, text);
    let end = run.tasks.iter().map(|record| record.end).max().unwrap();
    let whole = end.ps() / 1_000_000;
    assert!(end < Time::from_us(whole) + Time::from_ns(10), "{end}");
    whole
}

#[test]
fn one_forward_one_backward_takes_the_known_times() {
    // Stages, micro-batches, delay of a hop in us, and the time of the step; a forward takes 10 us, a backward 20 us.
    for (stages, micros, hop, expected) in [
        (4, 8, 0, 330),
        (4, 8, 1, 346),
        (4, 8, 4, 394),
        (8, 16, 1, 730),
        (2, 4, 1, 154),
        (4, 4, 1, 220),
        (4, 2, 1, 156),
        (1, 4, 0, 120),
    ] {
        let text = pipeline(stages, micros, hop, "\"1f1b\"");
        assert_eq!(step_us(&text), expected, "{stages} stages, {micros} micro-batches, {hop} us");
    }
}

#[test]
fn without_delays_all_schedules_have_the_bubble_of_their_formula() {
    // (m + P - 1) (F + B), and (P - 1) / v for v parts on a stage.
    assert_eq!(step_us(&pipeline(4, 8, 0, "\"gpipe\"")), (8 + 3) * 30);
    assert_eq!(step_us(&pipeline(4, 8, 0, "{ interleaved = 2 }")), 8 * 30 + 3 * 30 / 2);
}

#[test]
fn a_step_of_llama_70b_sends_the_bytes_of_its_collectives() {
    let text = "[server]\n[topology.rails]\nservers = 8\nspines = 8\n[[workload]]\n[workload.training]\n\
        model = \"llama-3-70b\"\nparallel = { tp = 8, pp = 4, dp = 2 }\nbatch = { global = 64, sequence = 8192 }\n\
        compute = { flops = \"400TFLOPS\" }\n";
    let plan = lay(text).plan;
    let operations = |name: &str, dimension: &str| {
        plan.operations.iter().filter(|o| o.name == name && o.dimension == dimension).collect::<Vec<_>>()
    };
    let groups = 8;
    // 4 all-gathers and 4 reduce-scatters of each of 20 layers and 32 micro-batches in each of 32 groups.
    let gathers = operations("all-gather", "tp");
    assert!(gathers.iter().all(|o| o.bytes == 134_217_728) && gathers.len() == 4 * 20 * 32 * groups);
    // Gradients and parameters of a rank of a middle stage.
    let of_stage = |name: &str| operations(name, "dp").iter().map(|o| o.bytes).sum::<u64>();
    let parameters: u64 = 2 * 2_139_422_720 + 2_270_756_864 + 2_270_756_864 + 8192;
    assert_eq!(of_stage("reduce-scatter"), 8 * 4 * parameters);
    assert_eq!(of_stage("all-gather"), 8 * 2 * parameters);
    let sends = operations("send", "pp");
    assert!(sends.iter().all(|o| o.bytes == 16_777_216) && sends.len() == 32 * 2 * 3);
    let compute: u64 = plan
        .tasks
        .iter()
        .filter(|task| task.role == Role::Compute && task.rank == 16)
        .map(|task| match task.work {
            model::plan::Work::On { time, .. } => time.ps(),
            _ => 0,
        })
        .sum();
    // 37.8 tera-operations forward and twice as many backward, for each of 32 micro-batches at 400 TFLOP/s.
    let expected = 32.0 * 3.0 * 37_795_712_204_800.0 / 400e12;
    assert!((compute as f64 / 1e12 - expected).abs() < 1e-6, "{compute} ps, {expected} s");
}

/// Two servers of four GPUs, a model of four layers and `more` settings.
fn small(more: &str) -> String {
    format!(
        "[server]\ngpus = 4\n[topology.rails]\nservers = 2\nspines = 2\n[[workload]]\n[workload.training]\n\
         model = {{ hidden = 512, layers = 4, heads = 8, ffn = 2048, gated = true, vocab = 1000 }}\n\
         batch = {{ global = 16, sequence = 256 }}\ncompute = {{ flops = \"400TFLOPS\" }}\n{more}\n"
    )
}

#[test]
fn with_zero_3_every_layer_gathers_its_parameters_twice_per_micro_batch_while_the_layer_before_computes() {
    let text = small("optimizer = \"zero-3\"\nparallel = { tp = 2 }");
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    let plan = &checked.plan;
    let of = |name: &str| {
        plan.operations.iter().filter(|o| o.name == name && o.dimension == "dp").collect::<Vec<_>>()
    };
    // 4 layers, 4 micro-batches of each of 4 replicas, forward and backward, in 2 groups; then embedding and head.
    assert_eq!(of("all-gather").len(), 4 * 4 * 2 * 2 + 2);
    assert_eq!(of("reduce-scatter").len(), 4 * 4 * 2 + 2);
    // Most gathers end while their rank computes, so the step is shorter than computation and gathers one after another.
    let end = run.tasks.iter().map(|record| record.end).max().unwrap();
    let alone = |text: &str| {
        let checked = lay(text);
        let run = agreed_on(&checked, text);
        run.tasks.iter().map(|record| record.end).max().unwrap()
    };
    let distributed = alone(&small("parallel = { tp = 2 }"));
    assert!(end > distributed, "{end}, {distributed}");
}

#[test]
fn tokens_go_to_popular_experts_and_come_back() {
    let moe = "model = { hidden = 512, layers = 4, heads = 8, ffn = 2048, gated = true, vocab = 1000, moe = { experts = 16, top-k = 2 } }";
    let text = |routing: &str| {
        small(&format!("parallel = {{ ep = 8 }}\nrouting = {{ {routing} }}")).replace(
            "model = { hidden = 512, layers = 4, heads = 8, ffn = 2048, gated = true, vocab = 1000 }",
            moe,
        )
    };
    let received = |routing: &str| {
        let text = text(routing);
        let checked = lay(&text);
        agreed_on(&checked, &text);
        let plan = checked.plan;
        let mut bytes = vec![0u64; plan.fabric.hosts()];
        for message in &plan.messages {
            if plan.operations.get(message.operation as usize).is_some_and(|o| o.dimension == "ep") {
                bytes[plan.qps[message.qp.index()].to.index()] += message.bytes;
            }
        }
        bytes
    };
    let even = received("skew = 0.0");
    assert!(even.iter().all(|&bytes| bytes == even[0] && bytes > 0), "{even:?}");
    let skewed = received("skew = 1.5, seed-by = \"never\"");
    let (least, most) = (skewed.iter().min().unwrap(), skewed.iter().max().unwrap());
    assert!(most > &(2 * least), "{skewed:?}");
    let once = received("once-per-server = true");
    assert!(once.iter().sum::<u64>() < even.iter().sum::<u64>(), "{once:?}, {even:?}");
}

#[test]
fn collectives_of_tensor_parallelism_hide_behind_the_next_computation() {
    let text = |overlap: &str| {
        format!(
            "[server]\ngpus = 2\nnvlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[topology.rails]\nservers = 1\nspines = 0\n\
             [[workload]]\n[workload.training]\n\
             model = {{ hidden = 256, layers = 4, heads = 8, ffn = 512, gated = true, vocab = 100 }}\n\
             parallel = {{ tp = 2 }}\nbatch = {{ global = 2, sequence = 64 }}\noverlap = \"{overlap}\"\n\
             compute = {{ forward = \"80us\", backward = \"160us\" }}\n"
        )
    };
    let (alone, hidden) = (step_of(&text("none")), step_of(&text("tp")));
    // Two micro-batches of 240 us of computation.
    assert!(hidden < alone && hidden > Time::from_us(480), "{alone} alone, {hidden} hidden");
    assert!(alone.since(hidden) > hidden.since(Time::from_us(480)), "most of it hides: {alone}, {hidden}");
}

/// Time of the last task.
fn step_of(text: &str) -> Time {
    let checked = lay(text);
    let run = agreed_on(&checked, text);
    run.tasks.iter().map(|record| record.end).max().unwrap()
}

#[test]
fn layers_with_times_of_their_own_make_a_step_as_long_as_their_sum() {
    // Four layers on one GPU: 2 micro-batches, forward and backward, and no communication.
    let text = |compute: &str| {
        format!(
            "[server]\ngpus = 1\n[topology.rails]\nservers = 1\nspines = 0\n[[workload]]\n[workload.training]\n\
             model = {{ hidden = 8, layers = 4, heads = 1, ffn = 1, vocab = 1 }}\nbatch = {{ global = 2, sequence = 1 }}\n\
             compute = {{ per-layer = [{compute}] }}\n"
        )
    };
    let layer = |us: u32| format!("{{ forward = \"{us}us\", backward = \"{}us\" }}", 2 * us);
    let times: Vec<String> = [2, 4, 6, 8].map(layer).into();
    assert_eq!(step_us(&text(&times.join(", "))), 2 * 3 * (2 + 4 + 6 + 8));
    assert_eq!(step_us(&text(&layer(5))), 2 * 3 * 4 * 5);
}

#[test]
fn if_layers_cannot_be_divided_evenly_the_first_stages_have_one_more() {
    // Five layers of 10 us on two stages: three and two. The first stage is busy all the time: 3 layers x 4 micro-batches x 30 us;
    // the second stage adds its forward and backward pass of the last micro-batch, 2 layers x 30 us.
    let text = pipeline(2, 4, 0, "\"gpipe\"").replace("layers = 2", "layers = 5").replace(
        "forward = \"10us\", backward = \"20us\"",
        "per-layer = [{ forward = \"10us\", backward = \"20us\" }]",
    );
    assert_eq!(step_us(&text), 3 * 4 * 30 + 2 * 30);
    assert!(lay(&text).warnings().iter().any(|warning| warning.contains("have 3 or 2 layers")));
}

#[test]
fn deepseek_v3_sends_tokens_to_experts_from_its_fourth_layer_on() {
    let text = "[topology.rails]\npreset = \"spectrum-x\"\nservers = 1\n[[workload]]\n[workload.training]\n\
        model = \"deepseek-v3\"\nparallel = { ep = 8 }\nbatch = { global = 8, sequence = 512 }\n\
        compute = { flops = \"400TFLOPS\" }\ncollectives = { ep = { algorithm = \"direct\" } }\nscale = 0.1\n";
    let plan = lay(text).plan;
    let routed: Vec<_> =
        plan.operations.iter().filter(|o| o.dimension == "ep" && o.name == "all-to-all").collect();
    // A tenth of the model is 6 layers, the first without experts. Tokens go and come back, forward and backward.
    assert_eq!(routed.len(), 5 * 4);
    assert!(routed.iter().all(|o| o.bytes == 512 * 8 * 7168 * 2));
}

#[test]
fn context_parallelism_has_an_algorithm_of_its_own() {
    let operations = |more: &str| {
        let text = small(&format!("parallel = {{ cp = 8 }}\n{more}"));
        let plan = lay(&text).plan;
        let of = |dimension: &str| {
            let messages =
                plan.messages.iter().filter(|m| plan.operations[m.operation as usize].dimension == dimension);
            messages.count()
        };
        (of("cp"), of("dp"))
    };
    let (rings, gradients) = operations("");
    let (direct, same) = operations("collectives = { cp = { algorithm = \"direct\" } }");
    assert_ne!(rings, direct);
    assert!(rings > 0 && direct > 0 && gradients > 0);
    assert_eq!(gradients, same);
}
