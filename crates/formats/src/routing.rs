//! Measured routing of tokens to experts: a CSV file with a row for each layer, source rank and expert, in any order.

use crate::requests::rows::{columns, rows};
use finding::Finding;
use std::collections::BTreeMap;

/// Names of the columns.
const NAMES: [&str; 4] = ["layer", "source_rank", "expert", "tokens"];

/// Tokens of a layer: by source rank and expert, with the line that has them.
pub type Layer = BTreeMap<(u32, u32), (u64, usize)>;

/// Reads the layers of a file, which messages call `file`. Columns may have any order; others are left out.
///
/// # Errors
/// The first row that is damaged, or that gives tokens for a second time.
pub fn read(file: &str, text: &str) -> Result<BTreeMap<u32, Layer>, Finding> {
    let mut layers: BTreeMap<u32, Layer> = BTreeMap::new();
    let mut all = rows(file, text);
    let [layer, rank, expert, tokens] = columns(file, text, all.next(), NAMES)?;
    for row in all {
        let number = |column: usize, name: &str| {
            let word = row.field(column)?;
            let number = word.number(&format!("a number (`{name}`)"))?;
            u32::try_from(number)
                .map_err(|_| word.error(format!("expected at most {} (`{name}`), found {number}", u32::MAX)))
        };
        let key = (number(rank, NAMES[1])?, number(expert, NAMES[2])?);
        let counted = (row.tokens(tokens, NAMES[3])?, row.line);
        let layer = number(layer, NAMES[0])?;
        if let Some((_, line)) = layers.entry(layer).or_default().insert(key, counted) {
            let text =
                format!("layer {layer}, rank {} and expert {} stand in line {line}, too", key.0, key.1);
            return Err(row.field(expert)?.error(text));
        }
    }
    Ok(layers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "layer,source_rank,expert,tokens\n3,0,0,2\n3,0,5,1\r\n\n4,1,2,2\n";

    #[test]
    fn rows_of_a_layer_have_tokens_of_a_rank_for_an_expert() {
        let layers = read("r.csv", TWO).unwrap();
        assert_eq!(layers.keys().collect::<Vec<_>>(), [&3, &4]);
        assert_eq!(layers[&3], Layer::from([((0, 0), (2, 2)), ((0, 5), (1, 3))]));
        assert_eq!(layers[&4], Layer::from([((1, 2), (2, 5))]));
        assert_eq!(
            read("r.csv", "tokens,expert,note,source_rank,layer\n2,0,x,0,3\n").unwrap()[&3][&(0, 0)].0,
            2
        );
    }

    #[test]
    fn damaged_files_are_refused_with_line_and_column() {
        for (text, message) in [
            ("", "r.csv:1:1: expected a row of names, found an empty file"),
            ("layer,rank,expert,tokens\n", "r.csv:1:1: the first row has no column `source_rank`"),
            ("layer,source_rank,expert,tokens\n3,0,-1,2\n", "r.csv:2:5: expected a number (`expert`)"),
            (
                "layer,source_rank,expert,tokens\n3,0,1\n",
                "r.csv:2:5: expected 4 fields, as in the first row, found 3",
            ),
            (
                "layer,source_rank,expert,tokens\n3,0,1,2.5\n",
                "r.csv:2:7: expected a number of tokens (`tokens`)",
            ),
            (
                "layer,source_rank,expert,tokens\n9999999999,0,1,2\n",
                "r.csv:2:1: expected at most 4294967295 (`layer`)",
            ),
            (
                "layer,source_rank,expert,tokens\n3,0,1,2\n3,0,1,2\n",
                "r.csv:3:5: layer 3, rank 0 and expert 1 stand in line 2, too",
            ),
        ] {
            let told = read("r.csv", text).unwrap_err().located();
            assert!(told.contains(message), "{told}, expected {message}");
        }
    }
}
