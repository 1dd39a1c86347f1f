//! The engine's core: which packet goes where, without a socket, a clock or randomness of its own.
//!
//! How to drive it:
//! 1. Make one [`Relay`] per process and share it between workers; every method takes `&self`.
//! 2. Hand each datagram to [`Relay::from_client`] or [`Relay::from_owner`] together with the current [`View`] and the
//!    time, and do what the returned value says. There is nothing to drain afterwards.
//! 3. Call [`Relay::sweep`] at least four times a second, so that what ran out gives its memory back. A flow whose time
//!    is up is dead whether it was swept or not.

#![forbid(unsafe_code)]

mod address;
mod admission;
mod bucket;
mod counters;
mod flow;
mod limits;
mod relay;
mod slab;
mod snapshot;
mod table;
mod time;
mod ufrags;
mod verdict;

pub use address::{ClientAddr, Endpoint, FlowKey, ListenerId, LocalId, OwnerAddr, Seed};
pub use bucket::{Bucket, Rate, SharedBucket, Taken};
pub use counters::{Counter, Evictions, WorkerCounters};
pub use flow::Ufrag;
pub use limits::{Limits, MAX_FLOWS_PER_UFRAG, STUN_BURST_SECONDS};
pub use relay::{Arrival, Decision, MAX_CLIENT_DATAGRAM, Relay};
pub use snapshot::{Keys, RouteId, Routes, View, Vips};
pub use table::FlowCounts;
pub use time::Tick;
pub use verdict::{DecodeResult, Downlink, DropReason, Eviction, Verdict};
