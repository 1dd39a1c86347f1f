//! The routing hint: which worker owns a call, encrypted in the ICE ufrag and in the call id (DESIGN section 3).
//!
//! ```text
//! ufrag   = key id + base64( AES-128-ECB(K_hint, block) )             23 characters
//! call id = "rtc_" + key id + base32( AES-128-ECB(K_call, block) )    31 characters
//! block   = version 1 | cluster u16 | ordinal u16 | worker u8 | nonce 40 bits | zero 40 bits
//! ```
//!
//! One block of ECB is a permutation: an attacker without the key hits a block whose 8 version bits and 40 zero bits
//! are right once in 2^48 tries, and cannot tell two hints of one worker from hints of two.

#![forbid(unsafe_code)]

use std::fmt;
use std::num::NonZeroU16;

use aes::Aes128;
use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};

use crate::keys::Key;
use crate::text;

/// Characters of a ufrag.
pub const UFRAG_LEN: usize = 1 + text::BASE64_LEN;
/// Characters of a call id.
pub const CALL_ID_LEN: usize = CALL_PREFIX.len() + 1 + text::BASE32_LEN;
/// What a call id starts with.
pub const CALL_PREFIX: &[u8; 4] = b"rtc_";
/// The only version of the block.
pub const VERSION: u8 = 1;

const NONCE_BITS: u32 = 40;
const ZERO_BITS: u32 = 40;

/// Why text is no hint for a key. Each variant is one `reason` label of the decode counter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HintError {
    /// Not 23 characters (ufrag) or 31 (call id).
    BadLength,
    /// A character outside the alphabet, a wrong prefix, or text that is not the canonical one of its value.
    BadEncoding,
    /// The key id is another key's.
    UnknownKey,
    /// It decrypts to no block: made with another key, or made up.
    BadBlock,
}

impl HintError {
    /// The counter's label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::BadLength => "bad_length",
            Self::BadEncoding => "bad_encoding",
            Self::UnknownKey => "unknown_key",
            Self::BadBlock => "bad_block",
        }
    }
}

impl fmt::Display for HintError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::BadLength => "the hint has a wrong length",
            Self::BadEncoding => "the hint has characters that no hint has",
            Self::UnknownKey => "the hint names another key",
            Self::BadBlock => "the hint does not decrypt to a route",
        })
    }
}

impl std::error::Error for HintError {}

/// The name of one root secret of a cluster: one of A-Z a-z 0-9.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct KeyId(u8);

impl KeyId {
    /// None for anything but an ASCII letter or digit.
    pub const fn new(character: u8) -> Option<Self> {
        if character.is_ascii_alphanumeric() {
            Some(Self(character))
        } else {
            None
        }
    }

    /// The key id of a ufrag or call id, told apart by length. Says nothing about what follows it.
    pub fn of(text: &[u8]) -> Result<Self, HintError> {
        let character = match text.len() {
            UFRAG_LEN => text.first(),
            CALL_ID_LEN => text
                .strip_prefix(CALL_PREFIX)
                .ok_or(HintError::BadEncoding)?
                .first(),
            _ => return Err(HintError::BadLength),
        };
        character
            .and_then(|&character| Self::new(character))
            .ok_or(HintError::BadEncoding)
    }

    /// The character.
    pub const fn as_byte(self) -> u8 {
        self.0
    }
}

/// Who owns a call: a worker process of a transceiver of a cluster.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Route {
    cluster: NonZeroU16,
    ordinal: u16,
    worker: u8,
}

impl Route {
    /// None for cluster 0, which does not exist.
    pub const fn new(cluster: u16, ordinal: u16, worker: u8) -> Option<Self> {
        match NonZeroU16::new(cluster) {
            Some(cluster) => Some(Self {
                cluster,
                ordinal,
                worker,
            }),
            None => None,
        }
    }

    /// The VoiceCluster's clusterId, 1..=65535.
    pub const fn cluster(self) -> u16 {
        self.cluster.get()
    }

    /// The transceiver: region index * 1024 + its number in the region.
    pub const fn ordinal(self) -> u16 {
        self.ordinal
    }

    /// The process within the transceiver.
    pub const fn worker(self) -> u8 {
        self.worker
    }

    /// The region's index, 0..=63.
    pub const fn region_index(self) -> u8 {
        (self.ordinal >> 10) as u8
    }
}

/// What makes hints of one worker differ: 40 bits, unique among its live calls.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Nonce(u64);

impl Nonce {
    /// None above 40 bits.
    pub const fn new(value: u64) -> Option<Self> {
        if value >> NONCE_BITS == 0 {
            Some(Self(value))
        } else {
            None
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// What a hint says.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Opened {
    /// The call's owner.
    pub route: Route,
    /// The nonce it was minted with.
    pub nonce: Nonce,
}

impl Opened {
    fn block(self) -> u128 {
        let mut block = u128::from(VERSION);
        block = block << 16 | u128::from(self.route.cluster());
        block = block << 16 | u128::from(self.route.ordinal);
        block = block << 8 | u128::from(self.route.worker);
        block = block << NONCE_BITS | u128::from(self.nonce.0);
        block << ZERO_BITS
    }

    fn from_block(block: u128) -> Option<Self> {
        let zero = block & ((1 << ZERO_BITS) - 1);
        if block >> 120 != u128::from(VERSION) || zero != 0 {
            return None;
        }
        let route = Route::new(
            (block >> 104) as u16,
            (block >> 88) as u16,
            (block >> 80) as u8,
        )?;
        let nonce = Nonce((block >> ZERO_BITS) as u64 & ((1 << NONCE_BITS) - 1));
        Some(Self { route, nonce })
    }
}

/// One cluster's K_hint under its key id, with the AES key schedule done: mints and opens ufrags.
#[derive(Clone)]
pub struct HintKey(BlockKey);

impl HintKey {
    /// From K_hint as `keys::derive` gives it.
    pub fn new(id: KeyId, key: &Key) -> Self {
        Self(BlockKey::new(id, key))
    }

    /// The id that its ufrags begin with.
    pub fn id(&self) -> KeyId {
        self.0.id
    }

    /// The ufrag that routes to `route`.
    pub fn mint(&self, route: Route, nonce: Nonce) -> [u8; UFRAG_LEN] {
        let mut ufrag = [self.0.id.0; UFRAG_LEN];
        let text = text::encode_base64(self.0.encrypt(Opened { route, nonce }));
        if let Some(rest) = ufrag.last_chunk_mut() {
            *rest = text;
        }
        ufrag
    }

    /// Reads a ufrag made with this key. Allocates nothing; a wrong length, id or alphabet costs no AES.
    pub fn open(&self, ufrag: &[u8]) -> Result<Opened, HintError> {
        let [id, text @ ..]: &[u8; UFRAG_LEN] =
            ufrag.try_into().map_err(|_| HintError::BadLength)?;
        self.0.expect(*id)?;
        self.0.decrypt(text::decode_base64(text))
    }
}

impl fmt::Debug for HintKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe("HintKey", out)
    }
}

/// One cluster's K_call under its key id: mints and opens call ids.
#[derive(Clone)]
pub struct CallKey(BlockKey);

impl CallKey {
    /// From K_call as `keys::derive` gives it.
    pub fn new(id: KeyId, key: &Key) -> Self {
        Self(BlockKey::new(id, key))
    }

    /// The id that call ids of this key start with, behind their prefix.
    pub fn id(&self) -> KeyId {
        self.0.id
    }

    /// The id of the call whose first ufrag was minted with the same route and nonce.
    pub fn mint(&self, route: Route, nonce: Nonce) -> [u8; CALL_ID_LEN] {
        let mut call_id = [self.0.id.0; CALL_ID_LEN];
        let text = text::encode_base32(self.0.encrypt(Opened { route, nonce }));
        if let Some(prefix) = call_id.first_chunk_mut() {
            *prefix = *CALL_PREFIX;
        }
        if let Some(rest) = call_id.last_chunk_mut() {
            *rest = text;
        }
        call_id
    }

    /// Reads a call id made with this key.
    pub fn open(&self, call_id: &[u8]) -> Result<Opened, HintError> {
        let [p0, p1, p2, p3, id, text @ ..]: &[u8; CALL_ID_LEN] =
            call_id.try_into().map_err(|_| HintError::BadLength)?;
        if [*p0, *p1, *p2, *p3] != *CALL_PREFIX {
            return Err(HintError::BadEncoding);
        }
        self.0.expect(*id)?;
        self.0.decrypt(text::decode_base32(text))
    }
}

impl fmt::Debug for CallKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe("CallKey", out)
    }
}

#[derive(Clone)]
struct BlockKey {
    id: KeyId,
    cipher: Aes128,
}

impl BlockKey {
    fn new(id: KeyId, key: &Key) -> Self {
        let aes_key: [u8; 16] = std::array::from_fn(|at| key[at]);
        Self {
            id,
            cipher: Aes128::new(&aes_key.into()),
        }
    }

    fn expect(&self, id: u8) -> Result<(), HintError> {
        match KeyId::new(id) {
            None => Err(HintError::BadEncoding),
            Some(id) if id == self.id => Ok(()),
            Some(_) => Err(HintError::UnknownKey),
        }
    }

    fn encrypt(&self, opened: Opened) -> u128 {
        let mut block = opened.block().to_be_bytes().into();
        self.cipher.encrypt_block(&mut block);
        u128::from_be_bytes(block.into())
    }

    fn decrypt(&self, encrypted: Option<u128>) -> Result<Opened, HintError> {
        let mut block = encrypted
            .ok_or(HintError::BadEncoding)?
            .to_be_bytes()
            .into();
        self.cipher.decrypt_block(&mut block);
        Opened::from_block(u128::from_be_bytes(block.into())).ok_or(HintError::BadBlock)
    }

    fn describe(&self, name: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{name}({})", char::from(self.id.0))
    }
}
