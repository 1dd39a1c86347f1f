//! What requests change and replies tell.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::protocol::{self, Configure, Operation};
use crate::core::{
    DecodeResult, DropReason, Eviction, Keys, Limits, Routes, Tick, View, Vips, WorkerCounters,
};
use crate::io::Engine;
use crate::log;

/// The last good snapshots and the engine, once it is configured. It outlives every client.
pub(super) struct State {
    clock: Instant,
    view: View,
    engine: Option<Engine>,
}

/// A worker that has not turned for so long hangs: it wakes up four times a second.
const ALIVE_MS: u64 = 1_000;

impl State {
    pub(super) fn new(clock: Instant) -> Self {
        let view = View {
            limits: Limits::default(),
            vips: Arc::new(Vips::default()),
            routes: Arc::new(Routes::default()),
            keys: Arc::new(Keys::default()),
        };
        Self {
            clock,
            view,
            engine: None,
        }
    }

    /// Carries out one request. An error is one line for the operator; nothing has changed then.
    pub(super) fn handle(&mut self, operation: Operation) -> Result<Value, String> {
        match operation {
            Operation::Configure(wanted) => self.configure(wanted),
            Operation::Routes { routes } => {
                let list = protocol::routes(routes)?;
                let routes =
                    Routes::replacing(&self.view.routes, list, &self.view.limits, self.now());
                self.publish(View {
                    routes: Arc::new(routes),
                    ..self.view.clone()
                });
                Ok(json!({ "routes": self.view.routes.len() }))
            }
            Operation::Keys { clusters } => {
                let keys = protocol::keys(&clusters)?;
                self.publish(View {
                    keys: Arc::new(keys),
                    ..self.view.clone()
                });
                Ok(json!({ "keys": self.view.keys.len() }))
            }
            Operation::Stats => Ok(self.stats()),
            Operation::Ping => {
                let alive = self
                    .engine
                    .as_ref()
                    .is_none_or(|engine| engine.turned_within(ALIVE_MS));
                Ok(json!({ "alive": alive }))
            }
        }
    }

    fn configure(&mut self, wanted: Configure) -> Result<Value, String> {
        let (config, vips, limits) = wanted.checked()?;
        let view = View {
            limits,
            vips: Arc::new(Vips::replacing(&self.view.vips, vips)),
            ..self.view.clone()
        };
        match &self.engine {
            Some(engine) if *engine.config() != config => {
                return Err(
                    "restart needed: workers, listeners or backbone differ from the running ones"
                        .into(),
                );
            }
            Some(_) => self.publish(view),
            None => {
                let workers = config.workers;
                let engine = Engine::start(config, view.clone(), self.clock)
                    .map_err(|error| error.to_string())?;
                log::info("engine started", &[("workers", &workers)]);
                self.engine = Some(engine);
                self.view = view;
            }
        }
        Ok(json!({}))
    }

    fn publish(&mut self, view: View) {
        if let Some(engine) = &self.engine {
            engine.publish(view.clone());
        }
        self.view = view;
    }

    fn stats(&self) -> Value {
        let mut stats = json!({
            "routes": self.view.routes.len(),
            "keys": self.view.keys.len(),
            "uptimeSeconds": self.clock.elapsed().as_secs_f64(),
            "workers": [],
            "flows": { "provisional": 0, "confirmed": 0, "challenged": 0 },
            "evictions": {},
        });
        if let Some(engine) = &self.engine {
            let flows = engine.relay().flow_counts();
            let evictions = engine.relay().evictions();
            stats["workers"] = engine
                .counters()
                .enumerate()
                .map(|(number, counters)| worker(number, counters))
                .collect();
            stats["flows"] = json!({
                "provisional": flows.provisional,
                "confirmed": flows.confirmed,
                "challenged": flows.challenged,
            });
            stats["evictions"] = Eviction::ALL
                .iter()
                .map(|&why| (why.label(), evictions.of(why)))
                .collect();
        }
        stats
    }

    fn now(&self) -> Tick {
        Tick::from_millis(u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

fn worker(number: usize, counters: &WorkerCounters) -> Value {
    let drops: BTreeMap<_, _> = DropReason::ALL
        .iter()
        .map(|&why| (why.label(), counters.drops(why)))
        .collect();
    let decodes: BTreeMap<_, _> = DecodeResult::ALL
        .iter()
        .map(|&result| (result.label(), counters.decodes(result)))
        .collect();
    let errors: BTreeMap<_, _> = counters
        .send_errors()
        .map(|(errno, count)| (errno.to_string(), count))
        .collect();
    json!({
        "worker": number,
        "turns": counters.turns.value(),
        "packets": {
            "client_to_transceiver": counters.uplink_packets.value(),
            "transceiver_to_client": counters.downlink_packets.value(),
        },
        "bytes": {
            "client_to_transceiver": counters.uplink_bytes.value(),
            "transceiver_to_client": counters.downlink_bytes.value(),
        },
        "drops": drops,
        "decodes": decodes,
        "sendErrors": errors,
    })
}
