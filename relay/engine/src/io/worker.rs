//! One worker: a thread with a socket per listener and one towards the transceivers.
//!
//! Each turn waits for packets (at most a quarter of a second), takes at most [`BATCHES`] batches from each socket, and
//! sweeps the tables when that is due. So every turn is bounded work, and an idle worker still turns four times a second.

#![forbid(unsafe_code)]

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use voicecluster_wire::spp;

use super::batch::{BATCH, HEADROOM, Inbox, Outbox, Outgoing, SLOT};
use super::engine::Shared;
use super::locals::Locals;
use super::poll::Readiness;
use super::socket::UdpSocket;
use crate::core::{
    Arrival, ClientAddr, Downlink, DropReason, ListenerId, OwnerAddr, Tick, Verdict, View,
    WorkerCounters,
};

/// What others see of a worker.
#[derive(Debug, Default)]
pub(super) struct WorkerState {
    pub(super) counters: WorkerCounters,
    /// The clock of its last turn, in milliseconds.
    pub(super) turned_at: AtomicU64,
}

/// A worker's sockets. The listeners stand in the order of the configuration.
pub(super) struct Sockets {
    pub(super) listeners: Vec<UdpSocket>,
    pub(super) backbone: UdpSocket,
}

/// Batches taken from one socket in one turn.
const BATCHES: usize = 4;
const TURN_MS: i32 = 250;
/// Every shard is swept once in this time.
const SWEEP_MS: u32 = 250;
const SWEEP_BUDGET: usize = 64;

pub(super) struct Worker {
    shared: Arc<Shared>,
    state: Arc<WorkerState>,
    sockets: Sockets,
    view: Arc<View>,
    generation: u64,
    locals: Locals,
    /// Clients' datagrams, with headroom for SPP.
    uplink: Inbox,
    /// Transceivers' datagrams, whole.
    downlink: Inbox,
    to_owners: Outbox,
    to_clients: Vec<Outbox>,
    swept_at: Tick,
    next_shard: usize,
}

impl Worker {
    /// Made in the thread that runs it.
    pub(super) fn new(shared: Arc<Shared>, state: Arc<WorkerState>, sockets: Sockets) -> Self {
        let (generation, view) = shared.view();
        let to_clients = sockets.listeners.iter().map(|_| Outbox::new()).collect();
        let swept_at = shared.now();
        Self {
            shared,
            state,
            sockets,
            view,
            generation,
            locals: Locals::default(),
            uplink: Inbox::new(HEADROOM),
            downlink: Inbox::new(0),
            to_owners: Outbox::new(),
            to_clients,
            swept_at,
            next_shard: 0,
        }
    }

    /// Turns until the process ends.
    pub(super) fn run(mut self) {
        let backbone = self.sockets.listeners.len();
        let fds: Vec<_> = self
            .sockets
            .listeners
            .iter()
            .chain([&self.sockets.backbone])
            .map(AsRawFd::as_raw_fd)
            .collect();
        let mut readiness = Readiness::new(&fds);
        loop {
            readiness.wait(TURN_MS);
            self.state.counters.turns.add(1);
            self.state
                .turned_at
                .store(self.shared.millis(), Ordering::Relaxed);
            self.refresh_view();
            for listener in (0..backbone).filter(|&at| readiness.is_ready(at)) {
                self.take_uplink(listener);
            }
            if readiness.is_ready(backbone) {
                self.take_downlink();
            }
            self.sweep();
        }
    }

    fn refresh_view(&mut self) {
        if self.shared.generation() != self.generation {
            (self.generation, self.view) = self.shared.view();
        }
    }

    fn take_uplink(&mut self, listener: usize) {
        for _ in 0..BATCHES {
            let received = match self.uplink.receive(&self.sockets.listeners[listener]) {
                Ok(received) => received,
                Err(error) => {
                    return self
                        .state
                        .counters
                        .send_failed(error.raw_os_error().unwrap_or(0));
                }
            };
            let now = self.shared.now();
            for at in 0..received {
                self.forward(listener, at, now);
            }
            let counters = &self.state.counters;
            self.to_owners.flush(
                &self.uplink,
                &self.sockets.backbone,
                |outgoing| {
                    counters.uplink_packets.add(1);
                    counters.uplink_bytes.add((outgoing.end - HEADROOM) as u64);
                },
                |errno| counters.send_failed(errno),
            );
            if received < BATCH {
                return;
            }
        }
    }

    fn forward(&mut self, listener: usize, at: usize, now: Tick) {
        let meta = self.uplink.meta(at);
        let counters = &self.state.counters;
        if meta.truncated {
            return counters.dropped(DropReason::Oversize);
        }
        let client = ClientAddr(meta.source);
        let local = self.locals.id(meta.destination, &self.shared.locals);
        let arrival = Arrival {
            client,
            listener: ListenerId(listener as u16),
            local,
        };
        let datagram = self.uplink.datagram(at);
        let end = HEADROOM + datagram.len();
        let decision = self
            .shared
            .relay
            .from_client(&self.view, arrival, datagram, now);
        if let Some(result) = decision.decoded {
            counters.decoded(result);
        }
        let (first, second) = match decision.verdict {
            Verdict::Forward(owner) => (owner, None),
            Verdict::ForwardBoth(owner, challenger) => (owner, Some(challenger)),
            Verdict::Drop(why) => return counters.dropped(why),
        };
        let vip = self.view.vips.of(ListenerId(listener as u16));
        if let Ok(header) = self.uplink.headroom(at).try_into() {
            spp::encode(header, client.0.into(), vip.into());
        }
        for owner in [Some(first), second].into_iter().flatten() {
            self.to_owners.push(Outgoing {
                slot: at,
                start: 0,
                end,
                to: owner.0,
                from: None,
            });
        }
    }

    fn take_downlink(&mut self) {
        for _ in 0..BATCHES {
            let received = match self.downlink.receive(&self.sockets.backbone) {
                Ok(received) => received,
                Err(error) => {
                    return self
                        .state
                        .counters
                        .send_failed(error.raw_os_error().unwrap_or(0));
                }
            };
            let now = self.shared.now();
            for at in 0..received {
                self.deliver(at, now);
            }
            let counters = &self.state.counters;
            for (outbox, socket) in self.to_clients.iter_mut().zip(&self.sockets.listeners) {
                if outbox.is_empty() {
                    continue;
                }
                outbox.flush(
                    &self.downlink,
                    socket,
                    |outgoing| {
                        counters.downlink_packets.add(1);
                        counters
                            .downlink_bytes
                            .add((outgoing.end - outgoing.start) as u64);
                    },
                    |errno| counters.send_failed(errno),
                );
            }
            if received < BATCH {
                return;
            }
        }
    }

    fn deliver(&mut self, at: usize, now: Tick) {
        let meta = self.downlink.meta(at);
        let counters = &self.state.counters;
        let datagram = self.downlink.datagram(at);
        if meta.truncated {
            return counters.dropped(DropReason::Oversize);
        }
        if datagram.is_empty() {
            return counters.dropped(DropReason::Empty);
        }
        let Ok(header) = spp::decode(datagram) else {
            return counters.dropped(DropReason::BadSpp);
        };
        let (client, vip) = (ClientAddr(header.client.into()), header.proxy.into());
        let payload = datagram.get(spp::LEN..).unwrap_or_default();
        match self.shared.relay.from_owner(
            &self.view,
            OwnerAddr(meta.source),
            client,
            vip,
            payload,
            now,
        ) {
            Downlink::Deliver {
                client,
                listener,
                local,
            } => {
                let from = self.locals.address(local, &self.shared.locals);
                let end = datagram.len().min(SLOT);
                let outgoing = Outgoing {
                    slot: at,
                    start: spp::LEN,
                    end,
                    to: client.0,
                    from,
                };
                if let Some(outbox) = self.to_clients.get_mut(usize::from(listener.0)) {
                    outbox.push(outgoing);
                }
            }
            Downlink::Drop(why) => counters.dropped(why),
        }
    }

    fn sweep(&mut self) {
        let now = self.shared.now();
        let shards = self.shared.relay.shards();
        let step = (SWEEP_MS / shards as u32).max(1);
        let due = (now.since(self.swept_at) / step) as usize;
        for _ in 0..due.min(shards) {
            self.shared
                .relay
                .sweep(self.next_shard, SWEEP_BUDGET, &self.view.limits, now);
            self.next_shard = (self.next_shard + 1) % shards;
        }
        if due > 0 {
            self.swept_at = now;
        }
    }
}
