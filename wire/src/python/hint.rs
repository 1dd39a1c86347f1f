//! Hints, call ids and keys.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{errors, exactly};
use crate::hint::{self, KeyId, Nonce};
use crate::keys::{self, Purpose};

pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Route>()?;
    module.add_class::<Opened>()?;
    module.add_class::<HintKey>()?;
    module.add_class::<CallKey>()?;
    module.add_function(wrap_pyfunction!(derive_key, module)?)?;
    module.add_function(wrap_pyfunction!(key_id_of, module)?)?;
    module.add_function(wrap_pyfunction!(ice_pwd, module)?)
}

#[pyclass(
    frozen,
    eq,
    hash,
    ord,
    module = "voicecluster.wire",
    skip_from_py_object
)]
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
struct Route(hint::Route);

#[pymethods]
impl Route {
    #[new]
    #[pyo3(signature = (cluster, ordinal, worker))]
    fn new(cluster: i64, ordinal: i64, worker: i64) -> PyResult<Self> {
        let cluster_id =
            u16::try_from(cluster).map_err(|_| out_of_range("cluster", cluster, "1..65535"))?;
        let ordinal =
            u16::try_from(ordinal).map_err(|_| out_of_range("ordinal", ordinal, "0..65535"))?;
        let worker = u8::try_from(worker).map_err(|_| out_of_range("worker", worker, "0..255"))?;
        hint::Route::new(cluster_id, ordinal, worker)
            .map(Self)
            .ok_or_else(|| out_of_range("cluster", cluster, "1..65535"))
    }

    #[getter]
    fn cluster(&self) -> u16 {
        self.0.cluster()
    }

    #[getter]
    fn ordinal(&self) -> u16 {
        self.0.ordinal()
    }

    #[getter]
    fn worker(&self) -> u8 {
        self.0.worker()
    }

    #[getter]
    fn region_index(&self) -> u8 {
        self.0.region_index()
    }

    fn __repr__(&self) -> String {
        format!(
            "Route(cluster={}, ordinal={}, worker={})",
            self.0.cluster(),
            self.0.ordinal(),
            self.0.worker()
        )
    }

    /// Lets it be copied and pickled.
    fn __getnewargs__(&self) -> (u16, u16, u8) {
        (self.0.cluster(), self.0.ordinal(), self.0.worker())
    }
}

#[pyclass(frozen, eq, hash, module = "voicecluster.wire", skip_from_py_object)]
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
struct Opened(hint::Opened);

#[pymethods]
impl Opened {
    #[getter]
    fn route(&self) -> Route {
        Route(self.0.route)
    }

    #[getter]
    fn nonce(&self) -> u64 {
        self.0.nonce.get()
    }

    fn __repr__(&self) -> String {
        format!(
            "Opened(route={}, nonce={})",
            self.route().__repr__(),
            self.nonce()
        )
    }
}

#[pyclass(frozen, module = "voicecluster.wire", skip_from_py_object)]
struct HintKey(hint::HintKey);

#[pymethods]
impl HintKey {
    #[new]
    fn new(key_id: &str, key: &[u8]) -> PyResult<Self> {
        Ok(Self(hint::HintKey::new(
            parse_key_id(key_id)?,
            &exactly("key", key)?,
        )))
    }

    #[getter]
    fn key_id(&self) -> char {
        char::from(self.0.id().as_byte())
    }

    fn mint(&self, route: &Route, nonce: i64) -> PyResult<String> {
        Ok(ascii(&self.0.mint(route.0, parse_nonce(nonce)?)))
    }

    fn open(&self, py: Python<'_>, ufrag: &str) -> PyResult<Opened> {
        self.0
            .open(ufrag.as_bytes())
            .map(Opened)
            .map_err(|error| errors::hint(py, error))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

#[pyclass(frozen, module = "voicecluster.wire", skip_from_py_object)]
struct CallKey(hint::CallKey);

#[pymethods]
impl CallKey {
    #[new]
    fn new(key_id: &str, key: &[u8]) -> PyResult<Self> {
        Ok(Self(hint::CallKey::new(
            parse_key_id(key_id)?,
            &exactly("key", key)?,
        )))
    }

    #[getter]
    fn key_id(&self) -> char {
        char::from(self.0.id().as_byte())
    }

    fn mint(&self, route: &Route, nonce: i64) -> PyResult<String> {
        Ok(ascii(&self.0.mint(route.0, parse_nonce(nonce)?)))
    }

    fn open(&self, py: Python<'_>, call_id: &str) -> PyResult<Opened> {
        self.0
            .open(call_id.as_bytes())
            .map(Opened)
            .map_err(|error| errors::hint(py, error))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

#[pyfunction]
fn derive_key<'py>(
    py: Python<'py>,
    root_secret: &[u8],
    label: &str,
    cluster: i64,
) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
    let purpose = Purpose::from_label(label).ok_or_else(|| {
        PyValueError::new_err("label must be one of hint, pwd, call, token, internal")
    })?;
    let cluster_id = u16::try_from(cluster)
        .ok()
        .filter(|&cluster_id| cluster_id != 0)
        .ok_or_else(|| out_of_range("cluster", cluster, "1..65535"))?;
    let key = keys::derive(&exactly("root_secret", root_secret)?, purpose, cluster_id);
    Ok(pyo3::types::PyBytes::new(py, &key))
}

#[pyfunction]
fn key_id_of(py: Python<'_>, ufrag_or_call_id: &str) -> PyResult<char> {
    let id = KeyId::of(ufrag_or_call_id.as_bytes()).map_err(|error| errors::hint(py, error))?;
    Ok(char::from(id.as_byte()))
}

#[pyfunction]
fn ice_pwd(pwd_key: &[u8], ufrag: &str) -> PyResult<String> {
    Ok(ascii(&keys::ice_pwd(
        &exactly("pwd_key", pwd_key)?,
        ufrag.as_bytes(),
    )))
}

fn parse_key_id(key_id: &str) -> PyResult<KeyId> {
    match key_id.as_bytes() {
        [character] => KeyId::new(*character),
        _ => None,
    }
    .ok_or_else(|| PyValueError::new_err("key_id must be one of A-Z a-z 0-9"))
}

fn parse_nonce(nonce: i64) -> PyResult<Nonce> {
    u64::try_from(nonce)
        .ok()
        .and_then(Nonce::new)
        .ok_or_else(|| out_of_range("nonce", nonce, "0..2**40-1"))
}

fn out_of_range(name: &str, value: i64, range: &str) -> PyErr {
    PyValueError::new_err(format!("{name} must be in {range}, not {value}"))
}

/// Text that this crate made: ASCII throughout.
fn ascii(text: &[u8]) -> String {
    text.iter().copied().map(char::from).collect()
}
