//! Canonical text of fixed-size binary values: one spelling for each value, every other spelling refused.

#![forbid(unsafe_code)]

/// Characters that 16 bytes take in unpadded base64.
pub(crate) const BASE64_LEN: usize = 22;
/// Characters that 16 bytes take in unpadded base32.
pub(crate) const BASE32_LEN: usize = 26;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const BASE64_VALUES: [u8; 256] = values(BASE64);
const BASE32_VALUES: [u8; 256] = values(BASE32);
/// In a table of values: no character of the alphabet.
const NONE: u8 = 0xff;

/// The base64 (RFC 4648 section 4) of a block, unpadded.
pub(crate) fn encode_base64(block: u128) -> [u8; BASE64_LEN] {
    encode::<6, BASE64_LEN>(block, BASE64)
}

/// What `encode_base64` wrote; None for other characters and for a last character with stray bits.
pub(crate) fn decode_base64(text: &[u8; BASE64_LEN]) -> Option<u128> {
    decode::<6, BASE64_LEN>(text, &BASE64_VALUES)
}

/// The base32 (RFC 4648 section 6) of a block in lower case, unpadded.
pub(crate) fn encode_base32(block: u128) -> [u8; BASE32_LEN] {
    encode::<5, BASE32_LEN>(block, BASE32)
}

/// What `encode_base32` wrote; None for other characters, upper case among them, and for stray bits at the end.
pub(crate) fn decode_base32(text: &[u8; BASE32_LEN]) -> Option<u128> {
    decode::<5, BASE32_LEN>(text, &BASE32_VALUES)
}

/// The base64 of 24 bytes, which needs no padding.
pub(crate) fn encode_base64_24(bytes: &[u8; 24]) -> [u8; 32] {
    std::array::from_fn(|at| {
        let group = at / 4 * 3;
        let bits = u32::from_be_bytes([0, bytes[group], bytes[group + 1], bytes[group + 2]]);
        BASE64[(bits >> (18 - at % 4 * 6)) as usize & 63]
    })
}

fn encode<const BITS: usize, const LEN: usize>(block: u128, alphabet: &[u8]) -> [u8; LEN] {
    let mask = alphabet.len() - 1;
    let stray = LEN * BITS - 128;
    std::array::from_fn(|at| {
        let bits = if at + 1 == LEN {
            block << stray
        } else {
            block >> (128 - BITS * (at + 1))
        };
        alphabet[bits as usize & mask]
    })
}

fn decode<const BITS: usize, const LEN: usize>(
    text: &[u8; LEN],
    values: &[u8; 256],
) -> Option<u128> {
    let stray = LEN * BITS - 128;
    let (last, head) = text.split_last()?;
    let mut block = 0u128;
    let mut seen = 0;
    for character in head {
        let value = values[usize::from(*character)];
        seen |= value;
        block = block << BITS | u128::from(value);
    }
    let value = values[usize::from(*last)];
    seen |= value;
    block = block << (BITS - stray) | u128::from(value >> stray);
    let canonical = value & ((1 << stray) - 1) == 0;
    (canonical && seen & 0x80 == 0).then_some(block)
}

const fn values(alphabet: &[u8]) -> [u8; 256] {
    let mut table = [NONE; 256];
    let mut value = 0;
    while value < alphabet.len() {
        table[alphabet[value] as usize] = value as u8;
        value += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_block_survives_base64_and_base32(block: u128) {
            prop_assert_eq!(decode_base64(&encode_base64(block)), Some(block));
            prop_assert_eq!(decode_base32(&encode_base32(block)), Some(block));
        }

        #[test]
        fn what_decodes_encodes_to_the_same_text(text: [u8; BASE64_LEN], other: [u8; BASE32_LEN]) {
            if let Some(block) = decode_base64(&text) {
                prop_assert_eq!(encode_base64(block), text);
            }
            if let Some(block) = decode_base32(&other) {
                prop_assert_eq!(encode_base32(block), other);
            }
        }
    }

    #[test]
    fn of_64_last_characters_only_four_are_canonical() {
        let canonical = BASE64.iter().filter(|&&last| {
            let mut text = [b'A'; BASE64_LEN];
            text[BASE64_LEN - 1] = last;
            decode_base64(&text).is_some()
        });
        assert_eq!(canonical.copied().collect::<Vec<_>>(), b"AQgw");
    }

    #[test]
    fn base64_of_24_bytes_is_rfc_4648s() {
        assert_eq!(
            &encode_base64_24(b"any carnal pleasure.\x00\xff\xfe\x01"),
            b"YW55IGNhcm5hbCBwbGVhc3VyZS4A//4B"
        );
    }
}
