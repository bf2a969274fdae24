//! Columns with a meaning and a unit, as Parquet or CSV.

use super::ResultsError;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The cells of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Whole numbers.
    Count(Vec<Option<u64>>),
    /// Real numbers.
    Real(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<String>),
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    cells: Cells,
}

impl Column {
    /// Of whole numbers.
    pub fn count(
        name: &'static str,
        unit: &'static str,
        about: &'static str,
        cells: impl Iterator<Item = u64>,
    ) -> Self {
        Column { name, unit, about, cells: Cells::Count(cells.map(Some).collect()) }
    }

    /// Of real numbers that may be missing.
    pub fn real(
        name: &'static str,
        unit: &'static str,
        about: &'static str,
        cells: impl Iterator<Item = Option<f64>>,
    ) -> Self {
        Column { name, unit, about, cells: Cells::Real(cells.collect()) }
    }

    /// Of texts.
    pub fn text(name: &'static str, about: &'static str, cells: impl Iterator<Item = String>) -> Self {
        Column { name, unit: "-", about, cells: Cells::Text(cells.collect()) }
    }

    fn field(&self) -> Field {
        let kind = match self.cells {
            Cells::Count(_) => DataType::UInt64,
            Cells::Real(_) => DataType::Float64,
            Cells::Text(_) => DataType::Utf8,
        };
        #[expect(
            clippy::disallowed_types,
            reason = "arrow asks for a HashMap and sorts its keys when it writes"
        )]
        let about: std::collections::HashMap<String, String> =
            [("description", self.about), ("unit", self.unit)]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into();
        Field::new(self.name, kind, matches!(self.cells, Cells::Real(_))).with_metadata(about)
    }

    fn array(&self) -> ArrayRef {
        match &self.cells {
            Cells::Count(cells) => Arc::new(UInt64Array::from(cells.clone())),
            Cells::Real(cells) => Arc::new(Float64Array::from(cells.clone())),
            Cells::Text(cells) => Arc::new(StringArray::from_iter_values(cells)),
        }
    }

    fn cell(&self, row: usize) -> String {
        match &self.cells {
            Cells::Count(cells) => cells[row].map(|n| n.to_string()).unwrap_or_default(),
            Cells::Real(cells) => cells[row].map(|n| n.to_string()).unwrap_or_default(),
            Cells::Text(cells) => cells[row].clone(),
        }
    }
}

/// A table: columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
    /// Rows.
    pub rows: usize,
    /// Every how many-th row of all that there are was kept.
    pub every: usize,
}

impl Table {
    /// Of columns that hold `rows` rows each, every `every`-th of all that there are.
    pub fn new(columns: Vec<Column>, rows: usize, every: usize) -> Self {
        Table { columns, rows, every }
    }

    /// Writes it as Parquet; the description and unit of each column stand in its metadata.
    ///
    /// # Errors
    /// If the system or the writer refuses.
    pub fn write_parquet(&self, path: &Path) -> Result<(), ResultsError> {
        let file = create(path)?;
        self.parquet_into(file).map_err(|e| ResultsError::Parquet(path.to_owned(), e))
    }

    fn parquet_into(&self, file: File) -> Result<(), ParquetError> {
        let schema = Arc::new(Schema::new(self.columns.iter().map(Column::field).collect::<Vec<_>>()));
        let arrays = self.columns.iter().map(Column::array).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("ropewalk {}", env!("CARGO_PKG_VERSION")))
            .build();
        let mut writer = ArrowWriter::try_new(file, schema, Some(properties))?;
        writer.write(&batch)?;
        writer.close().map(drop)
    }

    /// Writes it as CSV with the column names as first line; a missing number is an empty cell.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn write_csv(&self, path: &Path) -> Result<(), ResultsError> {
        let mut writer = csv::Writer::from_writer(create(path)?);
        let failed = |e| ResultsError::Csv(path.to_owned(), e);
        writer.write_record(self.columns.iter().map(|c| c.name)).map_err(failed)?;
        for row in 0..self.rows {
            writer.write_record(self.columns.iter().map(|c| c.cell(row))).map_err(failed)?;
        }
        writer.flush().map_err(|e| ResultsError::Io(path.to_owned(), e))
    }
}

fn create(path: &Path) -> Result<File, ResultsError> {
    File::create(path).map_err(|e| ResultsError::Io(path.to_owned(), e))
}
