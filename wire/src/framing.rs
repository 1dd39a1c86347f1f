//! RFC 4571 framing: datagrams in a byte stream, each after its length as a u16.
//!
//! A length of 0 is a null packet (RFC 4571 section 2) and skipped. There is no way back into step after an error, so
//! the stream has to be closed then.

#![forbid(unsafe_code)]

use std::fmt;

/// Bytes before a frame.
pub const HEADER_LEN: usize = 2;
/// The most that a client's datagram may hold (DESIGN section 2).
pub const MAX_DATAGRAM: u16 = 1_472;

/// Why a stream or a datagram cannot be framed. Each variant is one `reason` label of a counter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FramingError {
    /// A datagram without bytes: it would read as a null packet.
    Empty,
    /// More bytes than a length can say, or than the reader allows.
    TooLong,
}

impl FramingError {
    /// The counter's label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong => "too_long",
        }
    }
}

impl fmt::Display for FramingError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Empty => "an empty datagram cannot be framed",
            Self::TooLong => "the frame is longer than allowed",
        })
    }
}

impl std::error::Error for FramingError {}

/// What goes before a datagram in the stream.
pub fn header(datagram: &[u8]) -> Result<[u8; HEADER_LEN], FramingError> {
    match u16::try_from(datagram.len()) {
        Ok(0) => Err(FramingError::Empty),
        Ok(length) => Ok(length.to_be_bytes()),
        Err(_) => Err(FramingError::TooLong),
    }
}

/// Finds the datagrams in a stream that comes in arbitrary pieces. Holds at most one unfinished frame.
#[derive(Clone, Debug)]
pub struct Deframer {
    max_frame: u16,
    /// The start of a frame whose end has not come yet: empty, or at most `HEADER_LEN + max_frame - 1` bytes.
    held: Vec<u8>,
    failed: bool,
}

impl Deframer {
    /// Refuses frames of more than `max_frame` bytes. Allocates all that it will ever hold.
    pub fn new(max_frame: u16) -> Self {
        Self {
            max_frame,
            held: Vec::with_capacity(HEADER_LEN + usize::from(max_frame)),
            failed: false,
        }
    }

    /// Takes the stream's next bytes and hands each datagram that they complete to `deliver`, in order. Frames that
    /// came in one piece are not copied. Once it has failed it always fails.
    pub fn feed(
        &mut self,
        mut data: &[u8],
        mut deliver: impl FnMut(&[u8]),
    ) -> Result<(), FramingError> {
        while !self.failed && !data.is_empty() {
            if self.held.is_empty()
                && let Some((datagram, rest)) = self.whole_frame(data)
            {
                if !datagram.is_empty() {
                    deliver(datagram);
                }
                data = rest;
                continue;
            }
            data = self.hold(data);
            if let Some((datagram, _)) = self.whole_frame(&self.held) {
                if !datagram.is_empty() {
                    deliver(datagram);
                }
                self.held.clear();
            }
        }
        if self.failed {
            Err(FramingError::TooLong)
        } else {
            Ok(())
        }
    }

    /// How many bytes of an unfinished frame wait for the rest.
    pub fn pending(&self) -> usize {
        self.held.len()
    }

    fn whole_frame<'d>(&self, data: &'d [u8]) -> Option<(&'d [u8], &'d [u8])> {
        let (length, rest) = data.split_first_chunk::<HEADER_LEN>()?;
        let length = u16::from_be_bytes(*length);
        if length > self.max_frame {
            None
        } else {
            rest.split_at_checked(usize::from(length))
        }
    }

    /// Moves bytes from `data` to the held frame: its header first, then no more than it needs. Notes an over-long frame.
    fn hold<'d>(&mut self, data: &'d [u8]) -> &'d [u8] {
        let wanted = match self.held.first_chunk::<HEADER_LEN>() {
            None => HEADER_LEN,
            Some(length) => HEADER_LEN + usize::from(u16::from_be_bytes(*length)),
        };
        let (taken, rest) = data.split_at(data.len().min(wanted.saturating_sub(self.held.len())));
        self.held.extend_from_slice(taken);
        if let Some(length) = self.held.first_chunk::<HEADER_LEN>() {
            self.failed = u16::from_be_bytes(*length) > self.max_frame;
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(deframer: &mut Deframer, data: &[u8]) -> Result<Vec<Vec<u8>>, FramingError> {
        let mut frames = Vec::new();
        deframer.feed(data, |datagram| frames.push(datagram.to_vec()))?;
        Ok(frames)
    }

    #[test]
    fn a_frame_in_single_bytes_comes_out_once_it_is_whole() {
        let mut deframer = Deframer::new(3);
        assert_eq!(feed(&mut deframer, &[0]), Ok(vec![]));
        assert_eq!(feed(&mut deframer, &[3]), Ok(vec![]));
        assert_eq!(feed(&mut deframer, &[7]), Ok(vec![]));
        assert_eq!(feed(&mut deframer, &[8]), Ok(vec![]));
        assert_eq!(feed(&mut deframer, &[9, 0]), Ok(vec![vec![7, 8, 9]]));
        assert_eq!(deframer.pending(), 1);
    }

    #[test]
    fn null_packets_are_skipped() {
        assert_eq!(
            feed(&mut Deframer::new(3), &[0, 0, 0, 1, 5, 0, 0]),
            Ok(vec![vec![5]])
        );
    }

    #[test]
    fn an_over_long_frame_is_refused_at_its_header_and_for_good() {
        let mut deframer = Deframer::new(3);
        assert_eq!(feed(&mut deframer, &[0, 4]), Err(FramingError::TooLong));
        assert_eq!(feed(&mut deframer, &[0, 1, 1]), Err(FramingError::TooLong));
        assert_eq!(deframer.pending(), HEADER_LEN);
    }
}
