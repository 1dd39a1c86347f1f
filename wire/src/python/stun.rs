//! STUN messages.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{address_pair, errors, exactly, socket_address};
use crate::stun::{Builder, Class, ErrorCode, StunError, StunView};

pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StunMessage>()?;
    module.add_function(wrap_pyfunction!(parse_stun, module)?)?;
    module.add_function(wrap_pyfunction!(stun_username, module)?)?;
    module.add_function(wrap_pyfunction!(binding_request, module)?)?;
    module.add_function(wrap_pyfunction!(binding_success, module)?)?;
    module.add_function(wrap_pyfunction!(binding_error, module)?)?;
    module.add_function(wrap_pyfunction!(binding_indication, module)?)
}

/// A message that `parse_stun` has read. Keeps its datagram to check signatures against.
#[pyclass(frozen, module = "voicecluster.wire", skip_from_py_object)]
struct StunMessage {
    packet: Vec<u8>,
    class: Class,
    #[pyo3(get)]
    transaction_id: Py<PyBytes>,
    #[pyo3(get)]
    username: Option<String>,
    #[pyo3(get)]
    priority: Option<u32>,
    #[pyo3(get)]
    use_candidate: bool,
    #[pyo3(get)]
    ice_controlling: Option<u64>,
    #[pyo3(get)]
    ice_controlled: Option<u64>,
    #[pyo3(get)]
    xor_mapped_address: Option<(String, u16)>,
    #[pyo3(get)]
    error_code: Option<u16>,
    #[pyo3(get)]
    has_integrity: bool,
    #[pyo3(get)]
    has_fingerprint: bool,
}

impl StunMessage {
    fn read(py: Python<'_>, packet: &[u8]) -> Result<Self, StunError> {
        let view = StunView::parse(packet)?;
        if view.method().is_none() {
            return Err(StunError::UnknownMethod);
        }
        view.check_fingerprint()?;
        let username = view
            .username()
            .map(|bytes| std::str::from_utf8(bytes).map(str::to_owned));
        Ok(Self {
            class: view.class(),
            transaction_id: PyBytes::new(py, view.transaction_id()).unbind(),
            username: username.transpose().map_err(|_| StunError::BadAttribute)?,
            priority: view.priority(),
            use_candidate: view.use_candidate(),
            ice_controlling: view.ice_controlling(),
            ice_controlled: view.ice_controlled(),
            xor_mapped_address: view.xor_mapped_address().map(address_pair),
            error_code: view.error_code().map(ErrorCode::get),
            has_integrity: view.has_integrity(),
            has_fingerprint: view.has_fingerprint(),
            packet: packet.to_vec(),
        })
    }
}

#[pymethods]
impl StunMessage {
    #[getter]
    fn method(&self) -> &'static str {
        "binding"
    }

    #[getter]
    fn cls(&self) -> &'static str {
        self.class.label()
    }

    fn verify(&self, password: &str) -> bool {
        StunView::parse(&self.packet).is_ok_and(|view| view.verify(password.as_bytes()))
    }

    fn __repr__(&self) -> String {
        format!("StunMessage(binding {})", self.class.label())
    }
}

#[pyfunction]
fn parse_stun(py: Python<'_>, data: &[u8]) -> PyResult<StunMessage> {
    StunMessage::read(py, data).map_err(|error| errors::stun(py, error))
}

#[pyfunction]
fn stun_username(data: &[u8]) -> Option<&str> {
    let view = StunView::parse(data).ok()?;
    view.username()
        .and_then(|username| std::str::from_utf8(username).ok())
}

#[pyfunction]
#[pyo3(signature = (
    transaction_id, *, username, password, priority, use_candidate = false, ice_controlling = None, ice_controlled = None
))]
#[allow(
    clippy::too_many_arguments,
    reason = "each is an attribute, given by name"
)]
fn binding_request<'py>(
    py: Python<'py>,
    transaction_id: &[u8],
    username: &str,
    password: &str,
    priority: u32,
    use_candidate: bool,
    ice_controlling: Option<u64>,
    ice_controlled: Option<u64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let id = exactly("transaction_id", transaction_id)?;
    let mut builder = Builder::new(Class::Request, id)
        .username(username.as_bytes())
        .map_err(|error| PyValueError::new_err(error.to_string()))?
        .priority(priority);
    if use_candidate {
        builder = builder.use_candidate();
    }
    if let Some(tie_breaker) = ice_controlling {
        builder = builder.ice_controlling(tie_breaker);
    }
    if let Some(tie_breaker) = ice_controlled {
        builder = builder.ice_controlled(tie_breaker);
    }
    Ok(PyBytes::new(py, &builder.finish(Some(password.as_bytes()))))
}

#[pyfunction]
#[pyo3(signature = (transaction_id, *, mapped, password))]
fn binding_success<'py>(
    py: Python<'py>,
    transaction_id: &[u8],
    mapped: (&str, u16),
    password: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let builder = Builder::new(Class::Success, exactly("transaction_id", transaction_id)?);
    let builder = builder.xor_mapped_address(socket_address(mapped)?);
    Ok(PyBytes::new(py, &builder.finish(Some(password.as_bytes()))))
}

#[pyfunction]
#[pyo3(signature = (transaction_id, *, code, reason, password))]
fn binding_error<'py>(
    py: Python<'py>,
    transaction_id: &[u8],
    code: u16,
    reason: &str,
    password: Option<&str>,
) -> PyResult<Bound<'py, PyBytes>> {
    let code =
        ErrorCode::new(code).ok_or_else(|| PyValueError::new_err("code must be in 300..699"))?;
    let builder = Builder::new(Class::Error, exactly("transaction_id", transaction_id)?)
        .error_code(code, reason)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyBytes::new(
        py,
        &builder.finish(password.map(str::as_bytes)),
    ))
}

#[pyfunction]
fn binding_indication<'py>(
    py: Python<'py>,
    transaction_id: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let builder = Builder::new(
        Class::Indication,
        exactly("transaction_id", transaction_id)?,
    );
    Ok(PyBytes::new(py, &builder.finish(None)))
}
