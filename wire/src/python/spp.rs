//! SPP headers.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{address_pair, errors, socket_address};
use crate::spp;

pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("SPP_LEN", spp::LEN)?;
    module.add_class::<SppHeader>()?;
    module.add_function(wrap_pyfunction!(spp_encode, module)?)?;
    module.add_function(wrap_pyfunction!(spp_decode, module)?)
}

#[pyclass(frozen, eq, hash, module = "voicecluster.wire", skip_from_py_object)]
#[derive(Eq, Hash, PartialEq)]
struct SppHeader(spp::Header);

#[pymethods]
impl SppHeader {
    #[getter]
    fn client(&self) -> (String, u16) {
        address_pair(self.0.client)
    }

    #[getter]
    fn proxy(&self) -> (String, u16) {
        address_pair(self.0.proxy)
    }

    fn __repr__(&self) -> String {
        format!(
            "SppHeader(client={}, proxy={})",
            self.0.client, self.0.proxy
        )
    }
}

#[pyfunction]
fn spp_encode<'py>(
    py: Python<'py>,
    client: (&str, u16),
    proxy: (&str, u16),
) -> PyResult<Bound<'py, PyBytes>> {
    let mut header = [0; spp::LEN];
    spp::encode(&mut header, socket_address(client)?, socket_address(proxy)?);
    Ok(PyBytes::new(py, &header))
}

#[pyfunction]
fn spp_decode(py: Python<'_>, datagram: &[u8]) -> PyResult<SppHeader> {
    spp::decode(datagram)
        .map(SppHeader)
        .map_err(|error| errors::spp(py, error))
}
