//! The bytes that VoiceCluster's parts exchange: routing hints, derived keys, the STUN subset that ICE needs, SPP and
//! RFC 4571 framing.
//!
//! Everything here is a pure function of its arguments: no socket, no clock, no randomness. Parsers borrow what they
//! read, allocate nothing and never panic, whatever the bytes; their errors are small `Copy` enums whose `label()` is
//! the `reason` of a counter. What to do about an error is the caller's business.
//!
//! The `python` feature adds the extension module `voicecluster.wire._wire`, a thin layer over the same functions.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod framing;
pub mod hint;
pub mod keys;
#[cfg(feature = "python")]
mod python;
pub mod spp;
pub mod stun;
mod text;
