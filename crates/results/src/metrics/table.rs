//! The table of metrics as a table: for Python and anybody who reads columns.

use super::{Better, Metric};
use crate::table::{Column, Table};

/// A row for each metric of a run as a whole.
pub fn table() -> Table {
    let texts = |of: fn(&Metric) -> String| Metric::listed().map(of);
    let better = |metric: &Metric| match metric.better {
        Better::More => "more".to_owned(),
        Better::Less => "less".to_owned(),
        Better::Neither => String::new(),
    };
    Table::new(
        vec![
            Column::text(
                "name",
                "keys in summary.json with dots; * stands for a name",
                texts(|m| m.key.clone()),
            ),
            Column::text("label", "name in tables and on pages", texts(|m| m.label.clone())),
            Column::text("unit", "unit; - if there is none", texts(|m| m.unit.name().to_owned())),
            Column::text("meaning", "meaning in a sentence", texts(|m| m.meaning.clone())),
            Column::text(
                "share_of",
                "the metric of which it is a share; empty if a share would mean nothing",
                texts(|m| m.share_of.unwrap_or_default().to_owned()),
            ),
            Column::text("better", "more, less, or empty if neither is better", texts(better)),
            Column::flag("varies", "true if it differs from run to run", Metric::listed().map(|m| m.varies)),
        ],
        1,
    )
}
