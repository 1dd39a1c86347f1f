//! Counters of the core and of each worker: plain numbers, written with relaxed stores, read by the control server.

use std::sync::atomic::{AtomicU64, Ordering};

use super::verdict::{DecodeResult, DropReason, Eviction};

/// How many flows ended for which reason, in the whole process.
#[derive(Debug, Default)]
pub struct Evictions([AtomicU64; Eviction::COUNT]);

impl Evictions {
    pub(super) fn count(&self, why: Eviction) {
        self.0[why.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// The count of one reason.
    pub fn of(&self, why: Eviction) -> u64 {
        self.0[why.index()].load(Ordering::Relaxed)
    }
}

/// What one worker did. Only that worker writes.
#[derive(Debug, Default)]
pub struct WorkerCounters {
    /// Times it woke up.
    pub turns: Counter,
    /// Packets sent on to transceivers.
    pub uplink_packets: Counter,
    /// Their bytes as the client sent them.
    pub uplink_bytes: Counter,
    /// Packets sent on to clients.
    pub downlink_packets: Counter,
    /// Their bytes as the client gets them.
    pub downlink_bytes: Counter,
    drops: [Counter; DropReason::COUNT],
    decodes: [Counter; DecodeResult::COUNT],
    send_errors: ErrnoCounters,
}

impl WorkerCounters {
    /// Counts a packet that went nowhere.
    pub fn dropped(&self, why: DropReason) {
        self.drops[why.index()].add(1);
    }

    /// Counts a ufrag that was decoded.
    pub fn decoded(&self, result: DecodeResult) {
        self.decodes[result.index()].add(1);
    }

    /// Counts a datagram that the kernel did not take.
    pub fn send_failed(&self, errno: i32) {
        self.send_errors.0[usize::try_from(errno).unwrap_or(0).min(ERRNOS - 1)].add(1);
    }

    /// Packets dropped for one reason.
    pub fn drops(&self, why: DropReason) -> u64 {
        self.drops[why.index()].value()
    }

    /// Ufrags with one result.
    pub fn decodes(&self, result: DecodeResult) -> u64 {
        self.decodes[result.index()].value()
    }

    /// Every errno that sending met, with its count. Errors above 255 are counted as 255.
    pub fn send_errors(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.send_errors.0.iter().map(Counter::value);
        counts.enumerate().filter(|&(_, count)| count > 0)
    }
}

/// A number that one thread writes and others read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it. Plain load and store: there is only one writer.
    pub fn add(&self, more: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(more),
            Ordering::Relaxed,
        );
    }

    /// What it is.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

const ERRNOS: usize = 256;

#[derive(Debug)]
struct ErrnoCounters(Box<[Counter]>);

impl Default for ErrnoCounters {
    fn default() -> Self {
        Self((0..ERRNOS).map(|_| Counter::default()).collect())
    }
}
