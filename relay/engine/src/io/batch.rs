//! recvmmsg and sendmmsg over buffers that are allocated once.
//!
//! An [`Inbox`] owns the buffers. An [`Outbox`] holds plain values (which part of which buffer goes where) and turns
//! them into pointers only for the duration of a flush, so nothing here outlives what it points to.

use std::os::fd::AsRawFd;
use std::{io, ptr};

use super::rawaddr::{CONTROL, RawAddr, decode, decode_destination, encode, encode_source};
use super::socket::UdpSocket;
use crate::core::{Endpoint, MAX_CLIENT_DATAGRAM};

/// Datagrams a system call.
pub(super) const BATCH: usize = 64;

/// Room before a client's datagram for the SPP header.
pub(super) const HEADROOM: usize = 38;

/// Bytes of one buffer: headroom and the largest datagram.
pub(super) const SLOT: usize = HEADROOM + MAX_CLIENT_DATAGRAM;

/// Received datagrams with their metadata. Not `Send`: it lives in its worker's thread.
pub(super) struct Inbox {
    slots: Box<[[u8; SLOT]]>,
    names: Box<[RawAddr]>,
    controls: Box<[[u8; CONTROL]]>,
    headers: Box<[libc::mmsghdr]>,
    /// The headers point into these.
    _iovecs: Box<[libc::iovec]>,
    offset: usize,
    received: usize,
}

/// What came with a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meta {
    /// Who sent it.
    pub(super) source: Endpoint,
    /// Where to, if the socket reports that.
    pub(super) destination: Option<[u8; 16]>,
    /// Whether it was longer than its buffer.
    pub(super) truncated: bool,
}

impl Inbox {
    /// Makes buffers that datagrams are received into at `offset`, up to their end.
    pub(super) fn new(offset: usize) -> Self {
        assert!(offset < SLOT, "the offset lies in the buffer");
        let mut slots = vec![[0; SLOT]; BATCH].into_boxed_slice();
        let mut names = vec![[0; 28]; BATCH].into_boxed_slice();
        let mut controls = vec![[0; CONTROL]; BATCH].into_boxed_slice();
        let mut iovecs: Box<[_]> = slots
            .iter_mut()
            .map(|slot| libc::iovec {
                iov_base: slot[offset..].as_mut_ptr().cast(),
                iov_len: SLOT - offset,
            })
            .collect();
        let headers = (0..BATCH)
            .map(|at| {
                let mut header = empty_header();
                header.msg_hdr.msg_name = names[at].as_mut_ptr().cast();
                header.msg_hdr.msg_control = controls[at].as_mut_ptr().cast();
                header.msg_hdr.msg_iov = &raw mut iovecs[at];
                header.msg_hdr.msg_iovlen = 1;
                header
            })
            .collect();
        Self {
            slots,
            names,
            controls,
            headers,
            _iovecs: iovecs,
            offset,
            received: BATCH,
        }
    }

    /// Receives what is there, at most a batch; 0 if nothing is.
    pub(super) fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        for header in &mut self.headers[..self.received] {
            header.msg_hdr.msg_namelen = size_of::<RawAddr>() as libc::socklen_t;
            header.msg_hdr.msg_controllen = CONTROL;
            header.msg_hdr.msg_flags = 0;
        }
        self.received = 0;
        // SAFETY: `new` pointed every header at boxed buffers that this inbox owns, never moves and never resizes, with
        // their true lengths, and the loop above restored those the kernel had shortened; `&mut self` keeps everyone
        // else out until the kernel has returned.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        if received < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock {
                Ok(0)
            } else {
                Err(error)
            };
        }
        self.received = received as usize;
        Ok(self.received)
    }

    /// One received datagram.
    pub(super) fn datagram(&self, at: usize) -> &[u8] {
        &self.slots[at][self.offset..self.offset + self.len(at)]
    }

    /// The room before it.
    pub(super) fn headroom(&mut self, at: usize) -> &mut [u8] {
        &mut self.slots[at][..self.offset]
    }

    /// Its metadata.
    pub(super) fn meta(&self, at: usize) -> Meta {
        let header = &self.headers[at].msg_hdr;
        let control = &self.controls[at][..header.msg_controllen.min(CONTROL)];
        Meta {
            source: decode(&self.names[at]),
            destination: if control.is_empty() {
                None
            } else {
                decode_destination(control)
            },
            truncated: header.msg_flags & libc::MSG_TRUNC != 0,
        }
    }

    fn len(&self, at: usize) -> usize {
        (self.headers[at].msg_len as usize).min(SLOT - self.offset)
    }
}

/// A part of an inbox's buffer and where it is to go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub(super) slot: usize,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) to: Endpoint,
    /// The local address to send from; `None` leaves it to the socket.
    pub(super) from: Option<[u8; 16]>,
}

/// Datagrams to be sent from one socket. Not `Send`: it lives in its worker's thread.
pub(super) struct Outbox {
    queue: Vec<Outgoing>,
    names: Box<[RawAddr]>,
    controls: Box<[[u8; CONTROL]]>,
    iovecs: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
}

impl Outbox {
    /// A client's datagram may go to two owners.
    const CAPACITY: usize = 2 * BATCH;

    pub(super) fn new() -> Self {
        let iovec = libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        };
        Self {
            queue: Vec::with_capacity(Self::CAPACITY),
            names: vec![[0; 28]; Self::CAPACITY].into(),
            controls: vec![[0; CONTROL]; Self::CAPACITY].into(),
            iovecs: vec![iovec; Self::CAPACITY].into(),
            headers: (0..Self::CAPACITY).map(|_| empty_header()).collect(),
        }
    }

    /// Adds a datagram. The queue has room for two for each of a batch; what is above that would be a bug, and is lost.
    pub(super) fn push(&mut self, outgoing: Outgoing) {
        if self.queue.len() < Self::CAPACITY {
            self.queue.push(outgoing);
        }
    }

    /// Sends everything queued. `sent` hears the payload bytes of each that the kernel took, `failed` the errno of each
    /// that it did not; those are not tried again.
    pub(super) fn flush(
        &mut self,
        inbox: &Inbox,
        socket: &UdpSocket,
        mut sent: impl FnMut(&Outgoing),
        mut failed: impl FnMut(i32),
    ) {
        for (at, outgoing) in self.queue.iter().enumerate() {
            let part = &inbox.slots[outgoing.slot][outgoing.start..outgoing.end];
            self.iovecs[at] = libc::iovec {
                iov_base: part.as_ptr().cast_mut().cast(),
                iov_len: part.len(),
            };
            let (name, name_len) = encode(outgoing.to);
            self.names[at] = name;
            let header = &mut self.headers[at].msg_hdr;
            header.msg_name = self.names[at].as_mut_ptr().cast();
            header.msg_namelen = name_len;
            header.msg_iov = &raw mut self.iovecs[at];
            header.msg_iovlen = 1;
            match &outgoing.from {
                Some(ip) => {
                    header.msg_controllen = encode_source(ip, &mut self.controls[at]);
                    header.msg_control = self.controls[at].as_mut_ptr().cast();
                }
                None => (header.msg_control, header.msg_controllen) = (ptr::null_mut(), 0),
            }
        }
        let mut done = 0;
        while done < self.queue.len() {
            let waiting = self.queue.len() - done;
            // SAFETY: the loop above pointed the first `queue.len()` headers at this outbox's own boxed arrays and at
            // bytes of `inbox`, which is borrowed until the end of this function; the kernel only reads through them
            // and writes `msg_len` of the headers, which `&mut self` owns.
            let taken = unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    self.headers[done..].as_mut_ptr(),
                    waiting as libc::c_uint,
                    libc::MSG_DONTWAIT as _,
                )
            };
            if taken > 0 {
                self.queue[done..done + taken as usize]
                    .iter()
                    .for_each(&mut sent);
                done += taken as usize;
                continue;
            }
            let error = io::Error::last_os_error();
            let full = error.kind() == io::ErrorKind::WouldBlock;
            let lost = if full { waiting } else { 1 };
            (0..lost).for_each(|_| failed(error.raw_os_error().unwrap_or(0)));
            done += lost;
        }
        self.queue.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

fn empty_header() -> libc::mmsghdr {
    // SAFETY: `mmsghdr` is integers and pointers, for which all zeros is a valid value: null, nothing of length 0.
    unsafe { std::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket as StdSocket};

    use super::super::socket::Purpose;
    use super::*;

    fn endpoint(text: &str) -> Endpoint {
        text.parse::<SocketAddr>().expect("address").into()
    }

    fn bound(ip: &str) -> (UdpSocket, SocketAddr) {
        let probe = StdSocket::bind((ip, 0)).expect("port");
        let port = probe.local_addr().expect("address").port();
        drop(probe);
        let socket =
            UdpSocket::bind(endpoint(&format!("{ip}:{port}")), Purpose::Listener).expect("socket");
        (
            socket,
            format!("127.0.101.7:{port}").parse().expect("address"),
        )
    }

    fn receive(inbox: &mut Inbox, socket: &UdpSocket) -> usize {
        loop {
            match inbox.receive(socket).expect("receive") {
                0 => super::super::poll::wait_readable(&[socket.as_raw_fd()], 1_000),
                n => return n,
            };
        }
    }

    #[test]
    fn a_reply_leaves_from_the_address_that_a_wildcard_listener_was_reached_at() {
        let (socket, reached) = bound("0.0.0.0");
        let client = StdSocket::bind("127.0.0.1:0").expect("client");
        client.send_to(b"hello", reached).expect("send");
        let mut inbox = Inbox::new(HEADROOM);
        assert_eq!(receive(&mut inbox, &socket), 1);
        let (meta, bytes) = (inbox.meta(0), inbox.datagram(0));
        assert_eq!((bytes, meta.truncated), (&b"hello"[..], false));
        let mut outbox = Outbox::new();
        let (start, end) = (HEADROOM, HEADROOM + bytes.len());
        outbox.push(Outgoing {
            slot: 0,
            start,
            end,
            to: meta.source,
            from: meta.destination,
        });
        let (mut sent, mut failed) = (0, Vec::new());
        outbox.flush(&inbox, &socket, |_| sent += 1, |errno| failed.push(errno));
        let mut buffer = [0; 16];
        let (len, from) = client.recv_from(&mut buffer).expect("reply");
        assert_eq!(
            (sent, failed, &buffer[..len], from),
            (1, vec![], &b"hello"[..], reached)
        );
    }

    #[test]
    fn a_datagram_longer_than_its_buffer_is_marked() {
        let (socket, reached) = bound("0.0.0.0");
        let client = StdSocket::bind("127.0.0.1:0").expect("client");
        for len in [MAX_CLIENT_DATAGRAM, MAX_CLIENT_DATAGRAM + 1] {
            client.send_to(&vec![0x80; len], reached).expect("send");
            let mut inbox = Inbox::new(HEADROOM);
            assert_eq!(receive(&mut inbox, &socket), 1);
            assert_eq!(inbox.meta(0).truncated, len > MAX_CLIENT_DATAGRAM);
        }
    }

    #[test]
    fn one_unreachable_destination_costs_no_other_datagram() {
        let (socket, reached) = bound("127.0.101.7");
        let client = StdSocket::bind("127.0.0.1:0").expect("client");
        client.send_to(b"hello", reached).expect("send");
        let mut inbox = Inbox::new(HEADROOM);
        assert_eq!(receive(&mut inbox, &socket), 1);
        let to = inbox.meta(0).source;
        let mut outbox = Outbox::new();
        for to in [endpoint("[2001:db8::1]:9"), to] {
            outbox.push(Outgoing {
                slot: 0,
                start: HEADROOM,
                end: HEADROOM + 5,
                to,
                from: None,
            });
        }
        let (mut sent, mut failed) = (0, Vec::new());
        outbox.flush(&inbox, &socket, |_| sent += 1, |errno| failed.push(errno));
        assert_eq!((sent, failed), (1, vec![libc::EAFNOSUPPORT]));
    }
}
