//! Columns of a result table by name.
//!
//! Another version of ropewalk may have written the table. A missing column, or one of another type, reads as empty cells.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use results::table::Table;

/// A table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a>(&'a RecordBatch);

impl<'a> Frame<'a> {
    /// The frame of a table.
    pub(super) fn new(table: &'a Table) -> Self {
        Frame(table.batch())
    }

    /// Number of rows.
    pub(super) fn rows(self) -> usize {
        self.0.num_rows()
    }

    /// True if the table has this column.
    pub(super) fn has(self, column: &str) -> bool {
        self.0.column_by_name(column).is_some()
    }

    /// Numbers of a column; NaN for empty cells.
    pub(super) fn reals(self, column: &str) -> Vec<f64> {
        let Some(array) = self.0.column_by_name(column) else { return vec![f64::NAN; self.rows()] };
        if let Some(reals) = array.as_primitive_opt::<Float64Type>() {
            return reals.iter().map(|x| x.unwrap_or(f64::NAN)).collect();
        }
        match array.as_primitive_opt::<UInt64Type>() {
            Some(counts) => counts.iter().map(|n| n.map_or(f64::NAN, |n| n as f64)).collect(),
            None => vec![f64::NAN; self.rows()],
        }
    }

    /// Rates of links without failures. Results of an older version have one rate for each link.
    pub(super) fn nominal_rates(self) -> Vec<f64> {
        self.reals(if self.has("nominal_gbps") { "nominal_gbps" } else { "rate_gbps" })
    }

    /// Whole numbers of a column; 0 for empty cells.
    pub(super) fn counts(self, column: &str) -> Vec<u64> {
        let array = self.0.column_by_name(column).and_then(|a| a.as_primitive_opt::<UInt64Type>());
        array.map_or_else(|| vec![0; self.rows()], |a| a.iter().map(|n| n.unwrap_or(0)).collect())
    }

    /// Texts of a column; empty for empty cells.
    pub(super) fn texts(self, column: &str) -> Vec<&'a str> {
        let array = self.0.column_by_name(column).and_then(|a| a.as_string_opt::<i32>());
        match array {
            Some(texts) => texts.iter().map(Option::unwrap_or_default).collect(),
            None => vec![""; self.rows()],
        }
    }
}

/// A number with six significant digits, which is more than a chart shows, and half as long; `None` if it is not finite.
pub(super) fn short(x: f64) -> Option<f64> {
    if !x.is_finite() {
        return None;
    }
    format!("{x:.5e}").parse().ok()
}
