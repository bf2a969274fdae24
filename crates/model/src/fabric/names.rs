//! Names of all nodes in one string, which saves an allocation per node.

/// Names by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    text: String,
    /// End of each name in `text`.
    ends: Vec<u32>,
}

impl Names {
    pub(super) fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len() as u32);
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, i: usize) -> &str {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.text[start..self.ends[i] as usize]
    }
}
