//! Keys that follow from a cluster's root secret, and the ICE password that follows from a ufrag (DESIGN section 3).

#![forbid(unsafe_code)]

use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::text;

/// A root secret or a derived key.
pub type Key = [u8; 32];

/// What a derived key is for. Whoever holds one key learns nothing about the others or the root secret.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Purpose {
    /// K_hint: routing hints. The only one that relays get.
    Hint,
    /// K_pwd: ICE passwords.
    Pwd,
    /// K_call: call ids.
    Call,
    /// K_token: client secrets.
    Token,
    /// K_internal: requests between transceivers.
    Internal,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Hint,
        Self::Pwd,
        Self::Call,
        Self::Token,
        Self::Internal,
    ];

    /// The name in HKDF's `info`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Hint => "hint",
            Self::Pwd => "pwd",
            Self::Call => "call",
            Self::Token => "token",
            Self::Internal => "internal",
        }
    }

    /// The purpose of that name.
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|purpose| purpose.label() == label)
    }
}

/// K_x = HKDF-SHA256(root, salt empty, info = "voicecluster x" || cluster as u16), 32 bytes.
pub fn derive(root: &Key, purpose: Purpose, cluster: u16) -> Key {
    let mut key = [0; 32];
    let info = [
        b"voicecluster ",
        purpose.label().as_bytes(),
        &cluster.to_be_bytes(),
    ];
    Hkdf::<Sha256>::new(None, root)
        .expand_multi_info(&info, &mut key)
        .expect("HKDF-SHA256 gives up to 8,160 bytes (RFC 5869 section 2.3) and 32 are asked for");
    key
}

/// The password of a ufrag: the first 32 characters of base64(HMAC-SHA256(K_pwd, ufrag)), all of them ice-chars.
pub fn ice_pwd(pwd_key: &Key, ufrag: &[u8]) -> [u8; 32] {
    let mut mac =
        <Hmac<Sha256> as Mac>::new_from_slice(pwd_key).expect("HMAC takes keys of any length");
    mac.update(ufrag);
    let digest = mac.finalize().into_bytes();
    text::encode_base64_24(&std::array::from_fn(|at| digest[at]))
}
