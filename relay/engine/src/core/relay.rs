//! The decision about every packet (DESIGN section 2, rules 1 to 7).
//!
//! Locks: a flow's shard is locked for a moment at a time; a ufrag's shard may be held around that (see `admission`), never
//! the other way.

use std::sync::{Mutex, MutexGuard, PoisonError};

use voicecluster_wire::stun::{Class, Method, StunView};

use super::address::{ClientAddr, Endpoint, FlowKey, ListenerId, LocalId, OwnerAddr, Seed};
use super::bucket::{SharedBucket, Taken};
use super::counters::Evictions;
use super::flow::{Flow, Standing, Ufrag};
use super::limits::Limits;
use super::snapshot::{RouteId, View};
use super::table::{FlowCounts, FlowShard, Room};
use super::time::Tick;
use super::ufrags::{FlowRef, UfragShard};
use super::verdict::{DecodeResult, Downlink, DropReason, Verdict};

/// The largest datagram taken from a client: with SPP before it, it fits an Ethernet frame over IPv4.
pub const MAX_CLIENT_DATAGRAM: usize = 1_472;

/// Where a client's datagram came from and what it came to.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its source; anybody can write anything there.
    pub client: ClientAddr,
    /// The listener, and so the VIP.
    pub listener: ListenerId,
    /// This host's address that it was sent to; replies leave from there.
    pub local: LocalId,
}

/// What to do with a client's datagram, and what became of the ufrag if one had to be decoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decision {
    /// What to do.
    pub verdict: Verdict,
    /// To be counted.
    pub decoded: Option<DecodeResult>,
}

/// The state of one relay process, shared by its workers.
pub struct Relay {
    pub(super) seed: Seed,
    pub(super) flows: Box<[Mutex<FlowShard>]>,
    pub(super) ufrags: Box<[Mutex<UfragShard>]>,
    pub(super) sources: Box<[SharedBucket]>,
    pub(super) new_flows: SharedBucket,
    pub(super) evictions: Evictions,
}

impl Relay {
    /// Makes an empty relay. `shards`, 1 to 256, divide the tables and their bounds: more of them, less waiting.
    pub fn new(shards: usize, seed: Seed, limits: &Limits, now: Tick) -> Self {
        let shards = shards.clamp(1, 256);
        let room = room(limits, shards);
        Self {
            seed,
            flows: (0..shards)
                .map(|_| Mutex::new(FlowShard::new(room)))
                .collect(),
            ufrags: (0..shards)
                .map(|_| Mutex::new(UfragShard::new(room.flows)))
                .collect(),
            sources: (0..SOURCES)
                .map(|_| SharedBucket::full(limits.new_flows_per_source, now))
                .collect(),
            new_flows: SharedBucket::full(limits.new_flows, now),
            evictions: Evictions::default(),
        }
    }

    /// Makes room for larger limits. Smaller ones take effect as flows come and go.
    pub fn reserve(&self, limits: &Limits) {
        for shard in &self.flows {
            locked(shard).reserve(room(limits, self.flows.len()));
        }
    }

    /// Decides about a datagram from a client.
    pub fn from_client(&self, view: &View, from: Arrival, datagram: &[u8], now: Tick) -> Decision {
        let mut decoded = None;
        let routed = match datagram.first() {
            None => Err(DropReason::Empty),
            Some(_) if datagram.len() > MAX_CLIENT_DATAGRAM => Err(DropReason::Oversize),
            Some(0..=3) => self.stun(view, from, datagram, &mut decoded, now),
            Some(20..=63 | 128..=191) => self.media(view, from, now),
            Some(_) => Err(DropReason::UnknownProtocol),
        };
        let verdict = match routed.and_then(|targets| address(view, targets, now)) {
            Ok(verdict) => verdict,
            Err(why) => Verdict::Drop(why),
        };
        Decision { verdict, decoded }
    }

    /// Decides about a datagram from inside: its sender, what its SPP header says, and the payload behind that.
    pub fn from_owner(
        &self,
        view: &View,
        sender: OwnerAddr,
        client: ClientAddr,
        vip: Endpoint,
        payload: &[u8],
        now: Tick,
    ) -> Downlink {
        match self.downlink(view, sender, client, vip, payload, now) {
            Ok(delivery) => delivery,
            Err(why) => Downlink::Drop(why),
        }
    }

    /// Ends what has run out, in at most `budget` steps for one shard of each table; `turn` says which one.
    pub fn sweep(&self, turn: usize, budget: usize, limits: &Limits, now: Tick) {
        let at = turn % self.flows.len();
        locked(&self.flows[at]).sweep(budget, limits, &self.evictions, now);
        let is_alive = |flow: FlowRef, ufrag: &Ufrag| self.standing_of(flow, ufrag).is_some();
        locked(&self.ufrags[at]).sweep(budget, limits.idle_ms, is_alive, now);
    }

    /// How many shards there are to sweep.
    pub fn shards(&self) -> usize {
        self.flows.len()
    }

    /// How many flows there are, by state.
    pub fn flow_counts(&self) -> FlowCounts {
        self.flows.iter().fold(FlowCounts::default(), |sum, shard| {
            let counts = locked(shard).counts();
            FlowCounts {
                provisional: sum.provisional + counts.provisional,
                confirmed: sum.confirmed + counts.confirmed,
                challenged: sum.challenged + counts.challenged,
            }
        })
    }

    /// How many ufrags are remembered.
    pub fn ufrag_count(&self) -> usize {
        self.ufrags.iter().map(|shard| locked(shard).len()).sum()
    }

    /// Why flows ended.
    pub fn evictions(&self) -> &Evictions {
        &self.evictions
    }

    fn media(&self, view: &View, from: Arrival, now: Tick) -> Routed {
        self.by_table(view, from, Standing::Confirmed, Flow::charge_media, now)
    }

    fn stun(
        &self,
        view: &View,
        from: Arrival,
        datagram: &[u8],
        decoded: &mut Option<DecodeResult>,
        now: Tick,
    ) -> Routed {
        let message = StunView::parse(datagram).map_err(|_| DropReason::BadStun)?;
        if message.method() != Some(Method::Binding) {
            return Err(DropReason::UnknownMethod);
        }
        message
            .check_fingerprint()
            .map_err(|_| DropReason::BadFingerprint)?;
        if message.class() != Class::Request {
            return self.by_table(view, from, Standing::Unconfirmed, Flow::charge_stun, now);
        }
        let username = message.username().ok_or(DropReason::NoUsername)?;
        let ufrag = username
            .split(|&byte| byte == b':')
            .next()
            .unwrap_or_default();
        if let Some(known) = self.known_check(view, from, ufrag, now)? {
            return Ok(Targets::One(known));
        }
        let (ufrag, route) = view
            .keys
            .open(ufrag)
            .inspect_err(|&result| *decoded = Some(result))
            .map_err(|_| DropReason::BadHint)?;
        if view.routes.get(route).is_none() {
            *decoded = Some(DecodeResult::UnknownRoute);
            return Err(DropReason::UnknownRoute);
        }
        *decoded = Some(DecodeResult::Ok);
        self.admit(view, from, ufrag, route, now)?;
        Ok(Targets::One(route))
    }

    /// What has no hint goes by the flow table. Packets other than STUN need a confirmed flow.
    fn by_table(
        &self,
        view: &View,
        from: Arrival,
        least: Standing,
        charge: impl Fn(&mut Flow, &Limits, Tick) -> Result<(), DropReason>,
        now: Tick,
    ) -> Routed {
        let (hash, key) = self.key(from);
        let mut shard = self.flow_shard(hash);
        let found = shard
            .find(hash, &key, &view.limits, &self.evictions, now)
            .ok_or(DropReason::UnknownFlow)?;
        let targets = shard.update(found, |flow| {
            if least == Standing::Confirmed && !flow.incumbent.is_confirmed() {
                return Err(DropReason::Provisional);
            }
            charge(flow, &view.limits, now)?;
            Ok(match flow.second_route(least) {
                Some(second) => Targets::Two(flow.incumbent.route, second),
                None => Targets::One(flow.incumbent.route),
            })
        });
        let targets = targets.unwrap_or(Err(DropReason::UnknownFlow))?;
        shard.touch(found, now);
        Ok(targets)
    }

    /// The route of a check whose ufrag its flow already has. A known flow pays for the decoding of another one.
    fn known_check(
        &self,
        view: &View,
        from: Arrival,
        ufrag: &[u8],
        now: Tick,
    ) -> Result<Option<RouteId>, DropReason> {
        let (hash, key) = self.key(from);
        let mut shard = self.flow_shard(hash);
        let Some(found) = shard.find(hash, &key, &view.limits, &self.evictions, now) else {
            return Ok(None);
        };
        let route = shard.update(found, |flow| {
            flow.charge_check(ufrag, &view.limits, now)?;
            flow.local = from.local;
            Ok(Ufrag::try_from(ufrag)
                .ok()
                .and_then(|ufrag| flow.route_of_check(&ufrag)))
        });
        let route = route.unwrap_or(Ok(None))?;
        if route.is_some() {
            shard.touch(found, now);
        }
        Ok(route)
    }

    fn downlink(
        &self,
        view: &View,
        sender: OwnerAddr,
        client: ClientAddr,
        vip: Endpoint,
        payload: &[u8],
        now: Tick,
    ) -> Result<Downlink, DropReason> {
        let first = payload.first().ok_or(DropReason::Empty)?;
        let listener = view.vips.listener(vip).ok_or(DropReason::UnknownVip)?;
        let key = FlowKey { client, listener };
        let hash = self.seed.flow(&key);
        let mut shard = self.flow_shard(hash);
        let found = shard
            .find(hash, &key, &view.limits, &self.evictions, now)
            .ok_or(DropReason::UnknownFlow)?;
        let flow = shard.get(found).ok_or(DropReason::UnknownFlow)?;
        let is_sender = |route| {
            view.routes
                .get(route)
                .is_some_and(|state| state.address == sender)
        };
        let side = flow.side_of(is_sender).ok_or(DropReason::NotOwner)?;
        let delivery = Downlink::Deliver {
            client,
            listener,
            local: flow.local,
        };
        match first {
            0..=3 if is_binding_success(payload) => {
                shard.confirm(found, side, &view.limits, &self.evictions, now)
            }
            0..=3 => {}
            _ if !flow.is_confirmed(side) => return Err(DropReason::Provisional),
            _ => {}
        }
        Ok(delivery)
    }

    pub(super) fn key(&self, from: Arrival) -> (u64, FlowKey) {
        let key = FlowKey {
            client: from.client,
            listener: from.listener,
        };
        (self.seed.flow(&key), key)
    }

    pub(super) fn flow_shard(&self, hash: u64) -> MutexGuard<'_, FlowShard> {
        locked(&self.flows[shard_of(hash, self.flows.len())])
    }
}

/// Networks are limited by a fixed number of buckets; two that share one, by chance, share its rate.
const SOURCES: usize = 65_536;

/// The routes that a packet is to go to.
enum Targets {
    One(RouteId),
    Two(RouteId, RouteId),
}

type Routed = Result<Targets, DropReason>;

/// Turns routes into today's addresses and charges the routes.
fn address(view: &View, targets: Targets, now: Tick) -> Result<Verdict, DropReason> {
    let reach = |route| {
        let state = view.routes.get(route).ok_or(DropReason::RouteGone)?;
        granted(
            state.packets.take(view.limits.route_packets, now),
            DropReason::RouteRate,
        )?;
        Ok(state.address)
    };
    match targets {
        Targets::One(route) => reach(route).map(Verdict::Forward),
        Targets::Two(first, second) => match (reach(first), reach(second)) {
            (Ok(first), Ok(second)) => Ok(Verdict::ForwardBoth(first, second)),
            (Ok(only), Err(_)) | (Err(_), Ok(only)) => Ok(Verdict::Forward(only)),
            (Err(why), Err(_)) => Err(why),
        },
    }
}

pub(super) fn granted(taken: Taken, otherwise: DropReason) -> Result<(), DropReason> {
    match taken {
        Taken::Granted => Ok(()),
        Taken::Refused => Err(otherwise),
    }
}

fn is_binding_success(payload: &[u8]) -> bool {
    StunView::parse(payload).is_ok_and(|message| {
        message.class() == Class::Success && message.method() == Some(Method::Binding)
    })
}

pub(super) fn room(limits: &Limits, shards: usize) -> Room {
    Room {
        flows: limits.flows.div_ceil(shards),
        provisional: limits.provisional_flows.div_ceil(shards),
    }
}

/// The shard comes from other bits of the hash than the place in it.
pub(super) fn shard_of(hash: u64, shards: usize) -> usize {
    (hash as u32 as usize) % shards
}

/// A panic aborts the process, so a poisoned lock is never seen; the state behind it would be whole anyway.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
