//! Columns with a meaning and a unit, as Parquet or CSV.

use crate::error::ResultsError;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// The key of a Parquet file's metadata under which it has the digest of its results.
const DIGEST: &str = "digest";

/// A column: its cells, and its field with description and unit as metadata.
#[derive(Clone, Debug)]
pub struct Column {
    field: Field,
    cells: ArrayRef,
}

impl Column {
    /// A column of whole numbers.
    pub fn count(name: &str, unit: &str, about: &str, cells: impl Iterator<Item = u64>) -> Self {
        Self::new(name, unit, about, Arc::new(UInt64Array::from_iter_values(cells)), false)
    }

    /// A column of whole numbers that may be missing.
    pub fn maybe(name: &str, unit: &str, about: &str, cells: impl Iterator<Item = Option<u64>>) -> Self {
        Self::new(name, unit, about, Arc::new(cells.collect::<UInt64Array>()), true)
    }

    /// A column of real numbers that may be missing.
    pub fn real(name: &str, unit: &str, about: &str, cells: impl Iterator<Item = Option<f64>>) -> Self {
        Self::new(name, unit, about, Arc::new(cells.collect::<Float64Array>()), true)
    }

    /// A column of texts.
    pub fn text(name: &str, about: &str, cells: impl Iterator<Item = String>) -> Self {
        // Arrow reads the length of an iterator of texts beforehand, and panics if the iterator does not know it.
        let cells: Vec<String> = cells.collect();
        Self::new(name, "-", about, Arc::new(StringArray::from_iter_values(cells)), false)
    }

    /// A column of true and false.
    pub fn flag(name: &str, about: &str, cells: impl Iterator<Item = bool>) -> Self {
        let cells: Vec<bool> = cells.collect();
        Self::new(name, "-", about, Arc::new(BooleanArray::from(cells)), false)
    }

    fn new(name: &str, unit: &str, about: &str, cells: ArrayRef, nullable: bool) -> Self {
        #[expect(
            clippy::disallowed_types,
            reason = "arrow asks for a HashMap and sorts its keys when it writes"
        )]
        let about: std::collections::HashMap<String, String> =
            [("description", about), ("unit", unit)].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        Column { field: Field::new(name, cells.data_type().clone(), nullable).with_metadata(about), cells }
    }
}

/// A table: columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    batch: RecordBatch,
    /// The table holds every n-th row of all rows; this is n.
    pub every: usize,
}

impl Table {
    /// A table of columns of one length. They hold every `every`-th row of all rows.
    ///
    /// # Panics
    /// If the columns differ in length: a fault of ropewalk.
    pub fn new(columns: Vec<Column>, every: usize) -> Self {
        let (fields, arrays): (Vec<Field>, _) = columns.into_iter().map(|c| (c.field, c.cells)).unzip();
        match RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays) {
            Ok(batch) => Table { batch, every },
            Err(e) => unreachable!("columns of one table have one length: {e}"),
        }
    }

    /// Appends a column of the same length.
    ///
    /// # Panics
    /// If its length differs: a fault of ropewalk.
    #[must_use]
    pub fn with(self, column: Column) -> Self {
        let fields =
            self.batch.schema().fields().iter().map(|field| field.as_ref().clone()).collect::<Vec<_>>();
        let old = fields.into_iter().zip(self.batch.columns().to_vec());
        let mut columns: Vec<Column> = old.map(|(field, cells)| Column { field, cells }).collect();
        columns.push(column);
        Table::new(columns, self.every)
    }

    /// The table as an Arrow batch.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// Names, types, descriptions and units of the columns.
    pub fn schema(&self) -> SchemaRef {
        self.batch.schema()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// The column of whole numbers with this name; `None` if there is no such column.
    pub fn counts(&self, name: &str) -> Option<&UInt64Array> {
        self.batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>()
    }

    /// The column of real numbers with this name, likewise.
    pub fn reals(&self, name: &str) -> Option<&Float64Array> {
        self.batch.column_by_name(name)?.as_primitive_opt::<Float64Type>()
    }

    /// The column of texts with this name, likewise.
    pub fn texts(&self, name: &str) -> Option<&StringArray> {
        self.batch.column_by_name(name)?.as_string_opt::<i32>()
    }

    /// The column of true and false with this name, likewise.
    pub fn flags(&self, name: &str) -> Option<&BooleanArray> {
        self.batch.column_by_name(name)?.as_boolean_opt()
    }

    /// Writes the table as Parquet with the description and unit of each column as metadata. The file's own metadata has
    /// the `digest` of its results.
    ///
    /// # Errors
    /// If the system or the writer refuses.
    pub fn write_parquet(&self, file: impl Write + Send, digest: &str) -> Result<(), ParquetError> {
        self.begin_parquet(file, digest)?.close().map(drop)
    }

    /// The bytes of the table's Parquet file.
    ///
    /// # Errors
    /// If the writer refuses.
    pub fn to_parquet(&self, digest: &str) -> Result<Vec<u8>, ResultsError> {
        let mut bytes = Vec::new();
        self.write_parquet(&mut bytes, digest).map_err(|e| ResultsError::Parquet("a table".into(), e))?;
        Ok(bytes)
    }

    /// Writes the table as the first part of a Parquet file. The caller can add tables with the same columns.
    ///
    /// # Errors
    /// If the system or the writer refuses.
    pub fn begin_parquet<W: Write + Send>(
        &self,
        file: W,
        digest: &str,
    ) -> Result<ArrowWriter<W>, ParquetError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("ropewalk {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(vec![KeyValue::new(DIGEST.to_owned(), digest.to_owned())]))
            .build();
        let mut writer = ArrowWriter::try_new(file, self.batch.schema(), Some(properties))?;
        writer.write(&self.batch)?;
        Ok(writer)
    }

    /// Reads the file that [`Table::write_parquet`] wrote; `every` is not in the file.
    ///
    /// # Errors
    /// If the file cannot be read, or is no complete Parquet file.
    pub(crate) fn read_parquet(path: &Path, every: usize) -> Result<Self, ResultsError> {
        let file = File::open(path).map_err(|e| ResultsError::Unreadable(path.to_owned(), e.to_string()))?;
        let whole = || -> Result<RecordBatch, ParquetError> {
            let reader = ParquetRecordBatchReaderBuilder::try_new(file)?;
            // The metadata of the file is no part of the table.
            let schema = Arc::new(Schema::new(reader.schema().fields().clone()));
            let batches = reader.build()?.collect::<Result<Vec<_>, _>>()?;
            let bare =
                |batch: RecordBatch| RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec());
            let batches = batches.into_iter().map(bare).collect::<Result<Vec<_>, _>>()?;
            Ok(arrow_select::concat::concat_batches(&schema, &batches)?)
        };
        let batch = whole().map_err(|e| ResultsError::Broken(path.to_owned(), e))?;
        Ok(Table { batch, every })
    }

    /// Writes the table as CSV. The first line has the column names; a missing number is an empty cell. A text that a
    /// spreadsheet would compute has an apostrophe before it.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn write_csv(&self, file: impl Write) -> Result<(), csv::Error> {
        let mut writer = csv::Writer::from_writer(file);
        writer.write_record(self.batch.schema().fields().iter().map(|f| f.name()))?;
        for row in 0..self.rows() {
            writer.write_record(self.batch.columns().iter().map(|c| cell(c, row)))?;
        }
        Ok(writer.flush()?)
    }
}

/// A cell as text.
fn cell(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return String::new();
    }
    match column.data_type() {
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Boolean => column.as_boolean().value(row).to_string(),
        DataType::Utf8 => inert(column.as_string::<i32>().value(row)),
        other => unreachable!("a column is made of counts, reals, flags or texts, not of {other}"),
    }
}

/// A text that no spreadsheet takes for a formula. Formulas begin with `=`, `+`, `-` or `@` (OWASP, "CSV Injection"); control
/// characters, which may stand before these, are in no name. A number and a lone sign are no formulas.
fn inert(text: &str) -> String {
    let begins = text.trim_start().starts_with(['=', '+', '-', '@']);
    match begins && text.len() > 1 && text.parse::<f64>().is_err() {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

/// The digest of the results that a Parquet file belongs to; `None` if its metadata cannot be read or has none.
pub(crate) fn digest_of(path: &Path) -> Option<String> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&File::open(path).ok()?).ok()?;
    let pairs = metadata.file_metadata().key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == DIGEST)?.value.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_from_iterators_of_unknown_length() {
        let column = Column::text("node", "which", (0..3usize).flat_map(|n| vec![n.to_string(); n]));
        assert_eq!(column.cells.len(), 3);
    }

    /// A name that begins like a formula must not run in a spreadsheet.
    #[test]
    fn no_cell_of_a_csv_is_a_formula() {
        let names = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", " =1", "-1.5", "-", "a=b", "h0", ""];
        let column = Column::text("name", "which", names.iter().map(|name| (*name).to_owned()));
        let mut file = Vec::new();
        Table::new(vec![column], 1).write_csv(&mut file).unwrap();
        let mut lines = csv::Reader::from_reader(&file[..]);
        let read: Vec<String> = lines.records().map(|line| line.unwrap()[0].to_owned()).collect();
        let told =
            ["'=cmd|' /C calc'!A0", "'+1+1", "'-2+3", "'@SUM(A1)", "' =1", "-1.5", "-", "a=b", "h0", ""];
        assert_eq!(read, told);
    }
}
