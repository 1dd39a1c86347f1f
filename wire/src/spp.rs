//! SPP, Cloudflare's Simple Proxy Protocol, as it goes before every datagram between relay and transceiver.
//!
//! ```text
//! magic 0x56EC u16 | client address 16 | proxy address 16 | client port u16 | proxy port u16      38 bytes, big-endian
//! ```
//!
//! IPv4 addresses stand IPv4-mapped (`::ffff:a.b.c.d`) in the header and as plain IPv4 in `Header`, so each header has
//! exactly one meaning and each meaning one header. The proxy is the VIP that the relay's listener advertises.

#![forbid(unsafe_code)]

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Bytes of the header.
pub const LEN: usize = 38;
/// The first two bytes.
pub const MAGIC: [u8; 2] = [0x56, 0xec];

/// Why a datagram has no SPP header. Each variant is one `reason` label of a drop counter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SppError {
    /// Shorter than the header.
    Truncated,
    /// It starts with something else.
    BadMagic,
    /// A port is 0: nothing could be sent there.
    BadPort,
}

impl SppError {
    /// The counter's label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::BadMagic => "bad_magic",
            Self::BadPort => "bad_port",
        }
    }
}

impl fmt::Display for SppError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Truncated => "the datagram is shorter than an SPP header",
            Self::BadMagic => "the datagram does not start with SPP's magic number",
            Self::BadPort => "the SPP header has a port 0",
        })
    }
}

impl std::error::Error for SppError {}

/// Who a datagram is from or for, and by which VIP.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Header {
    /// The client's address, as the relay sees it.
    pub client: SocketAddr,
    /// The VIP that the client talks to.
    pub proxy: SocketAddr,
}

/// Writes a header. Flow info and scope of IPv6 addresses have no place in it and are lost.
pub fn encode(header: &mut [u8; LEN], client: SocketAddr, proxy: SocketAddr) {
    let client_address = mapped(client.ip()).octets();
    let proxy_address = mapped(proxy.ip()).octets();
    header[0..2].copy_from_slice(&MAGIC);
    header[2..18].copy_from_slice(&client_address);
    header[18..34].copy_from_slice(&proxy_address);
    header[34..36].copy_from_slice(&client.port().to_be_bytes());
    header[36..38].copy_from_slice(&proxy.port().to_be_bytes());
}

/// Reads the header at a datagram's start; the payload is `datagram[LEN..]`.
pub fn decode(datagram: &[u8]) -> Result<Header, SppError> {
    let header = datagram.first_chunk::<LEN>().ok_or(SppError::Truncated)?;
    if header[0..2] != MAGIC {
        return Err(SppError::BadMagic);
    }
    let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let address = |at: usize| {
        Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|byte| header[at + byte])).to_canonical()
    };
    let (client_port, proxy_port) = (port(34), port(36));
    if client_port == 0 || proxy_port == 0 {
        return Err(SppError::BadPort);
    }
    Ok(Header {
        client: SocketAddr::new(address(2), client_port),
        proxy: SocketAddr::new(address(18), proxy_port),
    })
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}
