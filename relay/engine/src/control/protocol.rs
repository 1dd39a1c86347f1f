//! Requests and replies as they stand on the wire.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use voicecluster_wire::hint::{HintKey, KeyId, Route};

use crate::core::{
    Endpoint, Keys, Limits, MAX_FLOWS_PER_UFRAG, OwnerAddr, Rate, STUN_BURST_SECONDS,
};
use crate::io::{EngineConfig, ListenerConfig};

/// One line from the control plane.
#[derive(Debug, Deserialize)]
pub(super) struct Request {
    pub(super) id: u64,
    #[serde(flatten)]
    pub(super) operation: Operation,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Operation {
    Configure(Configure),
    Routes {
        routes: Vec<RouteEntry>,
    },
    Keys {
        clusters: BTreeMap<String, BTreeMap<String, Secret>>,
    },
    Stats,
    Ping,
}

#[derive(Debug, Deserialize)]
pub(super) struct Configure {
    workers: usize,
    #[serde(default)]
    pin: bool,
    backbone: SocketAddr,
    listeners: Vec<Listener>,
    #[serde(default)]
    limits: RelayLimits,
}

#[derive(Debug, Deserialize)]
struct Listener {
    name: String,
    bind: SocketAddr,
    advertise: SocketAddr,
}

#[derive(Debug, Deserialize)]
pub(super) struct RouteEntry {
    cluster: u16,
    ordinal: u16,
    worker: u8,
    address: SocketAddr,
}

/// A key in base64. Its text is in no log and no error.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Limits as the relay's configuration file has them; what is absent keeps its default.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RelayLimits {
    flow_packets: Option<u32>,
    flow_burst: Option<u32>,
    flow_stun: Option<u32>,
    route_packets: Option<u32>,
    flows_per_ufrag: Option<usize>,
    new_flows_per_ufrag: Option<u32>,
    new_flows_per_source: Option<u32>,
    new_flows: Option<u32>,
    confirmed_flows: Option<usize>,
    provisional_flows: Option<usize>,
    idle_seconds: Option<f64>,
    provisional_seconds: Option<f64>,
    challenge_seconds: Option<f64>,
}

impl Configure {
    /// The sockets wanted, the VIP of each listener and the limits, or what is wrong in one line.
    pub(super) fn checked(self) -> Result<(EngineConfig, Vec<Endpoint>, Limits), String> {
        if !(1..=64).contains(&self.workers) {
            return Err(format!("workers: {} is not between 1 and 64", self.workers));
        }
        if self.listeners.is_empty() || self.listeners.len() > 64 {
            return Err(format!(
                "listeners: {} of them is not between 1 and 64",
                self.listeners.len()
            ));
        }
        for (at, listener) in self.listeners.iter().enumerate() {
            if self.listeners[..at]
                .iter()
                .any(|other| other.advertise == listener.advertise)
            {
                return Err(format!(
                    "listeners: two of them advertise {}; give each its own VIP",
                    listener.advertise
                ));
            }
        }
        let limits = self.limits.checked()?;
        let vips = self
            .listeners
            .iter()
            .map(|listener| listener.advertise.into())
            .collect();
        let listeners = self
            .listeners
            .into_iter()
            .map(|Listener { name, bind, .. }| ListenerConfig { name, bind })
            .collect();
        let config = EngineConfig {
            workers: self.workers,
            pin: self.pin,
            backbone: self.backbone,
            listeners,
        };
        Ok((config, vips, limits))
    }
}

impl RelayLimits {
    fn checked(self) -> Result<Limits, String> {
        let default = Limits::default();
        let rate = |wanted: Option<u32>, default: Rate| {
            wanted.map_or(default, |per_second| Rate::with_burst_of(per_second, 1))
        };
        let millis = |name: &str, wanted: Option<f64>, default: u32| match wanted {
            None => Ok(default),
            Some(seconds) if seconds > 0.0 && seconds <= 3_600.0 => {
                Ok(((seconds * 1_000.0) as u32).max(1))
            }
            Some(seconds) => Err(format!(
                "limits.{name}: {seconds} is not above 0 and at most 3600"
            )),
        };
        let flows =
            |name: &str, wanted: Option<usize>, default: usize| match wanted.unwrap_or(default) {
                count if (1..=100_000_000).contains(&count) => Ok(count),
                count => Err(format!(
                    "limits.{name}: {count} is not between 1 and 100000000"
                )),
            };
        let flow_packets = Rate {
            per_second: self.flow_packets.unwrap_or(default.flow_packets.per_second),
            burst: self.flow_burst.unwrap_or(default.flow_packets.burst),
        };
        let stun = self.flow_stun.unwrap_or(default.flow_stun.per_second);
        Ok(Limits {
            flow_packets,
            flow_stun: Rate::with_burst_of(stun, STUN_BURST_SECONDS),
            route_packets: rate(self.route_packets, default.route_packets),
            flows_per_ufrag: match self.flows_per_ufrag.unwrap_or(default.flows_per_ufrag) {
                count if (1..=MAX_FLOWS_PER_UFRAG).contains(&count) => count,
                count => {
                    return Err(format!(
                        "limits.flowsPerUfrag: {count} is not between 1 and {MAX_FLOWS_PER_UFRAG}"
                    ));
                }
            },
            new_flows_per_ufrag: rate(self.new_flows_per_ufrag, default.new_flows_per_ufrag),
            new_flows_per_source: rate(self.new_flows_per_source, default.new_flows_per_source),
            new_flows: rate(self.new_flows, default.new_flows),
            flows: flows("confirmedFlows", self.confirmed_flows, default.flows)?,
            provisional_flows: flows(
                "provisionalFlows",
                self.provisional_flows,
                default.provisional_flows,
            )?,
            idle_ms: millis("idleSeconds", self.idle_seconds, default.idle_ms)?,
            provisional_ms: millis(
                "provisionalSeconds",
                self.provisional_seconds,
                default.provisional_ms,
            )?,
            challenge_ms: millis(
                "challengeSeconds",
                self.challenge_seconds,
                default.challenge_ms,
            )?,
        })
    }
}

/// Reads a list of routes; two for one worker are a mistake.
pub(super) fn routes(entries: Vec<RouteEntry>) -> Result<Vec<(Route, OwnerAddr)>, String> {
    let mut seen = std::collections::HashSet::with_capacity(entries.len());
    let read = |entry: RouteEntry| {
        let RouteEntry {
            cluster,
            ordinal,
            worker,
            address,
        } = entry;
        let name = format!("{cluster}/{ordinal}/{worker}");
        let route = Route::new(cluster, ordinal, worker)
            .ok_or_else(|| format!("routes: {name}: no cluster is 0"))?;
        if !seen.insert((cluster, ordinal, worker)) {
            return Err(format!("routes: {name} stands there twice; keep one"));
        }
        Ok((route, OwnerAddr(address.into())))
    };
    entries.into_iter().map(read).collect()
}

/// Reads the keys of all clusters.
pub(super) fn keys(clusters: &BTreeMap<String, BTreeMap<String, Secret>>) -> Result<Keys, String> {
    let mut keys = Keys::default();
    for (cluster_name, by_id) in clusters {
        let cluster = cluster_name
            .parse::<u16>()
            .ok()
            .filter(|&cluster| cluster > 0);
        let cluster = cluster.ok_or_else(|| {
            format!("clusters: {cluster_name} is not a number between 1 and 65535")
        })?;
        for (id_name, secret) in by_id {
            let place = format!("clusters.{cluster_name}.{id_name}");
            let id = <[u8; 1]>::try_from(id_name.as_bytes())
                .ok()
                .and_then(|[id]| KeyId::new(id));
            let id = id.ok_or_else(|| format!("{place}: a key id is one of A-Z a-z 0-9"))?;
            let bytes = BASE64_STANDARD
                .decode(&secret.0)
                .ok()
                .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
            let bytes = bytes.ok_or_else(|| format!("{place}: a key is 32 bytes in base64"))?;
            keys.add(cluster, id, HintKey::new(id, &bytes));
        }
    }
    Ok(keys)
}
