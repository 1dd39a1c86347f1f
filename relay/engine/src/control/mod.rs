//! The control protocol: JSON lines over a Unix stream socket (mode 0600). Whole snapshots in, counters out, never a packet.
//!
//! Each request is one line of at most 64 MiB, `{"id": n, "op": …}`, and gets one reply line, `{"id": n, "ok": true, …}`
//! or `{"id": n, "ok": false, "error": "one line"}`; after an error nothing has changed. There is one client at a time
//! and the newest wins. What a client loaded stays in force when it goes, until another one replaces it.
//!
//! | op | fields | reply |
//! |---|---|---|
//! | `configure` | `workers`, `pin`, `backbone`, `listeners` (`name`, `bind`, `advertise`), `limits` | |
//! | `routes` | `routes`: all of them (`cluster`, `ordinal`, `worker`, `address`) | `routes`: how many |
//! | `keys` | `clusters`: cluster to key id to `K_hint` in base64, all of them | `keys`: how many |
//! | `stats` | | see below |
//! | `ping` | | `alive`: whether every worker turned over within a second |
//!
//! The first `configure` opens the sockets and starts the workers; a later one with equal sockets changes the limits, one
//! with others is refused. `limits` are those of the relay's configuration file; absent ones have their defaults.
//!
//! `stats` has `workers` (each with `worker`, `turns`, `packets` and `bytes` by direction, `drops` by reason, `decodes` by
//! result, `sendErrors` by errno), `flows` by state, `evictions` by reason, `routes`, `keys` and `uptimeSeconds`. Counters
//! only grow, and begin at 0 with the process. The labels are listed in `core/verdict.rs`.

#![forbid(unsafe_code)]

mod protocol;
mod server;
mod state;

pub use server::serve;
