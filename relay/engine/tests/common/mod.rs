//! A relay with two VIPs and three owners, and callers who do one thing at a time. No socket, no clock.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::net::SocketAddr;
use std::sync::Arc;

use voicecluster_relay_engine::core::{
    Arrival, ClientAddr, Decision, Downlink, DropReason, Endpoint, Eviction, Keys, Limits,
    ListenerId, LocalId, OwnerAddr, Relay, Routes, Seed, Tick, Verdict, View, Vips,
};
use voicecluster_wire::hint::{HintKey, KeyId, Nonce, Route};

pub(crate) type Vip = ListenerId;
pub(crate) const VIP: ListenerId = ListenerId(0);
pub(crate) const OTHER_VIP: ListenerId = ListenerId(1);
pub(crate) const CLUSTER: u16 = 7;

pub(crate) struct World {
    pub(crate) relay: Relay,
    pub(crate) view: View,
    pub(crate) now: Tick,
    key: HintKey,
}

impl World {
    pub(crate) fn new(limits: Limits) -> Self {
        let now = Tick::from_millis(1_000);
        let key = || HintKey::new(KeyId::new(b'A').expect("key id"), &[7; 32]);
        let mut keys = Keys::default();
        keys.add(CLUSTER, KeyId::new(b'A').expect("key id"), key());
        let list = (1..=3).map(|number| (route(number), owner(number)));
        let view = View {
            limits,
            vips: vips(&Vips::default(), ["203.0.113.1:3478", "203.0.113.2:3478"]),
            routes: Arc::new(Routes::replacing(&Routes::default(), list, &limits, now)),
            keys: Arc::new(keys),
        };
        Self {
            relay: Relay::new(1, Seed::new(1, 2), &limits, now),
            view,
            now,
            key: key(),
        }
    }

    pub(crate) fn later(&mut self, millis: u32) {
        self.now = self.now.plus(millis);
    }

    /// The ufrag of a call of this owner.
    pub(crate) fn ufrag(&self, owner: u16, call: u64) -> [u8; 23] {
        self.key
            .mint(route(owner), Nonce::new(call).expect("nonce"))
    }

    pub(crate) fn decide(&self, client: &str, vip: ListenerId, datagram: &[u8]) -> Decision {
        let arrival = Arrival {
            client: caller(client),
            listener: vip,
            local: LocalId(0),
        };
        self.relay
            .from_client(&self.view, arrival, datagram, self.now)
    }

    /// The caller, or somebody with this source address, sends a connectivity check.
    pub(crate) fn check(&self, client: &str, vip: ListenerId, ufrag: &[u8]) -> Verdict {
        self.decide(client, vip, &binding_request(ufrag)).verdict
    }

    /// The caller sends a packet of SRTP.
    pub(crate) fn media(&self, client: &str, vip: ListenerId) -> Verdict {
        self.decide(client, vip, &[0x80; 100]).verdict
    }

    /// The owner answers a check with success.
    pub(crate) fn answer(&self, owner_number: u16, client: &str, vip: ListenerId) -> Downlink {
        self.owner_sends(owner(owner_number), client, vip, &stun(0x0101, &[]))
    }

    pub(crate) fn owner_sends(
        &self,
        sender: OwnerAddr,
        client: &str,
        vip: ListenerId,
        payload: &[u8],
    ) -> Downlink {
        self.owner_sends_by(sender, client, self.view.vips.of(vip), payload)
    }

    /// The owner names this VIP, whether or not a listener still advertises it.
    pub(crate) fn owner_sends_by(
        &self,
        sender: OwnerAddr,
        client: &str,
        vip: Endpoint,
        payload: &[u8],
    ) -> Downlink {
        let client = caller(client);
        self.relay
            .from_owner(&self.view, sender, client, vip, payload, self.now)
    }

    /// From now on the listeners advertise these VIPs.
    pub(crate) fn advertise(&mut self, addresses: [&str; 2]) {
        self.view.vips = vips(&self.view.vips, addresses);
    }

    /// A check and its answer: the flow is confirmed.
    pub(crate) fn connect(&self, client: &str, vip: ListenerId, owner_number: u16, call: u64) {
        assert_eq!(
            self.check(client, vip, &self.ufrag(owner_number, call)),
            to(owner_number)
        );
        assert_eq!(
            self.answer(owner_number, client, vip),
            delivered(client, vip)
        );
    }

    pub(crate) fn sweep(&self) {
        self.relay.sweep(0, 1_000, &self.view.limits, self.now);
    }

    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let counts = self.relay.flow_counts();
        (counts.provisional, counts.confirmed, counts.challenged)
    }

    /// Why flows ended so far, with how many did.
    pub(crate) fn evictions(&self) -> Vec<(&'static str, u64)> {
        let all = Eviction::ALL
            .iter()
            .map(|&why| (why.label(), self.relay.evictions().of(why)));
        all.filter(|&(_, count)| count > 0).collect()
    }
}

pub(crate) fn route(number: u16) -> Route {
    Route::new(CLUSTER, number, 0).expect("route")
}

pub(crate) fn owner(number: u16) -> OwnerAddr {
    OwnerAddr(endpoint(&format!("10.0.0.{number}:40000")))
}

pub(crate) fn caller(address: &str) -> ClientAddr {
    ClientAddr(endpoint(address))
}

pub(crate) fn endpoint(address: &str) -> Endpoint {
    address.parse::<SocketAddr>().expect("address").into()
}

fn vips(previous: &Vips, addresses: [&str; 2]) -> Arc<Vips> {
    Arc::new(Vips::replacing(previous, addresses.map(endpoint)))
}

pub(crate) fn to(owner_number: u16) -> Verdict {
    Verdict::Forward(owner(owner_number))
}

pub(crate) fn to_both(incumbent: u16, challenger: u16) -> Verdict {
    Verdict::ForwardBoth(owner(incumbent), owner(challenger))
}

pub(crate) fn dropped(why: DropReason) -> Verdict {
    Verdict::Drop(why)
}

pub(crate) fn delivered(client: &str, vip: ListenerId) -> Downlink {
    Downlink::Deliver {
        client: caller(client),
        listener: vip,
        local: LocalId(0),
    }
}

/// A binding request with this ufrag before the colon of its USERNAME.
pub(crate) fn binding_request(ufrag: &[u8]) -> Vec<u8> {
    let username = [ufrag, b":peer"].concat();
    stun(0x0001, &attribute(0x0006, &username))
}

/// A STUN message without FINGERPRINT.
pub(crate) fn stun(kind: u16, attributes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(attributes.len()).expect("short");
    let header = [
        &kind.to_be_bytes()[..],
        &length.to_be_bytes(),
        &[0x21, 0x12, 0xa4, 0x42],
        &[9; 12],
    ]
    .concat();
    [header, attributes.to_vec()].concat()
}

pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).expect("short");
    let mut bytes = [&kind.to_be_bytes()[..], &length.to_be_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}
