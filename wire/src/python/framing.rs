//! RFC 4571 framing.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::errors;
use crate::framing;

pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Deframer>()?;
    module.add_function(wrap_pyfunction!(frame, module)?)
}

#[pyfunction]
fn frame<'py>(py: Python<'py>, datagram: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let header = framing::header(datagram).map_err(|error| errors::framing(py, error))?;
    Ok(PyBytes::new(py, &[&header, datagram].concat()))
}

#[pyclass(module = "voicecluster.wire", skip_from_py_object)]
struct Deframer(framing::Deframer);

#[pymethods]
impl Deframer {
    #[new]
    #[pyo3(signature = (max_frame = i64::from(framing::MAX_DATAGRAM)))]
    fn new(max_frame: i64) -> PyResult<Self> {
        let bound = u16::try_from(max_frame).ok().filter(|&bound| bound > 0);
        let bound = bound.ok_or_else(|| PyValueError::new_err("max_frame must be in 1..65535"))?;
        Ok(Self(framing::Deframer::new(bound)))
    }

    fn feed<'py>(&mut self, py: Python<'py>, data: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let mut frames = Vec::new();
        self.0
            .feed(data, |frame| frames.push(PyBytes::new(py, frame)))
            .map_err(|error| errors::framing(py, error))?;
        Ok(frames)
    }

    #[getter]
    fn pending(&self) -> usize {
        self.0.pending()
    }
}
