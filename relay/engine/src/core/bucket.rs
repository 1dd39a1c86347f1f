//! Token buckets: a sustained rate and a burst, refilled by the time that is handed in.

use std::sync::atomic::{AtomicU64, Ordering};

use super::time::Tick;

/// A sustained rate and the burst above it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rate {
    /// Tokens a second; one second's worth of them is a millisecond's worth of thousandths.
    pub per_second: u32,
    /// Tokens a full bucket holds. Above 4 million it counts as 4 million.
    pub burst: u32,
}

impl Rate {
    /// A rate whose burst is `seconds` of it.
    pub const fn with_burst_of(per_second: u32, seconds: u32) -> Self {
        Self {
            per_second,
            burst: per_second.saturating_mul(seconds),
        }
    }

    const fn capacity(self) -> u32 {
        let burst = if self.burst > MAX_BURST {
            MAX_BURST
        } else {
            self.burst
        };
        burst * TOKEN
    }
}

/// Whether a bucket had a token left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Taken {
    /// The packet may pass.
    Granted,
    /// The rate is used up.
    Refused,
}

/// One bucket, 8 bytes. Levels are thousandths of a token, so that a millisecond refills a whole number of them.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    level: u32,
    at: Tick,
}

impl Bucket {
    /// A full bucket.
    pub const fn full(rate: Rate, now: Tick) -> Self {
        Self {
            level: rate.capacity(),
            at: now,
        }
    }

    /// Takes one token if there is one.
    pub fn take(&mut self, rate: Rate, now: Tick) -> Taken {
        let elapsed = now.since(self.at);
        if elapsed > 0 {
            let refill = u64::from(elapsed) * u64::from(rate.per_second);
            let level = (u64::from(self.level) + refill).min(u64::from(rate.capacity()));
            self.level = u32::try_from(level).unwrap_or(u32::MAX);
            self.at = now;
        }
        if self.level < TOKEN {
            return Taken::Refused;
        }
        self.level -= TOKEN;
        Taken::Granted
    }
}

/// A bucket that several workers draw from without a lock.
#[derive(Debug)]
pub struct SharedBucket(AtomicU64);

impl SharedBucket {
    /// A full bucket.
    pub const fn full(rate: Rate, now: Tick) -> Self {
        Self(AtomicU64::new(pack(Bucket::full(rate, now))))
    }

    /// Takes one token if there is one. Under contention some worker always gets on.
    pub fn take(&self, rate: Rate, now: Tick) -> Taken {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let mut bucket = unpack(seen);
            let taken = bucket.take(rate, now);
            match self.0.compare_exchange_weak(
                seen,
                pack(bucket),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return taken,
                Err(newer) => seen = newer,
            }
        }
    }
}

const TOKEN: u32 = 1_000;
const MAX_BURST: u32 = 4_000_000;

const fn pack(bucket: Bucket) -> u64 {
    (bucket.at.raw() as u64) << 32 | bucket.level as u64
}

const fn unpack(word: u64) -> Bucket {
    Bucket {
        level: (word & 0xffff_ffff) as u32,
        at: Tick::from_raw((word >> 32) as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(bucket: &mut Bucket, rate: Rate, tries: u32, now: Tick) -> u32 {
        (0..tries)
            .filter(|_| bucket.take(rate, now) == Taken::Granted)
            .count() as u32
    }

    #[test]
    fn a_bucket_grants_its_burst_and_then_its_rate() {
        let (rate, t0) = (
            Rate {
                per_second: 150,
                burst: 300,
            },
            Tick::from_millis(5),
        );
        let mut bucket = Bucket::full(rate, t0);
        assert_eq!(granted(&mut bucket, rate, 1_000, t0), 300);
        assert_eq!(granted(&mut bucket, rate, 1_000, t0.plus(1_000)), 150);
        assert_eq!(granted(&mut bucket, rate, 1_000, t0.plus(61_000)), 300);
    }

    #[test]
    fn a_rate_below_one_a_millisecond_is_kept_exactly() {
        let (rate, t0) = (
            Rate {
                per_second: 4,
                burst: 4,
            },
            Tick::from_millis(0),
        );
        let mut bucket = Bucket::full(rate, t0);
        let total: u32 = (0..10_000)
            .map(|ms| granted(&mut bucket, rate, 3, t0.plus(ms)))
            .sum();
        assert_eq!(total, 4 + 39);
    }

    #[test]
    fn a_shared_bucket_grants_the_same() {
        let (rate, t0) = (
            Rate {
                per_second: 10,
                burst: 20,
            },
            Tick::from_millis(0),
        );
        let bucket = SharedBucket::full(rate, t0);
        let first = (0..100)
            .filter(|_| bucket.take(rate, t0) == Taken::Granted)
            .count();
        let later = (0..100)
            .filter(|_| bucket.take(rate, t0.plus(1_000)) == Taken::Granted)
            .count();
        assert_eq!((first, later), (20, 10));
    }
}
