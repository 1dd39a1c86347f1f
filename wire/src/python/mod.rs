//! The extension module `voicecluster.wire._wire`: whole values in, whole values out, one exception per error enum.
//!
//! Its types and docstrings stand in `_wire.pyi`.

mod errors;
mod framing;
mod hint;
mod spp;
mod stun;

use std::net::{IpAddr, SocketAddr};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[pymodule]
fn _wire(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::add_to(module)?;
    hint::add_to(module)?;
    stun::add_to(module)?;
    spp::add_to(module)?;
    framing::add_to(module)
}

/// A socket address as Python's socket module has it, without flow info and scope.
fn socket_address((host, port): (&str, u16)) -> PyResult<SocketAddr> {
    let address: IpAddr = host
        .parse()
        .map_err(|_| PyValueError::new_err("the host of an address must be an IP address"))?;
    Ok(SocketAddr::new(address, port))
}

/// The inverse of `socket_address`.
fn address_pair(address: SocketAddr) -> (String, u16) {
    (address.ip().to_string(), address.port())
}

/// An argument of a fixed size.
fn exactly<const LEN: usize>(name: &str, bytes: &[u8]) -> PyResult<[u8; LEN]> {
    bytes.try_into().map_err(|_| {
        PyValueError::new_err(format!("{name} must have {LEN} bytes, not {}", bytes.len()))
    })
}
