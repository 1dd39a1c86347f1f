//! Where the crate's errors become exceptions. Each carries the counter's label as `reason`.

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::framing::FramingError as Framing;
use crate::hint::HintError as Hint;
use crate::spp::SppError as Spp;
use crate::stun::StunError as Stun;

create_exception!(
    voicecluster.wire,
    HintError,
    PyValueError,
    "A ufrag or call id that does not say a route."
);
create_exception!(
    voicecluster.wire,
    StunError,
    PyValueError,
    "A datagram that is not STUN we can read."
);
create_exception!(
    voicecluster.wire,
    SppError,
    PyValueError,
    "A datagram without an SPP header."
);
create_exception!(
    voicecluster.wire,
    FramingError,
    PyValueError,
    "A stream or datagram that RFC 4571 cannot frame."
);

pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("HintError", py.get_type::<HintError>())?;
    module.add("StunError", py.get_type::<StunError>())?;
    module.add("SppError", py.get_type::<SppError>())?;
    module.add("FramingError", py.get_type::<FramingError>())
}

pub(super) fn hint(py: Python<'_>, error: Hint) -> PyErr {
    labelled(py.get_type::<HintError>(), error.label())
}

pub(super) fn stun(py: Python<'_>, error: Stun) -> PyErr {
    labelled(py.get_type::<StunError>(), error.label())
}

pub(super) fn spp(py: Python<'_>, error: Spp) -> PyErr {
    labelled(py.get_type::<SppError>(), error.label())
}

pub(super) fn framing(py: Python<'_>, error: Framing) -> PyErr {
    labelled(py.get_type::<FramingError>(), error.label())
}

fn labelled(class: Bound<'_, PyType>, label: &'static str) -> PyErr {
    let raised = class.call1((label,)).and_then(|error| {
        error.setattr("reason", label)?;
        Ok(error)
    });
    match raised {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}
