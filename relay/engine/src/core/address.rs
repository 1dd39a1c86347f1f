//! Addresses as newtypes, so that the two sides of the relay cannot be swapped.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// An IP address and port in SPP's form: IPv4 is mapped into IPv6.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Endpoint {
    /// The address, IPv4-mapped where it is one.
    pub ip: [u8; 16],
    /// The UDP port.
    pub port: u16,
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        Self {
            ip,
            port: address.port(),
        }
    }
}

impl From<Endpoint> for SocketAddr {
    fn from(endpoint: Endpoint) -> Self {
        Self::new(Ipv6Addr::from(endpoint.ip).to_canonical(), endpoint.port)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::from(*self).fmt(f)
    }
}

/// Where a caller's packets come from: outside, so possibly forged.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ClientAddr(pub Endpoint);

impl ClientAddr {
    /// The network that new flows are limited by: /24 of IPv4, /48 of IPv6.
    pub fn network(self) -> [u8; 16] {
        const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        let kept = if self.0.ip[..12] == MAPPED { 15 } else { 6 };
        let mut network = [0; 16];
        network[..kept].copy_from_slice(&self.0.ip[..kept]);
        network
    }
}

/// A transceiver worker's media address, inside.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct OwnerAddr(pub Endpoint);

/// Which listener, and with it which VIP, a packet came to. An index into the configured listeners.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ListenerId(pub u16);

/// Which of this host's addresses a packet came to: an index that the shell gives out, meaningless to the core.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LocalId(pub u16);

/// What a flow is known by. NATs reuse one client port towards two VIPs, so the VIP belongs to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FlowKey {
    /// The caller's address and port.
    pub client: ClientAddr,
    /// The VIP.
    pub listener: ListenerId,
}

/// A keyed hash: callers choose addresses and ufrags, so nobody may know where they land in a table.
#[derive(Clone, Copy, Debug)]
pub struct Seed(u64, u64);

impl Seed {
    /// Makes the hash of one process from two random words.
    pub const fn new(first: u64, second: u64) -> Self {
        Self(first | 1, second)
    }

    pub(crate) fn flow(self, key: &FlowKey) -> u64 {
        let tail = u64::from(key.client.0.port) << 16 | u64::from(key.listener.0);
        self.words(&key.client.0.ip, tail)
    }

    pub(crate) fn network(self, network: &[u8; 16]) -> u64 {
        self.words(network, 0x6e65_7477)
    }

    pub(crate) fn ufrag(self, ufrag: &[u8; 23]) -> u64 {
        let mut head = [0; 16];
        head.copy_from_slice(&ufrag[..16]);
        let mut tail = [0; 8];
        tail[..7].copy_from_slice(&ufrag[16..]);
        self.words(&head, u64::from_le_bytes(tail))
    }

    fn words(self, head: &[u8; 16], tail: u64) -> u64 {
        let both = u128::from_le_bytes(*head);
        let (low, high) = ((both & u128::from(u64::MAX)) as u64, (both >> 64) as u64);
        let first = fold(low ^ self.0, high ^ self.1);
        fold(first ^ tail ^ self.1, self.0 ^ 0x9e37_79b9_7f4a_7c15)
    }
}

/// Multiplies to 128 bits and folds the halves.
fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    (wide as u64) ^ ((wide >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> ClientAddr {
        ClientAddr(text.parse::<SocketAddr>().expect("address").into())
    }

    #[test]
    fn a_socket_address_survives_the_mapping() {
        for text in ["192.0.2.7:40000", "[2001:db8::7]:40000"] {
            let address: SocketAddr = text.parse().expect("address");
            assert_eq!(SocketAddr::from(Endpoint::from(address)), address);
        }
    }

    #[test]
    fn sources_are_counted_by_24_and_by_48() {
        assert_eq!(
            client("192.0.2.7:1").network(),
            client("192.0.2.200:2").network()
        );
        assert_ne!(
            client("192.0.2.7:1").network(),
            client("192.0.3.7:1").network()
        );
        assert_eq!(
            client("[2001:db8:1:2::1]:1").network(),
            client("[2001:db8:1:3::9]:1").network()
        );
        assert_ne!(
            client("[2001:db8:1::1]:1").network(),
            client("[2001:db8:2::1]:1").network()
        );
    }
}
