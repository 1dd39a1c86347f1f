//! What the engine's core decides in a second of processor time, and what a flow weighs. No socket: the kernel is not
//! in it. Processor time, so that a busy machine does not count.
//!
//! `cargo bench -p voicecluster-relay-engine` prints a JSON line a row. `-- --smoke` runs each part once, briefly.

use std::hint::black_box;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use voicecluster_relay_engine::core::{
    Arrival, ClientAddr, Endpoint, Keys, Limits, ListenerId, LocalId, OwnerAddr, Rate, Relay,
    Routes, Seed, Tick, Verdict, View, Vips,
};
use voicecluster_wire::hint::{HintKey, KeyId, Nonce, Route};

const UNLIMITED: Rate = Rate {
    per_second: 100_000_000,
    burst: 4_000_000,
};
const MEGA: f64 = 1_000_000.0;

fn main() {
    let smoke = std::env::args().any(|argument| argument == "--smoke");
    let scale = if smoke { 1 } else { 100 };
    let bench = Bench::new();
    bench.garbage(20_000 * scale);
    bench.new_flows(2_000 * scale);
    bench.media(20_000 * scale);
}

struct Bench {
    view: View,
    key: HintKey,
    owner: OwnerAddr,
}

impl Bench {
    fn new() -> Self {
        let id = KeyId::new(b'A').expect("key id");
        let key = HintKey::new(id, &[7; 32]);
        let owner = OwnerAddr(endpoint("10.0.0.1:40000"));
        let limits = Limits {
            flow_packets: UNLIMITED,
            flow_stun: UNLIMITED,
            route_packets: UNLIMITED,
            new_flows: UNLIMITED,
            new_flows_per_source: UNLIMITED,
            ..Limits::default()
        };
        let mut keys = Keys::default();
        keys.add(7, id, key.clone());
        let now = Tick::from_millis(0);
        let routes = Routes::replacing(&Routes::default(), [(route(), owner)], &limits, now);
        let vips = Arc::new(Vips::replacing(
            &Vips::default(),
            [endpoint("203.0.113.1:3478")],
        ));
        let view = View {
            limits,
            vips,
            routes: Arc::new(routes),
            keys: Arc::new(keys),
        };
        Self { view, key, owner }
    }

    fn relay(&self) -> Relay {
        Relay::new(16, Seed::new(3, 4), &self.view.limits, Tick::from_millis(0))
    }

    /// STUN that makes no flow, of three kinds, from many addresses.
    fn garbage(&self, count: usize) {
        let relay = self.relay();
        let mut forged = self.ufrag(1);
        forged[7] = if forged[7] == b'x' { b'y' } else { b'x' };
        let kinds = [
            (
                "garbage STUN rejected: no magic cookie",
                [&[0, 1, 0, 80][..], &[0xaa; 96]].concat(),
            ),
            (
                "garbage STUN rejected: wrong fingerprint",
                request(&self.ufrag(1), Some([1, 2, 3, 4])),
            ),
            (
                "garbage STUN rejected: forged hint, decrypted",
                request(&forged, None),
            ),
        ];
        for (what, datagram) in kinds {
            let started = processor_time();
            for number in 0..count {
                let decision = relay.from_client(
                    &self.view,
                    arrival(number),
                    black_box(&datagram),
                    Tick::from_millis(0),
                );
                assert!(matches!(decision.verdict, Verdict::Drop(_)));
            }
            report(what, count, started);
        }
    }

    /// Valid hints of distinct calls from distinct addresses, each answered by its owner.
    fn new_flows(&self, count: usize) {
        let checks: Vec<_> = (0..count)
            .map(|call| request(&self.ufrag(call as u64), None))
            .collect();
        let success = message(0x0101, &[]);
        let before = resident_bytes();
        let relay = self.relay();
        let started = processor_time();
        for (number, check) in checks.iter().enumerate() {
            let now = Tick::from_millis((number / 200) as u64);
            let arrival = arrival(number);
            let verdict = relay.from_client(&self.view, arrival, check, now).verdict;
            assert_eq!(verdict, Verdict::Forward(self.owner));
            relay.from_owner(
                &self.view,
                self.owner,
                arrival.client,
                self.view.vips.of(ListenerId(0)),
                &success,
                now,
            );
        }
        let elapsed = (processor_time() - started).as_secs_f64();
        let flows = relay.flow_counts().confirmed;
        print(
            "new flows from valid hints, confirmed",
            count as f64 / elapsed,
            "flows/s",
        );
        let grown = resident_bytes().saturating_sub(before);
        print(
            "memory per flow, its ufrag's entry included",
            grown as f64 / flows as f64,
            "bytes",
        );
    }

    /// SRTP of 1,000 confirmed flows.
    fn media(&self, count: usize) {
        let relay = self.relay();
        let now = Tick::from_millis(0);
        for number in 0..1_000 {
            let arrival = arrival(number);
            relay.from_client(
                &self.view,
                arrival,
                &request(&self.ufrag(number as u64), None),
                now,
            );
            let success = message(0x0101, &[]);
            relay.from_owner(
                &self.view,
                self.owner,
                arrival.client,
                self.view.vips.of(ListenerId(0)),
                &success,
                now,
            );
        }
        let media = [0x80; 160];
        let started = processor_time();
        for number in 0..count {
            let now = Tick::from_millis((number / 50_000) as u64);
            let decision =
                relay.from_client(&self.view, arrival(number % 1_000), black_box(&media), now);
            assert!(matches!(decision.verdict, Verdict::Forward(_)));
        }
        report("media packets decided, client to owner", count, started);
        let started = processor_time();
        for number in 0..count {
            let client = arrival(number % 1_000).client;
            black_box(relay.from_owner(
                &self.view,
                self.owner,
                client,
                self.view.vips.of(ListenerId(0)),
                &media,
                now,
            ));
        }
        report("media packets decided, owner to client", count, started);
    }

    fn ufrag(&self, call: u64) -> [u8; 23] {
        self.key.mint(route(), Nonce::new(call).expect("nonce"))
    }
}

fn report(what: &str, count: usize, started: Duration) {
    print(
        what,
        count as f64 / (processor_time() - started).as_secs_f64() / MEGA,
        "million/s/core",
    );
}

fn print(what: &str, value: f64, unit: &str) {
    let row = json!({ "what": what, "value": (value * 1_000.0).round() / 1_000.0, "unit": unit });
    writeln!(std::io::stdout(), "{row}").expect("standard output");
}

fn arrival(number: usize) -> Arrival {
    let mut ip = endpoint("0.0.0.0:0").ip;
    ip[12..].copy_from_slice(&(0x0b00_0000 + number as u32).to_be_bytes());
    Arrival {
        client: ClientAddr(Endpoint { ip, port: 50_000 }),
        listener: ListenerId(0),
        local: LocalId(0),
    }
}

fn route() -> Route {
    Route::new(7, 1, 0).expect("route")
}

fn endpoint(address: &str) -> Endpoint {
    address.parse::<SocketAddr>().expect("address").into()
}

/// A check as browsers send it: about 100 bytes with MESSAGE-INTEGRITY (which no relay looks at).
fn request(ufrag: &[u8], fingerprint: Option<[u8; 4]>) -> Vec<u8> {
    let username = [ufrag, b":abcd"].concat();
    let mut attributes = [
        attribute(0x0006, &username),
        attribute(0x0024, &[0; 4]),
        attribute(0x0008, &[5; 20]),
    ]
    .concat();
    if let Some(value) = fingerprint {
        attributes.extend(attribute(0x8028, &value));
    }
    message(0x0001, &attributes)
}

fn message(kind: u16, attributes: &[u8]) -> Vec<u8> {
    let length = (attributes.len() as u16).to_be_bytes();
    [
        &kind.to_be_bytes()[..],
        &length,
        &[0x21, 0x12, 0xa4, 0x42],
        &[9; 12],
        attributes,
    ]
    .concat()
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = [
        &kind.to_be_bytes()[..],
        &(value.len() as u16).to_be_bytes(),
        value,
    ]
    .concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Resident memory of this process.
fn resident_bytes() -> usize {
    const PAGE: usize = 4_096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<usize>().ok())
        .unwrap_or_default()
        * PAGE
}

/// Processor time of this thread so far.
fn processor_time() -> Duration {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat")
        .expect("Linux tells a thread's time");
    let nanos = schedstat
        .split(' ')
        .next()
        .and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("the first word is nanoseconds"))
}
