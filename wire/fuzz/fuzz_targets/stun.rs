//! Law: a Binding message, written anew from what was read of it, reads the same, and is authentic for the password it
//! is signed with and for no other.
#![no_main]

use libfuzzer_sys::fuzz_target;
use voicecluster_wire::stun::{Builder, StunView};

fuzz_target!(|data: &[u8]| {
    let Ok(view) = StunView::parse(data) else {
        return;
    };
    let _ = (view.check_fingerprint(), view.verify(b"password"));
    if view.method().is_none() {
        return;
    }
    let message = rewrite(&view).finish(Some(b"password"));
    let again = StunView::parse(&message).expect("what the builder writes parses");
    assert_eq!(said(&again), said(&view));
    assert_eq!(again.check_fingerprint(), Ok(()));
    assert!(again.verify(b"password") && !again.verify(b"passwore"));
});

fn rewrite(view: &StunView<'_>) -> Builder {
    let mut builder = Builder::new(view.class(), *view.transaction_id());
    if let Some(username) = view.username() {
        builder = builder
            .username(username)
            .expect("a username that was read is short enough");
    }
    if let Some(priority) = view.priority() {
        builder = builder.priority(priority);
    }
    if view.use_candidate() {
        builder = builder.use_candidate();
    }
    if let Some(tie_breaker) = view.ice_controlling() {
        builder = builder.ice_controlling(tie_breaker);
    }
    if let Some(tie_breaker) = view.ice_controlled() {
        builder = builder.ice_controlled(tie_breaker);
    }
    if let Some(mapped) = view.xor_mapped_address() {
        builder = builder.xor_mapped_address(mapped);
    }
    if let Some(code) = view.error_code() {
        builder = builder
            .error_code(code, "")
            .expect("no reason is short enough");
    }
    builder
}

fn said<'v>(view: &'v StunView<'_>) -> impl PartialEq + std::fmt::Debug + use<'v> {
    (
        (
            view.class(),
            *view.transaction_id(),
            view.username().map(<[u8]>::to_vec),
            view.priority(),
        ),
        (
            view.use_candidate(),
            view.ice_controlling(),
            view.ice_controlled(),
        ),
        (view.xor_mapped_address(), view.error_code()),
    )
}
