//! Process groups: the ranks of collectives, by name.

use crate::unread;
use files::file::{self, Reading};
use finding::{Finding, code};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Ranks by the name of their group. An empty list stands for all ranks.
pub type Groups = BTreeMap<String, Vec<u32>>;

/// Reads a file of groups: JSON such as `{"1": [0, 1], "2": [2, 3]}`. Also returns its digest.
pub fn groups_file(path: &Path) -> Result<(Groups, u64), Finding> {
    let name = path.display().to_string();
    let text = file::read(path, Reading::import(10)).map_err(|e| code::FILE.at("groups", e.about(&name)))?;
    let groups: Groups = serde_json::from_str(&text).map_err(|e| {
        if let Some(unread) = unread::of(text.as_bytes()) {
            return unread.key_error("groups", &name);
        }
        let text = format!("{name}:{}:{}: {e}", e.line(), e.column());
        code::CONTENT.at("groups", text).with_help("groups are JSON such as {\"1\": [0, 1], \"2\": [2, 3]}")
    })?;
    if let Some((group, _)) = groups.iter().find(|(_, ranks)| ranks.is_empty()) {
        return Err(code::CONTENT.at("groups", format!("{name}: the group \"{group}\" has no ranks")));
    }
    Ok((groups, xxhash_rust::xxh3::xxh3_64(text.as_bytes())))
}

/// The groups of a metadata node, as PyTorch records them: JSON between two more characters at each end.
pub(super) fn of_metadata(values: &str) -> Option<Groups> {
    #[derive(Deserialize)]
    struct Group {
        pg_name: String,
        ranks: Vec<u32>,
    }
    let json = values.get(2..values.len().checked_sub(2)?)?;
    let groups: Vec<Group> = serde_json::from_str(json).ok()?;
    Some(groups.into_iter().map(|group| (group.pg_name, group.ranks)).collect())
}
