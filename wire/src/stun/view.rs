//! Reading a message in place.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hmac::{Hmac, Mac};
use sha1::Sha1;

use super::{
    BINDING, COOKIE, Class, FINGERPRINT_XOR, HEADER_LEN, INTEGRITY_LEN, MAX_ATTRIBUTES,
    MAX_USERNAME, Method, StunError, TransactionId, attribute, padded,
};

/// The code of an error response, 300..=699.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ErrorCode(u16);

impl ErrorCode {
    /// None outside of 300..=699.
    pub const fn new(code: u16) -> Option<Self> {
        if matches!(code, 300..=699) {
            Some(Self(code))
        } else {
            None
        }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// A STUN message read in place: borrows the receive buffer, allocates nothing, trusts nothing.
///
/// The first attribute of a kind counts (RFC 8489 section 14), and none after MESSAGE-INTEGRITY but FINGERPRINT
/// (section 14.5): what an accessor returns is covered by the signature wherever there is one.
#[derive(Clone, Copy, Debug)]
pub struct StunView<'p> {
    packet: &'p [u8],
    class: Class,
    method: Option<Method>,
    transaction_id: TransactionId,
    known: Known<'p>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known<'p> {
    username: Option<&'p [u8]>,
    priority: Option<u32>,
    use_candidate: bool,
    ice_controlling: Option<u64>,
    ice_controlled: Option<u64>,
    xor_mapped_address: Option<SocketAddr>,
    error_code: Option<ErrorCode>,
    integrity: Option<Signature<'p>>,
    fingerprint: Option<Fingerprint>,
}

/// A MESSAGE-INTEGRITY and how many bytes stand before it.
#[derive(Clone, Copy, Debug)]
struct Signature<'p> {
    value: &'p [u8; INTEGRITY_LEN],
    covers: usize,
}

/// A FINGERPRINT and how many bytes stand before it.
#[derive(Clone, Copy, Debug)]
struct Fingerprint {
    value: u32,
    covers: usize,
    last: bool,
}

impl<'p> StunView<'p> {
    /// Reads a whole datagram. Checks the header and the structure of the attributes; neither FINGERPRINT nor
    /// MESSAGE-INTEGRITY. Work is bounded by `MAX_ATTRIBUTES`.
    pub fn parse(packet: &'p [u8]) -> Result<Self, StunError> {
        let (header, body) = packet
            .split_first_chunk::<HEADER_LEN>()
            .ok_or(StunError::Truncated)?;
        let [t0, t1, l0, l1, c0, c1, c2, c3, transaction_id @ ..] = *header;
        let message_type = u16::from_be_bytes([t0, t1]);
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        if message_type & 0xc000 != 0 {
            return Err(StunError::BadType);
        }
        if [c0, c1, c2, c3] != COOKIE {
            return Err(StunError::BadCookie);
        }
        if !length.is_multiple_of(4) || body.len() != length {
            return Err(StunError::BadLength);
        }
        let class = match message_type & 0x0110 {
            0x0000 => Class::Request,
            0x0010 => Class::Indication,
            0x0100 => Class::Success,
            _ => Class::Error,
        };
        let method = (message_type & !0x0110 == BINDING).then_some(Method::Binding);
        let known = Known::walk(body, &transaction_id)?;
        Ok(Self {
            packet,
            class,
            method,
            transaction_id,
            known,
        })
    }

    /// Request, indication or response.
    pub fn class(&self) -> Class {
        self.class
    }

    /// None for a method that we do not know.
    pub fn method(&self) -> Option<Method> {
        self.method
    }

    /// The 96 bits after the cookie.
    pub fn transaction_id(&self) -> &TransactionId {
        &self.transaction_id
    }

    /// USERNAME, as it stands there; not necessarily UTF-8.
    pub fn username(&self) -> Option<&'p [u8]> {
        self.known.username
    }

    /// PRIORITY.
    pub fn priority(&self) -> Option<u32> {
        self.known.priority
    }

    /// Whether USE-CANDIDATE is there.
    pub fn use_candidate(&self) -> bool {
        self.known.use_candidate
    }

    /// The tie-breaker of a controlling agent.
    pub fn ice_controlling(&self) -> Option<u64> {
        self.known.ice_controlling
    }

    /// The tie-breaker of a controlled agent.
    pub fn ice_controlled(&self) -> Option<u64> {
        self.known.ice_controlled
    }

    /// XOR-MAPPED-ADDRESS, in plain.
    pub fn xor_mapped_address(&self) -> Option<SocketAddr> {
        self.known.xor_mapped_address
    }

    /// ERROR-CODE without its reason phrase.
    pub fn error_code(&self) -> Option<ErrorCode> {
        self.known.error_code
    }

    /// Whether MESSAGE-INTEGRITY is there; not whether it is right.
    pub fn has_integrity(&self) -> bool {
        self.known.integrity.is_some()
    }

    /// Whether FINGERPRINT is there; not whether it is right.
    pub fn has_fingerprint(&self) -> bool {
        self.known.fingerprint.is_some()
    }

    /// Fails if FINGERPRINT is there and wrong or not last. A message without one is fine.
    pub fn check_fingerprint(&self) -> Result<(), StunError> {
        let Some(fingerprint) = self.known.fingerprint else {
            return Ok(());
        };
        let covered = self.packet.get(..fingerprint.covers).unwrap_or_default();
        if fingerprint.last && crc32fast::hash(covered) ^ FINGERPRINT_XOR == fingerprint.value {
            Ok(())
        } else {
            Err(StunError::BadFingerprint)
        }
    }

    /// Whether MESSAGE-INTEGRITY is there and made with this password (short-term credentials, RFC 8489 section 9.1).
    /// Compares in constant time.
    pub fn verify(&self, password: &[u8]) -> bool {
        let Some(signature) = self.known.integrity else {
            return false;
        };
        let covered = self.packet.get(..signature.covers).unwrap_or_default();
        sign(covered, password).is_some_and(|mac| mac.verify_slice(signature.value).is_ok())
    }
}

/// The MAC of a message whose first bytes are `covered`, its length set as if MESSAGE-INTEGRITY were the last
/// attribute (RFC 8489 section 14.5). None without a whole header.
pub(super) fn sign(covered: &[u8], password: &[u8]) -> Option<Hmac<Sha1>> {
    let (header, body) = covered.split_first_chunk::<HEADER_LEN>()?;
    let [t0, t1, _, _, rest @ ..] = *header;
    let length = u16::try_from(body.len() + 4 + INTEGRITY_LEN).ok()?;
    let mut mac = <Hmac<Sha1> as Mac>::new_from_slice(password).ok()?;
    mac.update(&[t0, t1]);
    mac.update(&length.to_be_bytes());
    mac.update(&rest);
    mac.update(body);
    Some(mac)
}

impl<'p> Known<'p> {
    fn walk(body: &'p [u8], transaction_id: &TransactionId) -> Result<Self, StunError> {
        let mut known = Self::default();
        let mut rest = body;
        for _ in 0..MAX_ATTRIBUTES {
            if rest.is_empty() {
                return Ok(known);
            }
            let covers = HEADER_LEN + (body.len() - rest.len());
            let ([t0, t1, l0, l1], after) = rest
                .split_first_chunk::<4>()
                .ok_or(StunError::BadAttribute)?;
            let kind = u16::from_be_bytes([*t0, *t1]);
            let length = usize::from(u16::from_be_bytes([*l0, *l1]));
            let value = after.get(..length).ok_or(StunError::BadAttribute)?;
            rest = after.get(padded(length)..).ok_or(StunError::BadAttribute)?;
            if kind == attribute::FINGERPRINT {
                let value = u32::from_be_bytes(exactly(value)?);
                known.fingerprint.get_or_insert(Fingerprint {
                    value,
                    covers,
                    last: rest.is_empty(),
                });
            } else if known.integrity.is_none() {
                known.take(kind, value, covers, transaction_id)?;
            }
        }
        if rest.is_empty() {
            Ok(known)
        } else {
            Err(StunError::TooManyAttributes)
        }
    }

    fn take(
        &mut self,
        kind: u16,
        value: &'p [u8],
        covers: usize,
        id: &TransactionId,
    ) -> Result<(), StunError> {
        match kind {
            attribute::USERNAME if value.len() > MAX_USERNAME => {
                return Err(StunError::BadAttribute);
            }
            attribute::USERNAME => {
                self.username.get_or_insert(value);
            }
            attribute::PRIORITY => {
                self.priority
                    .get_or_insert(u32::from_be_bytes(exactly(value)?));
            }
            attribute::USE_CANDIDATE => {
                let [] = exactly(value)?;
                self.use_candidate = true;
            }
            attribute::ICE_CONTROLLING => {
                self.ice_controlling
                    .get_or_insert(u64::from_be_bytes(exactly(value)?));
            }
            attribute::ICE_CONTROLLED => {
                self.ice_controlled
                    .get_or_insert(u64::from_be_bytes(exactly(value)?));
            }
            attribute::XOR_MAPPED_ADDRESS => {
                self.xor_mapped_address.get_or_insert(unmask(value, id)?);
            }
            attribute::ERROR_CODE => {
                self.error_code.get_or_insert(error_code(value)?);
            }
            attribute::MESSAGE_INTEGRITY => {
                let value = value.try_into().map_err(|_| StunError::BadAttribute)?;
                self.integrity.get_or_insert(Signature { value, covers });
            }
            _ => {}
        }
        Ok(())
    }
}

fn exactly<const LEN: usize>(value: &[u8]) -> Result<[u8; LEN], StunError> {
    value.try_into().map_err(|_| StunError::BadAttribute)
}

/// RFC 8489 section 14.2.
fn unmask(value: &[u8], id: &TransactionId) -> Result<SocketAddr, StunError> {
    let ([_, family, p0, p1], address) = value
        .split_first_chunk::<4>()
        .ok_or(StunError::BadAttribute)?;
    let port = u16::from_be_bytes([p0 ^ COOKIE[0], p1 ^ COOKIE[1]]);
    let address = match family {
        1 => IpAddr::V4(Ipv4Addr::from_bits(
            u32::from_be_bytes(exactly(address)?) ^ u32::from_be_bytes(COOKIE),
        )),
        2 => IpAddr::V6(Ipv6Addr::from_bits(
            u128::from_be_bytes(exactly(address)?) ^ ipv6_mask(id),
        )),
        _ => return Err(StunError::BadAttribute),
    };
    Ok(SocketAddr::new(address, port))
}

/// What an IPv6 address is XORed with: cookie and transaction id.
pub(super) fn ipv6_mask(id: &TransactionId) -> u128 {
    let mut mask = [0; 16];
    for (to, from) in mask.iter_mut().zip(COOKIE.iter().chain(id)) {
        *to = *from;
    }
    u128::from_be_bytes(mask)
}

/// RFC 8489 section 14.8: three bits of hundreds, a number of 0..=99.
fn error_code(value: &[u8]) -> Result<ErrorCode, StunError> {
    let [_, _, hundreds, rest] = value.first_chunk::<4>().ok_or(StunError::BadAttribute)?;
    let code = u16::from(hundreds & 7) * 100 + u16::from(*rest);
    if *rest > 99 {
        None
    } else {
        ErrorCode::new(code)
    }
    .ok_or(StunError::BadAttribute)
}
