//! The relay's packet engine: a sans-IO core, a shell of sockets and threads, a control server, and the supervisor that
//! keeps the engine and its control plane running in one container.

pub mod control;
pub mod core;
pub mod io;
pub mod log;
pub mod supervise;
