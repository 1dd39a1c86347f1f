//! The shell: sockets, threads and clocks around the core. One module per kernel interface, each with a safe face.

mod affinity;
mod batch;
mod engine;
mod locals;
mod poll;
pub mod process;
mod rawaddr;
mod socket;
mod worker;

pub use engine::{Engine, EngineConfig, ListenerConfig, StartError};
pub use poll::{Readiness, wait_readable};
