//! The control protocol: JSON lines over a Unix socket, one reply to each request. Whole snapshots in, counters out.

mod protocol;
mod server;
mod state;

pub use server::serve;
