//! Tables by the Arrow PyCapsule interface, so that pandas, polars, DuckDB and pyarrow read them without a copy.

use ::results::table;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatchIterator, StructArray};
use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

/// A table of results.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Table(pub(crate) table::Table);

fn wrong(e: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(e.to_string())
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.0.rows()
    }

    /// Name, unit and description of every column.
    #[getter]
    fn columns(&self) -> Vec<(String, String, String)> {
        let schema = self.0.schema();
        let of =
            |key: &str, field: &arrow_schema::Field| field.metadata().get(key).cloned().unwrap_or_default();
        schema.fields().iter().map(|f| (f.name().clone(), of("unit", f), of("description", f))).collect()
    }

    /// The table holds every n-th row; this is n.
    #[getter]
    fn every(&self) -> usize {
        self.0.every
    }

    /// The cells of a column.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let Some(cells) = self.0.batch().column_by_name(name) else {
            let schema = self.0.schema();
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            let text = format!("there is no column `{name}`; {}", scenario::suggestion(name, &names));
            return Err(PyKeyError::new_err(text));
        };
        match cells.data_type() {
            DataType::UInt64 => {
                PyList::new(py, cells.as_primitive::<UInt64Type>().iter().collect::<Vec<_>>())
            }
            DataType::Float64 => {
                PyList::new(py, cells.as_primitive::<Float64Type>().iter().collect::<Vec<_>>())
            }
            DataType::Boolean => PyList::new(py, cells.as_boolean().iter().collect::<Vec<_>>()),
            DataType::Utf8 => PyList::new(py, cells.as_string::<i32>().iter().collect::<Vec<_>>()),
            other => Err(wrong(format!("column `{name}` holds {other}"))),
        }
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(wrong)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The table as a single batch.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema); // The interface allows a schema other than the requested one.
        let whole = StructArray::from(self.0.batch().clone());
        let (array, _) = arrow_array::ffi::to_ffi(&whole.to_data()).map_err(wrong)?;
        Ok((self.__arrow_c_schema__(py)?, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.batch().clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }
}
