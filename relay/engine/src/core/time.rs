//! Time as the core sees it: milliseconds of the shell's monotonic clock, handed in with every call.

/// A point in time, in milliseconds since the shell's own start.
///
/// It wraps after 49 days; differences stay right as long as the two points lie less than that apart. Every table
/// entry is swept within minutes of its last use, so no stored point gets that old.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tick(u32);

impl Tick {
    /// The point `millis` after the start.
    pub const fn from_millis(millis: u64) -> Self {
        Self((millis & 0xffff_ffff) as u32)
    }

    /// Milliseconds from `earlier` to `self`. A point slightly in the future (another worker's clock read) counts as 0.
    pub const fn since(self, earlier: Self) -> u32 {
        let difference = self.0.wrapping_sub(earlier.0);
        if difference > u32::MAX - FUTURE_MS {
            0
        } else {
            difference
        }
    }

    /// The point `millis` later.
    #[must_use]
    pub const fn plus(self, millis: u32) -> Self {
        Self(self.0.wrapping_add(millis))
    }

    pub(crate) const fn raw(self) -> u32 {
        self.0
    }

    pub(crate) const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }
}

/// How far ahead another worker's idea of now may be.
const FUTURE_MS: u32 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_survives_the_wrap() {
        let before = Tick::from_millis(u64::from(u32::MAX) - 5);
        assert_eq!(before.plus(20).since(before), 20);
    }

    #[test]
    fn a_point_a_little_in_the_future_is_now() {
        let now = Tick::from_millis(1_000);
        assert_eq!(now.since(now.plus(3)), 0);
    }
}
