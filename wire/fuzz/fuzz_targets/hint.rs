//! Law: text that opens is the text that minting gives, and any block that is minted opens to itself.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use voicecluster_wire::hint::{CallKey, HintKey, KeyId, Nonce, Opened, Route};

static KEYS: LazyLock<(HintKey, CallKey)> = LazyLock::new(|| {
    let id = KeyId::new(b'A').expect("a letter");
    (HintKey::new(id, &[7; 32]), CallKey::new(id, &[7; 32]))
});

fuzz_target!(|data: &[u8]| {
    let (hint, call) = &*KEYS;
    if let Ok(opened) = hint.open(data) {
        assert_eq!(hint.mint(opened.route, opened.nonce), data);
        assert_eq!(KeyId::of(data), Ok(hint.id()));
    }
    if let Ok(opened) = call.open(data) {
        assert_eq!(call.mint(opened.route, opened.nonce), data);
        assert_eq!(KeyId::of(data), Ok(call.id()));
    }
    if let Some(opened) = data.first_chunk().and_then(opened_from) {
        assert_eq!(
            hint.open(&hint.mint(opened.route, opened.nonce)),
            Ok(opened)
        );
        assert_eq!(
            call.open(&call.mint(opened.route, opened.nonce)),
            Ok(opened)
        );
    }
});

fn opened_from(bytes: &[u8; 10]) -> Option<Opened> {
    let [c0, c1, o0, o1, worker, nonce @ ..] = *bytes;
    let route = Route::new(
        u16::from_be_bytes([c0, c1]),
        u16::from_be_bytes([o0, o1]),
        worker,
    )?;
    let nonce = nonce
        .iter()
        .fold(0, |nonce, &byte| nonce << 8 | u64::from(byte));
    Some(Opened {
        route,
        nonce: Nonce::new(nonce)?,
    })
}
