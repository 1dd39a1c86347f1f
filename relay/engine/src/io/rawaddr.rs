//! `sockaddr_in`, `sockaddr_in6` and the packet-info control messages as plain bytes: read and written without a cast.

use crate::core::Endpoint;

/// Room for either socket address.
pub(super) type RawAddr = [u8; 28];

/// The size of the control buffer of one message: one packet-info of either family fits.
pub(super) const CONTROL: usize = 64;

const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
const CMSG_HEADER: usize = 16;

/// The address family of a socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    pub(super) fn of(endpoint: Endpoint) -> Self {
        if endpoint.ip[..12] == MAPPED {
            Self::V4
        } else {
            Self::V6
        }
    }

    pub(super) const fn domain(self) -> libc::c_int {
        match self {
            Self::V4 => libc::AF_INET,
            Self::V6 => libc::AF_INET6,
        }
    }
}

/// Writes a socket address; returns it and its length.
pub(super) fn encode(endpoint: Endpoint) -> (RawAddr, libc::socklen_t) {
    let mut raw = [0; 28];
    let family = Family::of(endpoint);
    raw[..2].copy_from_slice(&(family.domain() as u16).to_ne_bytes());
    raw[2..4].copy_from_slice(&endpoint.port.to_be_bytes());
    match family {
        Family::V4 => {
            raw[4..8].copy_from_slice(&endpoint.ip[12..]);
            (raw, 16)
        }
        Family::V6 => {
            raw[8..24].copy_from_slice(&endpoint.ip);
            (raw, 28)
        }
    }
}

/// Reads a socket address as the kernel wrote it. One of another family is the unspecified address.
pub(super) fn decode(raw: &RawAddr) -> Endpoint {
    let family = libc::c_int::from(u16::from_ne_bytes([raw[0], raw[1]]));
    let port = u16::from_be_bytes([raw[2], raw[3]]);
    let mut ip = [0; 16];
    if family == libc::AF_INET {
        ip[..12].copy_from_slice(&MAPPED);
        ip[12..].copy_from_slice(&raw[4..8]);
    } else if family == libc::AF_INET6 {
        ip.copy_from_slice(&raw[8..24]);
    }
    Endpoint { ip, port }
}

/// Writes the packet-info that makes a datagram leave from `ip`; returns its length.
pub(super) fn encode_source(ip: &[u8; 16], control: &mut [u8; CONTROL]) -> usize {
    control.fill(0);
    let (level, kind, size) = if ip[..12] == MAPPED {
        control[CMSG_HEADER + 4..CMSG_HEADER + 8].copy_from_slice(&ip[12..]);
        (libc::IPPROTO_IP, libc::IP_PKTINFO, 12)
    } else {
        control[CMSG_HEADER..CMSG_HEADER + 16].copy_from_slice(ip);
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, 20)
    };
    control[..8].copy_from_slice(&(CMSG_HEADER + size).to_ne_bytes());
    control[8..12].copy_from_slice(&level.to_ne_bytes());
    control[12..16].copy_from_slice(&kind.to_ne_bytes());
    (CMSG_HEADER + size).next_multiple_of(8)
}

/// Reads the address that a datagram was sent to from its control messages.
pub(super) fn decode_destination(control: &[u8]) -> Option<[u8; 16]> {
    let mut rest = control;
    while let Some((header, _)) = rest.split_first_chunk::<CMSG_HEADER>() {
        let len = usize::from_ne_bytes(header[..8].try_into().ok()?);
        let level = i32::from_ne_bytes(header[8..12].try_into().ok()?);
        let kind = i32::from_ne_bytes(header[12..16].try_into().ok()?);
        let data = rest.get(CMSG_HEADER..len)?;
        if (level, kind) == (libc::IPPROTO_IP, libc::IP_PKTINFO) {
            let mut ip = [0; 16];
            ip[..12].copy_from_slice(&MAPPED);
            ip[12..].copy_from_slice(data.get(8..12)?);
            return Some(ip);
        }
        if (level, kind) == (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) {
            return data.get(..16)?.try_into().ok();
        }
        rest = rest.get(len.next_multiple_of(8)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn both_families_survive_the_kernels_form() {
        for text in ["192.0.2.7:40000", "[2001:db8::7]:40000"] {
            let endpoint = Endpoint::from(text.parse::<SocketAddr>().expect("address"));
            assert_eq!(decode(&encode(endpoint).0), endpoint);
        }
    }

    #[test]
    fn a_truncated_control_message_is_no_address() {
        let mut control = [0; CONTROL];
        let ip = Endpoint::from("192.0.2.7:1".parse::<SocketAddr>().expect("address")).ip;
        let len = encode_source(&ip, &mut control);
        assert_eq!(len, 32);
        assert_eq!(decode_destination(&control[..20]), None);
        assert_eq!(decode_destination(&[0xff; CONTROL]), None);
    }
}
