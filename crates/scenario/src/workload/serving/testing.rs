//! A small serving scenario for tests.

use crate::{Source, check};

/// Two servers of two GPUs; requests of 1,000 + 4 tokens.
pub(crate) const SMALL: &str = "[topology.rails]\nservers = 2\nspines = 1\nrate = \"100Gbps\"\n[server]\ngpus = 2\n\
    nvlink = \"off\"\n[class.kv]\n[[workload]]\nclass = \"kv\"\n[workload.serving]\nmodel = \"qwen3-8b\"\n\
    arrivals = { rate = 100.0, count = 3, input = 1000, output = 4 }\n\
    prefill = { servers = \"0\", compute = { flops = \"400TFLOPS\" } }\n\
    decode = { servers = \"1\", memory = \"10GB\", compute = { hbm = \"3.35TB/s\" } }\n";

/// The first error or warning of a scenario; nothing if it has none.
pub(crate) fn told(text: &str) -> String {
    match check(&Source::new("s.toml", text), &[]) {
        Ok(checked) => checked.warnings().join("; "),
        Err(error) => error.text,
    }
}
