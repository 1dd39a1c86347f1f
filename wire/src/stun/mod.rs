//! The subset of STUN (RFC 8489) that ICE (RFC 8445) needs: Binding, with the attributes named in `attribute`.
//!
//! `StunView` reads a message in place, `Builder` writes one. Attributes that are not named here are skipped, never
//! rejected. Whether a message is wanted, who sent it and what it may do is for others to say.

#![forbid(unsafe_code)]

mod build;
mod view;

use std::fmt;

pub use build::{BuildError, Builder};
pub use view::{ErrorCode, StunView};

/// Bytes of the message header.
pub const HEADER_LEN: usize = 20;
/// More attributes than any ICE agent sends. A walk ends here, so a packet of empty attributes costs little.
pub const MAX_ATTRIBUTES: usize = 64;
/// RFC 8489 section 14.3: a USERNAME has fewer than 509 bytes.
pub const MAX_USERNAME: usize = 508;
/// RFC 8489 section 14.8: fewer than 128 characters, which may take 763 bytes.
pub const MAX_REASON: usize = 763;

const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
const FINGERPRINT_XOR: u32 = 0x5354_554e;
const INTEGRITY_LEN: usize = 20;
const BINDING: u16 = 1;

/// Identifies a request and its response.
pub type TransactionId = [u8; 12];

mod attribute {
    pub(super) const USERNAME: u16 = 0x0006;
    pub(super) const MESSAGE_INTEGRITY: u16 = 0x0008;
    pub(super) const ERROR_CODE: u16 = 0x0009;
    pub(super) const XOR_MAPPED_ADDRESS: u16 = 0x0020;
    pub(super) const PRIORITY: u16 = 0x0024;
    pub(super) const USE_CANDIDATE: u16 = 0x0025;
    pub(super) const FINGERPRINT: u16 = 0x8028;
    pub(super) const ICE_CONTROLLED: u16 = 0x8029;
    pub(super) const ICE_CONTROLLING: u16 = 0x802a;
}

/// Why a datagram is not STUN we can read. Each variant is one `reason` label of a drop counter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StunError {
    /// Shorter than a header.
    Truncated,
    /// The first two bits are not zero.
    BadType,
    /// No magic cookie: not STUN, or the STUN of RFC 3489.
    BadCookie,
    /// The length is no multiple of 4, or not the datagram's.
    BadLength,
    /// An attribute runs over the end, or one that we know has an impossible size or value.
    BadAttribute,
    /// More than `MAX_ATTRIBUTES`.
    TooManyAttributes,
    /// A method other than Binding.
    UnknownMethod,
    /// FINGERPRINT is there and wrong, or not the last attribute.
    BadFingerprint,
}

impl StunError {
    /// The counter's label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::BadType => "bad_type",
            Self::BadCookie => "bad_cookie",
            Self::BadLength => "bad_length",
            Self::BadAttribute => "bad_attribute",
            Self::TooManyAttributes => "too_many_attributes",
            Self::UnknownMethod => "unknown_method",
            Self::BadFingerprint => "bad_fingerprint",
        }
    }
}

impl fmt::Display for StunError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Truncated => "the datagram is shorter than a STUN header",
            Self::BadType => "the first two bits of the datagram are not zero",
            Self::BadCookie => "the magic cookie is missing",
            Self::BadLength => "the STUN length is not the datagram's",
            Self::BadAttribute => "a STUN attribute is malformed",
            Self::TooManyAttributes => "the STUN message has too many attributes",
            Self::UnknownMethod => "the STUN method is not Binding",
            Self::BadFingerprint => "the STUN fingerprint is wrong",
        })
    }
}

impl std::error::Error for StunError {}

/// What kind of message of its method it is (RFC 8489 section 5).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Class {
    /// Wants a response.
    Request,
    /// Wants none.
    Indication,
    /// A success response.
    Success,
    /// An error response.
    Error,
}

impl Class {
    /// Its name.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Indication => "indication",
            Self::Success => "success",
            Self::Error => "error",
        }
    }

    /// The two class bits, M-interleaved as in RFC 8489 figure 3.
    const fn bits(self) -> u16 {
        match self {
            Self::Request => 0x0000,
            Self::Indication => 0x0010,
            Self::Success => 0x0100,
            Self::Error => 0x0110,
        }
    }
}

/// The methods that we know.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Method {
    /// RFC 8489 section 3.
    Binding,
}

const fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}
