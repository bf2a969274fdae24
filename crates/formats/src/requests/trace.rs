//! A trace as it was read.

/// Tokens of a block that has an id in Mooncake's traces (Qin et al., FAST'25, section 4.1).
pub const BLOCK: u64 = 512;

/// Most tokens of one request. Our choice: far more than any published context.
pub(super) const MOST_TOKENS: u64 = 100_000_000;

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Line of the file, from 1.
    pub line: usize,
    /// Time since the first request of the file, ps.
    pub at: u64,
    /// Tokens of the prompt, at least 1.
    pub input: u64,
    /// Tokens of the answer, at least 1.
    pub output: u64,
    /// Ids of the blocks of [`BLOCK`] tokens of the prompt; equal ids at the start of two prompts are a common prefix.
    pub blocks: Vec<u64>,
}

/// A trace, in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Requests.
    pub requests: Vec<Request>,
    /// Requests without tokens in or out, which failed and are left out.
    pub failed: u64,
}

impl Trace {
    /// True if prompts have ids of blocks.
    pub fn has_blocks(&self) -> bool {
        self.requests.iter().any(|request| !request.blocks.is_empty())
    }

    /// Number of different times.
    pub fn times(&self) -> usize {
        self.requests.chunk_by(|a, b| a.at == b.at).count()
    }

    /// The usual step from one time to the next, ps, if most requests share their time with another one.
    pub fn step_of_shared_times(&self) -> Option<u64> {
        let of_one_time = self.requests.chunk_by(|a, b| a.at == b.at).map(<[Request]>::len);
        if 2 * of_one_time.filter(|requests| *requests > 1).sum::<usize>() <= self.requests.len() {
            return None;
        }
        let firsts: Vec<u64> = self.requests.chunk_by(|a, b| a.at == b.at).map(|chunk| chunk[0].at).collect();
        let mut steps: Vec<u64> = firsts.windows(2).map(|two| two[1] - two[0]).collect();
        steps.sort_unstable();
        // The most frequent step, the smallest of equals.
        let usual = steps.chunk_by(|a, b| a == b).rev().max_by_key(|chunk| chunk.len())?;
        usual.first().copied()
    }

    /// Adds a request, or counts it among those that failed.
    pub(super) fn add(&mut self, request: Request) {
        match request.input == 0 || request.output == 0 {
            true => self.failed += 1,
            false => self.requests.push(request),
        }
    }
}
