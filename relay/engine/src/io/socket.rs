//! UDP sockets of a reuse-port group, with the options that the relay needs.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::rawaddr::{Family, encode};
use crate::core::Endpoint;

/// A bound, non-blocking UDP socket.
pub(super) struct UdpSocket {
    fd: OwnedFd,
}

/// What a socket is for; the options follow from it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Purpose {
    /// Clients send here. Bound to a wildcard, it reports the address each datagram was sent to.
    Listener,
    /// SPP to and from transceivers. Its datagrams may be fragmented: 38 bytes more than the client's path allowed.
    Backbone,
}

impl UdpSocket {
    /// Binds a socket that shares its address with others of this process.
    pub(super) fn bind(address: Endpoint, purpose: Purpose) -> io::Result<Self> {
        let family = Family::of(address);
        let socket = Self::open(family)?;
        socket.set(libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        if family == Family::V6 {
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
        }
        for (forced, polite) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        ] {
            if socket.set(libc::SOL_SOCKET, forced, KERNEL_BUFFER).is_err() {
                socket.set(libc::SOL_SOCKET, polite, KERNEL_BUFFER)?;
            }
        }
        match (purpose, family) {
            (Purpose::Backbone, Family::V4) => {
                socket.set(
                    libc::IPPROTO_IP,
                    libc::IP_MTU_DISCOVER,
                    libc::IP_PMTUDISC_OMIT,
                )?;
            }
            (Purpose::Backbone, Family::V6) => {
                socket.set(
                    libc::IPPROTO_IPV6,
                    libc::IPV6_MTU_DISCOVER,
                    libc::IPV6_PMTUDISC_OMIT,
                )?;
            }
            (Purpose::Listener, Family::V4) if is_wildcard(address) => {
                socket.set(libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
            }
            (Purpose::Listener, Family::V6) if is_wildcard(address) => {
                socket.set(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
            }
            (Purpose::Listener, Family::V4 | Family::V6) => {}
        }
        socket.bind_to(address)?;
        Ok(socket)
    }

    /// Fails if anybody, this user's other processes included, has the address: they would share it unnoticed.
    pub(super) fn check_free(address: Endpoint) -> io::Result<()> {
        let socket = Self::open(Family::of(address))?;
        if Family::of(address) == Family::V6 {
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
        }
        socket.bind_to(address)
    }

    fn open(family: Family) -> io::Result<Self> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: `socket` takes integers only.
        let fd = unsafe { libc::socket(family.domain(), kind, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just opened, is valid, and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd })
    }

    fn bind_to(&self, address: Endpoint) -> io::Result<()> {
        let (raw, len) = encode(address);
        // SAFETY: `raw` is 28 initialised bytes, `len` is at most that, and the kernel only reads them during the call.
        let result = unsafe { libc::bind(self.fd.as_raw_fd(), raw.as_ptr().cast(), len) };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    fn set(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
        // SAFETY: the option value is one `c_int` that outlives the call, and its true size is given.
        let result = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                option,
                (&raw const value).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

impl AsRawFd for UdpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Whether the address stands for all addresses of this host.
pub(super) fn is_wildcard(address: Endpoint) -> bool {
    let tail = if Family::of(address) == Family::V4 {
        12
    } else {
        0
    };
    address.ip[tail..].iter().all(|&byte| byte == 0)
}

/// Half a second of 100,000 packets a second; the kernel doubles it for its own accounting.
const KERNEL_BUFFER: libc::c_int = 8 << 20;
