//! Workloads of SimAI and AICB: a header with the sizes of groups, and a record for each layer of a training step.

use super::words::{Word, lines};
use collective::Kind;
use files::printable;
use finding::{Finding, suggestion};
use std::collections::BTreeMap;

/// A workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Parallelism of the workload.
    pub shape: Shape,
    /// Sizes of groups.
    pub header: Header,
    /// The layers, in the order of the file.
    pub layers: Vec<Layer>,
    /// Communication that is left out, and the reason, with numbers of records.
    pub left_out: BTreeMap<String, u64>,
}

/// Which ranks a collective without a suffix joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Tensor parallelism forward and backward, data parallelism for the gradients of weights.
    Hybrid,
    /// All ranks are data parallel; only gradients of weights are exchanged.
    Data,
    /// All ranks are tensor parallel.
    Model,
    /// Gradients of weights alone, over all ranks, one record after the other.
    Micro,
}

/// Names of the types of workloads.
const TYPES: [(&str, Option<Shape>); 10] = [
    ("HYBRID_TRANSFORMER", Some(Shape::Hybrid)),
    ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", Some(Shape::Hybrid)),
    ("HYBRID_DATA_MODEL", Some(Shape::Hybrid)),
    ("HYBRID_MODEL_DATA", Some(Shape::Hybrid)),
    ("DATA", Some(Shape::Data)),
    ("MODEL", Some(Shape::Model)),
    ("MICRO", Some(Shape::Micro)),
    ("HYBRID_DLRM", None),
    ("HYBRID_DLRM_ENHANCED", None),
    ("HYBRID_CUSTOMIZED", None),
];

/// Sizes of groups; 1 where the file has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Tensor parallelism.
    pub tp: u64,
    /// Expert parallelism.
    pub ep: u64,
    /// Stages of the pipeline.
    pub pp: u64,
    /// Virtual stages of a rank.
    pub vpp: u64,
    /// Micro-batches.
    pub ga: u64,
    /// Number of GPUs; `None` for all of the fabric.
    pub gpus: Option<u64>,
    /// Bytes of a message between stages of the pipeline.
    pub pp_comm: u64,
    /// True if the file has checkpoints.
    pub checkpoints: bool,
}

/// A layer: computation and communication of its three phases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Name in the file.
    pub name: String,
    /// The forward pass.
    pub forward: Phase,
    /// Gradients of the input.
    pub input: Phase,
    /// Gradients of the weights.
    pub weight: Phase,
    /// Update of the weights, ns.
    pub update: u64,
}

/// Computation, and the communication after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Computation, ns.
    pub ns: u64,
    /// The communication; `None` for none.
    pub comm: Option<Comm>,
}

/// A collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comm {
    /// What the collective does.
    pub kind: Kind,
    /// Which ranks it joins.
    pub group: Group,
    /// Its size.
    pub bytes: u64,
}

/// Kinds of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Ranks that share layers: tensor parallelism.
    Tp,
    /// Ranks with equal parts of the model: data parallelism.
    Dp,
    /// Ranks that share experts: expert parallelism.
    Ep,
    /// Ranks with equal experts.
    DpEp,
}

/// True if a text looks like a workload: its first word is the type of one.
pub fn is_workload(text: &str) -> bool {
    let first = text.split_whitespace().next();
    TYPES.iter().any(|(name, _)| first == Some(name))
}

/// Words of a record.
const RECORD: usize = 12;

/// Reads a workload; messages call it `file`.
pub fn read(file: &str, text: &str) -> Result<Step, Finding> {
    let mut lines = lines(file, text);
    let end = Word::end(file, text);
    let Some(mut first) = lines.next() else {
        return Err(end.error("the file is empty; expected a workload of SimAI"));
    };
    let name = first.take();
    let shape = match TYPES.iter().find(|(known, _)| *known == name.word) {
        Some((_, Some(shape))) => *shape,
        Some((known, None)) => {
            return Err(name.error(format!("ropewalk cannot run workloads of the type {known}")));
        }
        None => {
            let names: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
            let error = name.error(format!("expected the type of a workload, found `{}`", name.word));
            return Err(error.with_help(suggestion(name.word, &names)));
        }
    };
    let header = header(&mut first)?;
    let mut words = lines.flat_map(|line| line.words);
    let count = words.next().unwrap_or(end);
    let said = count.number("the number of layers")?;
    let mut step = Step { shape, header, layers: Vec::new(), left_out: BTreeMap::new() };
    let mut words = words.peekable();
    while words.peek().is_some() {
        let record: Vec<Word<'_>> = words.by_ref().take(RECORD).collect();
        if record.len() < RECORD {
            let text = format!("the last record has {} of its {RECORD} words", record.len());
            return Err(record[0].error(text));
        }
        let layer = layer(&record, &mut step)?;
        step.layers.push(layer);
    }
    let found = step.layers.len() as u64;
    if found != said || found == 0 {
        return Err(count.error(format!("the file states {said} layers, but has {found}")));
    }
    Ok(step)
}

/// Keys of the header.
const KEYS: [&str; 9] = [
    "model_parallel_NPU_group",
    "ep",
    "pp",
    "vpp",
    "ga",
    "all_gpus",
    "checkpoints",
    "checkpoint_initiates",
    "pp_comm",
];

fn header(line: &mut super::words::Line<'_>) -> Result<Header, Finding> {
    let mut header =
        Header { tp: 1, ep: 1, pp: 1, vpp: 1, ga: 1, gpus: None, pp_comm: 0, checkpoints: false };
    let mut seen: Vec<&str> = Vec::new();
    while line.peek().is_some() {
        let word = line.take();
        let key = word.word.trim_end_matches(':');
        if !KEYS.contains(&key) {
            let error = word.error(format!("expected a key of the header, found `{}`", word.word));
            return Err(error.with_help(suggestion(key, &KEYS)));
        }
        if seen.contains(&key) {
            return Err(word.error(format!("`{key}` stands twice")));
        }
        seen.push(key);
        let value = line.take();
        let number = value.number(&format!("the number after `{key}`"))?;
        let size = || match number {
            0 => Err(value.error(format!("expected `{key}` above 0, found 0"))),
            size => Ok(size),
        };
        match key {
            "model_parallel_NPU_group" => header.tp = size()?,
            "ep" => header.ep = size()?,
            "pp" => header.pp = size()?,
            "vpp" => header.vpp = size()?,
            "ga" => header.ga = size()?,
            "all_gpus" => header.gpus = Some(size()?),
            "pp_comm" => header.pp_comm = number,
            _ => {
                header.checkpoints |= number > 0;
                for _ in 0..number {
                    line.take().number("the number of a layer")?;
                }
            }
        }
    }
    Ok(header)
}

fn layer(words: &[Word<'_>], step: &mut Step) -> Result<Layer, Finding> {
    let mut phase = |at: usize, usual: Group| {
        let ns = words[at].number("a time in ns")?;
        let bytes = words[at + 2].number("a number of bytes")?;
        Ok::<Phase, Finding>(Phase { ns, comm: comm(words[at + 1], bytes, usual, &mut step.left_out)? })
    };
    let (forward, input, weight) = (phase(2, Group::Tp)?, phase(5, Group::Tp)?, phase(8, Group::Dp)?);
    let update = words[11].number("a time in ns")?;
    Ok(Layer { name: printable::name(words[0].word), forward, input, weight, update })
}

/// Names of collectives. SimAI takes a name by its first letters.
const COLLECTIVES: [(&str, Kind); 4] = [
    ("ALLREDUCE", Kind::AllReduce),
    ("ALLGATHER", Kind::AllGather),
    ("REDUCESCATTER", Kind::ReduceScatter),
    ("ALLTOALL", Kind::AllToAll),
];

fn comm(
    word: Word<'_>,
    bytes: u64,
    usual: Group,
    left_out: &mut BTreeMap<String, u64>,
) -> Result<Option<Comm>, Finding> {
    if word.word == "NONE" || bytes == 0 {
        return Ok(None);
    }
    let mut leave_out = |why: &str| {
        *left_out.entry(format!("`{}` {why}", word.word)).or_default() += 1;
        Ok(None)
    };
    if word.word == "BROADCAST" {
        return leave_out("sends nothing in SimAI");
    }
    let Some((name, kind)) = COLLECTIVES.iter().find(|(name, _)| word.word.starts_with(name)) else {
        let names: Vec<&str> = COLLECTIVES.iter().map(|(name, _)| *name).chain(["NONE"]).collect();
        let error = word.error(format!("expected a collective, found `{}`", word.word));
        return Err(error.with_help(suggestion(word.word, &names)));
    };
    let group = match &word.word[name.len()..] {
        "" => usual,
        "_EP" => Group::Ep,
        "_DP_EP" => Group::DpEp,
        _ => return leave_out("has a suffix that names no group, so SimAI sends nothing"),
    };
    Ok(Some(Comm { kind: *kind, group, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use files::damage::Draws;

    fn step(text: &str) -> Result<Step, Finding> {
        read("s.txt", text)
    }

    const ALL: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 4 \
                       checkpoints: 2 0 1 checkpoint_initiates: 0 pp_comm 4096\n3\n\
                       attn -1 1000 ALLREDUCE 4096 900 ALLTOALL_EP 4096 800 NONE 0 100\n\
                       mlp\t-1 1 BROADCAST 16384 1 ALLREDUCEALLTOALL 5\n 1 ALLGATHER_DP_EP 19327352832 100\n\
                       grads -1 1 NONE 0 1 NONE 0 1 REDUCESCATTER 8192 100\n";

    #[test]
    fn a_workload_is_read_word_by_word() {
        let all = step(ALL).unwrap();
        let Header { tp, ep, gpus, pp_comm, checkpoints, .. } = all.header;
        assert_eq!((tp, ep, gpus, pp_comm, checkpoints), (2, 2, Some(4), 4096, true));
        let comm = |kind, group, bytes| Some(Comm { kind, group, bytes });
        assert_eq!(all.layers.len(), 3);
        assert_eq!(all.layers[0].forward, Phase { ns: 1000, comm: comm(Kind::AllReduce, Group::Tp, 4096) });
        assert_eq!(all.layers[0].input, Phase { ns: 900, comm: comm(Kind::AllToAll, Group::Ep, 4096) });
        assert_eq!((all.layers[0].weight.ns, all.layers[0].update), (800, 100));
        assert_eq!(all.layers[1].weight.comm, comm(Kind::AllGather, Group::DpEp, 19_327_352_832));
        assert_eq!(all.layers[2].weight.comm, comm(Kind::ReduceScatter, Group::Dp, 8192));
        let left_out: Vec<&str> = all.left_out.keys().map(String::as_str).collect();
        assert!(left_out[0].starts_with("`ALLREDUCEALLTOALL` has a suffix"), "{left_out:?}");
        assert!(left_out[1].starts_with("`BROADCAST` sends nothing"), "{left_out:?}");
    }

    #[test]
    fn wrong_workloads_are_refused_with_line_and_column() {
        for (wrong, message) in [
            ("", "s.txt:1:1: the file is empty; expected a workload of SimAI"),
            ("HYBRID_DLRM\n", "1:1: ropewalk cannot run workloads of the type HYBRID_DLRM"),
            ("MICRO ep\n", "1:9: expected the number after `ep`, found ``"),
            ("MICRO ep: 0\n", "1:11: expected `ep` above 0, found 0"),
            ("MICRO ep: 2 ep: 2\n", "1:13: `ep` stands twice"),
            ("MICRO tp: 2\n", "1:7: expected a key of the header, found `tp:`"),
            (
                "MICRO\n2\nx -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4096 1\n",
                "2:1: the file states 2 layers, but has 1",
            ),
            ("MICRO\n1\nx -1 1 NONE 0\n", "3:1: the last record has 5 of its 12 words"),
            (
                "MICRO\n1\nx -1 1 NONE 0 1 NONE 0 1 ALREDUCE 4096 1\n",
                "3:26: expected a collective, found `ALREDUCE`",
            ),
            ("MICRO\n1\nx -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 99999999999999999999 1\n", "which is too large"),
        ] {
            let error = step(wrong).unwrap_err().located();
            assert!(error.contains(message), "{wrong}: {error}");
        }
    }

    /// Words that damage files.
    const WORDS: [&str; 10] = [
        "MICRO",
        "ep:",
        "checkpoints: 99999999",
        "-1",
        "18446744073709551616",
        "ALLGATHER_EP",
        "NONE",
        "\n",
        "é",
        "0",
    ];

    /// Damages so many files; returns the kinds of errors.
    fn damage(files: u64) -> std::collections::BTreeSet<String> {
        let mut draws = Draws(3);
        let mut kinds = std::collections::BTreeSet::new();
        for number in 0..files {
            let mut text = ALL.to_owned();
            for _ in 0..=draws.below(3) {
                text = draws.change(&text, &WORDS);
            }
            match step(&text) {
                Ok(step) => assert!(step.layers.len() <= text.split_whitespace().count(), "file {number}"),
                Err(error) => {
                    assert!(error.place.is_some(), "file {number}: {error:?}");
                    kinds.insert(error.text.chars().filter(|c| !c.is_ascii_digit()).take(30).collect());
                }
            }
        }
        kinds
    }

    #[test]
    fn damaged_files_give_a_workload_or_an_error_with_its_place() {
        let kinds = damage(20_000);
        assert!(kinds.len() > 20, "{kinds:#?}");
    }

    /// Run it by `cargo test --release -p scenario --lib -- --ignored a_million_damaged_workloads`.
    #[test]
    #[ignore = "takes a minute"]
    fn a_million_damaged_workloads() {
        damage(1_000_000);
    }
}
