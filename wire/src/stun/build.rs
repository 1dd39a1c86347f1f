//! Writing a message.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use hmac::Mac;

use super::view::{ErrorCode, ipv6_mask, sign};
use super::{
    BINDING, COOKIE, Class, FINGERPRINT_XOR, HEADER_LEN, INTEGRITY_LEN, MAX_REASON, MAX_USERNAME,
    TransactionId, attribute, padded,
};

/// Why a message cannot be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BuildError {
    /// USERNAME of more than `MAX_USERNAME` bytes.
    UsernameTooLong,
    /// A reason phrase of more than `MAX_REASON` bytes.
    ReasonTooLong,
}

impl fmt::Display for BuildError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::UsernameTooLong => "the username is longer than a USERNAME may be",
            Self::ReasonTooLong => "the reason is longer than an ERROR-CODE may be",
        })
    }
}

impl std::error::Error for BuildError {}

/// Writes one Binding message: attributes in the order of the calls, MESSAGE-INTEGRITY and FINGERPRINT at the end.
/// Each attribute belongs there at most once; the sizes that are checked keep the message below 1,400 bytes then.
#[derive(Clone, Debug)]
pub struct Builder {
    message: Vec<u8>,
    transaction_id: TransactionId,
}

impl Builder {
    /// A message without attributes.
    pub fn new(class: Class, transaction_id: TransactionId) -> Self {
        let mut message = Vec::with_capacity(160);
        message.extend_from_slice(&(BINDING | class.bits()).to_be_bytes());
        message.extend_from_slice(&[0, 0]);
        message.extend_from_slice(&COOKIE);
        message.extend_from_slice(&transaction_id);
        Self {
            message,
            transaction_id,
        }
    }

    /// USERNAME: the receiver's ufrag, a colon, the sender's (RFC 8445 section 7.2.2).
    pub fn username(self, username: &[u8]) -> Result<Self, BuildError> {
        if username.len() > MAX_USERNAME {
            return Err(BuildError::UsernameTooLong);
        }
        Ok(self.attribute(attribute::USERNAME, &[username]))
    }

    /// PRIORITY that a peer-reflexive candidate would have.
    pub fn priority(self, priority: u32) -> Self {
        self.attribute(attribute::PRIORITY, &[&priority.to_be_bytes()])
    }

    /// USE-CANDIDATE: nominates the pair.
    pub fn use_candidate(self) -> Self {
        self.attribute(attribute::USE_CANDIDATE, &[])
    }

    /// ICE-CONTROLLING with its tie-breaker.
    pub fn ice_controlling(self, tie_breaker: u64) -> Self {
        self.attribute(attribute::ICE_CONTROLLING, &[&tie_breaker.to_be_bytes()])
    }

    /// ICE-CONTROLLED with its tie-breaker.
    pub fn ice_controlled(self, tie_breaker: u64) -> Self {
        self.attribute(attribute::ICE_CONTROLLED, &[&tie_breaker.to_be_bytes()])
    }

    /// XOR-MAPPED-ADDRESS: where the request came from.
    pub fn xor_mapped_address(self, mapped: SocketAddr) -> Self {
        let port = (mapped.port() ^ u16::from_be_bytes([COOKIE[0], COOKIE[1]])).to_be_bytes();
        match mapped.ip() {
            IpAddr::V4(address) => {
                let masked = (address.to_bits() ^ u32::from_be_bytes(COOKIE)).to_be_bytes();
                self.attribute(attribute::XOR_MAPPED_ADDRESS, &[&[0, 1], &port, &masked])
            }
            IpAddr::V6(address) => {
                let masked = (address.to_bits() ^ ipv6_mask(&self.transaction_id)).to_be_bytes();
                self.attribute(attribute::XOR_MAPPED_ADDRESS, &[&[0, 2], &port, &masked])
            }
        }
    }

    /// ERROR-CODE with its reason phrase, which may be empty.
    pub fn error_code(self, code: ErrorCode, reason: &str) -> Result<Self, BuildError> {
        if reason.len() > MAX_REASON {
            return Err(BuildError::ReasonTooLong);
        }
        let number = [0, 0, (code.get() / 100) as u8, (code.get() % 100) as u8];
        Ok(self.attribute(attribute::ERROR_CODE, &[&number, reason.as_bytes()]))
    }

    /// The message, signed if there is a password, with FINGERPRINT.
    pub fn finish(mut self, password: Option<&[u8]>) -> Vec<u8> {
        if let Some(mac) = password.and_then(|password| sign(&self.message, password)) {
            let signature: [u8; INTEGRITY_LEN] = mac.finalize().into_bytes().into();
            self = self.attribute(attribute::MESSAGE_INTEGRITY, &[&signature]);
        }
        self.set_length(8);
        let fingerprint = crc32fast::hash(&self.message) ^ FINGERPRINT_XOR;
        self.attribute(attribute::FINGERPRINT, &[&fingerprint.to_be_bytes()])
            .message
    }

    fn attribute(mut self, kind: u16, parts: &[&[u8]]) -> Self {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.message.extend_from_slice(&kind.to_be_bytes());
        self.message
            .extend_from_slice(&(length as u16).to_be_bytes());
        for part in parts {
            self.message.extend_from_slice(part);
        }
        self.message.resize(padded(self.message.len()), 0);
        self.set_length(0);
        self
    }

    /// Sets the header's length to that of the attributes so far and `more` bytes.
    fn set_length(&mut self, more: usize) {
        let length = (self.message.len() - HEADER_LEN + more) as u16;
        if let Some(field) = self.message.get_mut(2..4) {
            field.copy_from_slice(&length.to_be_bytes());
        }
    }
}
