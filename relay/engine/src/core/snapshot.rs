//! What the control plane says: listeners, routes, keys and limits, as whole values that are swapped at once.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use voicecluster_wire::hint::{HintError, HintKey, KeyId, Route};

use super::address::{Endpoint, ListenerId, OwnerAddr};
use super::bucket::SharedBucket;
use super::flow::Ufrag;
use super::limits::Limits;
use super::time::Tick;
use super::verdict::DecodeResult;

/// A route as flows remember it. The address is looked up for every packet, so a route's new address is used at once.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RouteId {
    cluster: u16,
    ordinal: u16,
    worker: u8,
}

impl From<Route> for RouteId {
    fn from(route: Route) -> Self {
        Self {
            cluster: route.cluster(),
            ordinal: route.ordinal(),
            worker: route.worker(),
        }
    }
}

/// One route of the table.
#[derive(Clone, Debug)]
pub(super) struct RouteState {
    pub(super) address: OwnerAddr,
    pub(super) packets: Arc<SharedBucket>,
}

/// The routes that this relay may forward to. A new snapshot keeps the rate counters of routes that stay.
#[derive(Clone, Debug, Default)]
pub struct Routes(HashMap<RouteId, RouteState, BuildHasherDefault<RouteHasher>>);

impl Routes {
    /// Builds the next snapshot from the whole list.
    pub fn replacing(
        previous: &Self,
        list: impl IntoIterator<Item = (Route, OwnerAddr)>,
        limits: &Limits,
        now: Tick,
    ) -> Self {
        let entries = list.into_iter().map(|(route, address)| {
            let id = RouteId::from(route);
            let known = previous.0.get(&id).map(|state| Arc::clone(&state.packets));
            let packets =
                known.unwrap_or_else(|| Arc::new(SharedBucket::full(limits.route_packets, now)));
            (id, RouteState { address, packets })
        });
        Self(entries.collect())
    }

    pub(super) fn get(&self, route: RouteId) -> Option<&RouteState> {
        self.0.get(&route)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Hint keys by key id; one id may name keys of several clusters.
#[derive(Default)]
pub struct Keys {
    by_id: HashMap<u8, Vec<(u16, HintKey)>>,
}

impl Keys {
    /// Adds the key of a cluster.
    pub fn add(&mut self, cluster: u16, id: KeyId, key: HintKey) {
        self.by_id
            .entry(id.as_byte())
            .or_default()
            .push((cluster, key));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_id.values().map(Vec::len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Decrypts a ufrag with every key of its id; the decrypted cluster must be the key's.
    pub(super) fn open(&self, ufrag: &[u8]) -> Result<(Ufrag, RouteId), DecodeResult> {
        let fixed = Ufrag::try_from(ufrag).map_err(|_| DecodeResult::BadLength)?;
        let keys = self.by_id.get(&fixed[0]).ok_or(DecodeResult::UnknownKey)?;
        let mut result = DecodeResult::BadBlock;
        for (cluster, key) in keys {
            match key.open(&fixed) {
                Ok(opened) if opened.route.cluster() == *cluster => {
                    return Ok((fixed, opened.route.into()));
                }
                Ok(_) => {}
                Err(error) => result = decode_result(error),
            }
        }
        Err(result)
    }
}

/// Everything the core has to be told. The shell hands one in with each packet.
#[derive(Clone)]
pub struct View {
    /// Bounds.
    pub limits: Limits,
    /// The VIPs as they stand in SPP.
    pub vips: Arc<Vips>,
    /// Where to forward to.
    pub routes: Arc<Routes>,
    /// How to read hints.
    pub keys: Arc<Keys>,
}

/// The VIP that each listener advertises, and those it advertised before.
///
/// A flow belongs to its listener, so it lives on when its VIP changes. Its owner knows it by the old VIP until the
/// caller's next packet tells the new one; what it sends by then has to arrive, too.
#[derive(Clone, Debug, Default)]
pub struct Vips {
    advertised: Box<[Endpoint]>,
    former: Vec<(Endpoint, ListenerId)>,
}

/// How many former VIPs are remembered, the latest ones.
const FORMER_VIPS: usize = 16;

impl Vips {
    /// Takes each listener's VIP of now, in the listeners' order, which never changes.
    pub fn replacing(previous: &Self, advertised: impl Into<Box<[Endpoint]>>) -> Self {
        let advertised = advertised.into();
        let gone = previous
            .advertised
            .iter()
            .zip(0..)
            .map(|(&vip, at)| (vip, ListenerId(at)));
        let mut former: Vec<_> = Vec::new();
        for (vip, listener) in gone.chain(previous.former.iter().copied()) {
            let known = advertised.contains(&vip) || former.iter().any(|&(other, _)| other == vip);
            if !known && former.len() < FORMER_VIPS {
                former.push((vip, listener));
            }
        }
        Self { advertised, former }
    }

    /// What a listener advertises.
    pub fn of(&self, listener: ListenerId) -> Endpoint {
        self.advertised[usize::from(listener.0)]
    }

    pub(super) fn listener(&self, vip: Endpoint) -> Option<ListenerId> {
        let now = self.advertised.iter().position(|&known| known == vip);
        let now = now.and_then(|at| u16::try_from(at).ok()).map(ListenerId);
        now.or_else(|| {
            self.former
                .iter()
                .find(|(known, _)| *known == vip)
                .map(|&(_, at)| at)
        })
    }
}

/// A fast hash for routes: nobody outside chooses them, a hint has to decrypt first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RouteHasher(u64);

impl Hasher for RouteHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u8(byte);
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u16(u16::from(value));
    }

    fn write_u16(&mut self, value: u16) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(value)).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

fn decode_result(error: HintError) -> DecodeResult {
    match error {
        HintError::BadBlock => DecodeResult::BadBlock,
        HintError::BadEncoding => DecodeResult::BadEncoding,
        HintError::BadLength => DecodeResult::BadLength,
        HintError::UnknownKey => DecodeResult::UnknownKey,
    }
}
