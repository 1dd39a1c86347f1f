//! The engine as the control server holds it: opens the sockets, starts the workers, publishes views, reads counters.

#![forbid(unsafe_code)]

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use std::{fmt, io, thread};

use super::affinity::pin_to_nth;
use super::locals::SharedLocals;
use super::socket::{Purpose, UdpSocket};
use super::worker::{Sockets, Worker, WorkerState};
use crate::core::{Endpoint, Relay, Seed, Tick, View, WorkerCounters};
use crate::log;

/// What cannot change while the engine runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EngineConfig {
    /// Threads.
    pub workers: usize,
    /// Whether each is pinned to a processor.
    pub pin: bool,
    /// The internal address that SPP leaves from and comes back to.
    pub backbone: SocketAddr,
    /// Where clients' packets come in.
    pub listeners: Vec<ListenerConfig>,
}

/// One VIP as this relay serves it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListenerConfig {
    /// For people.
    pub name: String,
    /// The local address.
    pub bind: SocketAddr,
}

/// Why the engine did not start. One line, for the operator.
#[derive(Debug)]
pub struct StartError {
    address: Option<SocketAddr>,
    cause: io::Error,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.address, self.cause.kind()) {
            (Some(address), io::ErrorKind::AddrInUse) => {
                write!(f, "port taken: {address}/udp is in use")
            }
            (Some(address), io::ErrorKind::AddrNotAvailable) => {
                write!(
                    f,
                    "cannot bind {address}/udp: this host does not have that address"
                )
            }
            (Some(address), _) => write!(f, "cannot bind {address}/udp: {}", self.cause),
            (None, _) => write!(f, "cannot start a worker: {}", self.cause),
        }
    }
}

impl std::error::Error for StartError {}

/// The running engine. Its threads live as long as the process.
pub struct Engine {
    config: EngineConfig,
    shared: Arc<Shared>,
    workers: Vec<Arc<WorkerState>>,
}

/// What the workers share.
pub(super) struct Shared {
    pub(super) relay: Relay,
    pub(super) locals: SharedLocals,
    clock: Instant,
    view: Mutex<Arc<View>>,
    generation: AtomicU64,
}

/// Enough that workers seldom meet at one.
const SHARDS: usize = 16;

impl Engine {
    /// Opens all sockets, or none, and starts the workers. `clock` is what ticks count from.
    pub fn start(config: EngineConfig, view: View, clock: Instant) -> Result<Self, StartError> {
        let sockets = open_all(&config)?;
        let now = Tick::from_millis(millis(clock));
        let relay = Relay::new(SHARDS, random_seed(), &view.limits, now);
        let shared = Arc::new(Shared {
            relay,
            locals: SharedLocals::default(),
            clock,
            view: Mutex::new(Arc::new(view)),
            generation: AtomicU64::new(0),
        });
        let mut workers = Vec::with_capacity(config.workers);
        for (number, sockets) in sockets.into_iter().enumerate() {
            let state = Arc::new(WorkerState::default());
            state.turned_at.store(shared.millis(), Ordering::Relaxed);
            workers.push(Arc::clone(&state));
            let (shared, pin) = (Arc::clone(&shared), config.pin);
            let run = move || {
                if pin && let Err(error) = pin_to_nth(number) {
                    log::warn("a worker could not be pinned", &[("error", &error)]);
                }
                Worker::new(shared, state, sockets).run();
            };
            let started = thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(run);
            started.map_err(|cause| StartError {
                address: None,
                cause,
            })?;
        }
        Ok(Self {
            config,
            shared,
            workers,
        })
    }

    /// What it was started with.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// Replaces what the core is told; every worker takes it up in its next turn.
    pub fn publish(&self, view: View) {
        self.shared.relay.reserve(&view.limits);
        *self
            .shared
            .view
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
        self.shared.generation.fetch_add(1, Ordering::Release);
    }

    /// The core, for its counts.
    pub fn relay(&self) -> &Relay {
        &self.shared.relay
    }

    /// Each worker's counters.
    pub fn counters(&self) -> impl Iterator<Item = &WorkerCounters> {
        self.workers.iter().map(|worker| &worker.counters)
    }

    /// Whether every worker turned within `limit_ms`.
    pub fn turned_within(&self, limit_ms: u64) -> bool {
        let now = self.shared.millis();
        self.workers
            .iter()
            .all(|worker| now.saturating_sub(worker.turned_at.load(Ordering::Relaxed)) < limit_ms)
    }
}

impl Shared {
    pub(super) fn millis(&self) -> u64 {
        millis(self.clock)
    }

    pub(super) fn now(&self) -> Tick {
        Tick::from_millis(self.millis())
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The view and a generation that is not newer than it.
    pub(super) fn view(&self) -> (u64, Arc<View>) {
        let generation = self.generation();
        (
            generation,
            Arc::clone(&self.view.lock().unwrap_or_else(PoisonError::into_inner)),
        )
    }
}

fn open_all(config: &EngineConfig) -> Result<Vec<Sockets>, StartError> {
    let failed = |address| {
        move |cause| StartError {
            address: Some(address),
            cause,
        }
    };
    for address in config
        .listeners
        .iter()
        .map(|listener| listener.bind)
        .chain([config.backbone])
    {
        UdpSocket::check_free(address.into()).map_err(failed(address))?;
    }
    let bind = |address: SocketAddr, purpose| {
        UdpSocket::bind(Endpoint::from(address), purpose).map_err(failed(address))
    };
    (0..config.workers)
        .map(|_| {
            let listeners = config
                .listeners
                .iter()
                .map(|listener| bind(listener.bind, Purpose::Listener));
            Ok(Sockets {
                listeners: listeners.collect::<Result<_, _>>()?,
                backbone: bind(config.backbone, Purpose::Backbone)?,
            })
        })
        .collect()
}

fn millis(clock: Instant) -> u64 {
    u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The standard library's hash keys come from the kernel's randomness.
fn random_seed() -> Seed {
    let word = || RandomState::new().build_hasher().finish();
    Seed::new(word(), word())
}
