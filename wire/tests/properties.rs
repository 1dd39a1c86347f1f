//! Laws that hold for all values, and for any bytes: what is written reads back, what was read writes back, nothing panics.

use std::net::SocketAddr;

use proptest::collection::vec;
use proptest::prelude::*;
use voicecluster_wire::framing::{self, Deframer};
use voicecluster_wire::hint::{CallKey, HintKey, KeyId, Nonce, Opened, Route};
use voicecluster_wire::spp;
use voicecluster_wire::stun::{Builder, Class, StunView};

fn opened() -> impl Strategy<Value = Opened> {
    (1..=u16::MAX, any::<u16>(), any::<u8>(), 0..1u64 << 40).prop_map(
        |(cluster, ordinal, worker, nonce)| Opened {
            route: Route::new(cluster, ordinal, worker).expect("not cluster 0"),
            nonce: Nonce::new(nonce).expect("40 bits"),
        },
    )
}

fn key_id() -> KeyId {
    KeyId::new(b'A').expect("a letter")
}

proptest! {
    #[test]
    fn a_minted_ufrag_opens_to_its_route_and_nonce(key: [u8; 32], opened in opened()) {
        let key = HintKey::new(key_id(), &key);
        let ufrag = key.mint(opened.route, opened.nonce);
        prop_assert!(ufrag.iter().all(|&c| c.is_ascii_alphanumeric() || c == b'+' || c == b'/'));
        prop_assert_eq!(key.open(&ufrag), Ok(opened));
    }

    #[test]
    fn a_minted_call_id_opens_to_its_route_and_nonce(key: [u8; 32], opened in opened()) {
        let key = CallKey::new(key_id(), &key);
        prop_assert_eq!(key.open(&key.mint(opened.route, opened.nonce)), Ok(opened));
    }

    #[test]
    fn a_ufrag_with_one_character_changed_never_opens_to_the_same(opened in opened(), at in 1..23usize, to in any::<u8>()) {
        let key = HintKey::new(key_id(), &[7; 32]);
        let mut ufrag = key.mint(opened.route, opened.nonce);
        prop_assume!(ufrag[at] != to);
        ufrag[at] = to;
        prop_assert_ne!(key.open(&ufrag), Ok(opened));
    }

    #[test]
    fn any_text_opens_or_fails_without_a_panic(text in vec(any::<u8>(), 0..64)) {
        let _ = KeyId::of(&text);
        let _ = HintKey::new(key_id(), &[7; 32]).open(&text);
        let _ = CallKey::new(key_id(), &[7; 32]).open(&text);
    }

    #[test]
    fn an_spp_header_reads_back(client: SocketAddr, proxy: SocketAddr) {
        prop_assume!(client.port() != 0 && proxy.port() != 0);
        let mut header = [0; spp::LEN];
        spp::encode(&mut header, client, proxy);
        let decoded = spp::decode(&header).expect("a header");
        prop_assert_eq!((decoded.client.ip(), decoded.client.port()), (client.ip().to_canonical(), client.port()));
        prop_assert_eq!((decoded.proxy.ip(), decoded.proxy.port()), (proxy.ip().to_canonical(), proxy.port()));
    }

    #[test]
    fn any_38_bytes_that_read_write_back(mut bytes in vec(any::<u8>(), 38), magic: bool) {
        if magic {
            bytes[..2].copy_from_slice(&spp::MAGIC);
        }
        if let Ok(header) = spp::decode(&bytes) {
            let mut written = [0; spp::LEN];
            spp::encode(&mut written, header.client, header.proxy);
            prop_assert_eq!(&written[..], &bytes[..]);
        }
    }

    #[test]
    fn a_stream_in_any_pieces_gives_its_datagrams(
        datagrams in vec(vec(any::<u8>(), 1..40), 0..8),
        pieces in vec(1..60usize, 1..8),
    ) {
        let mut stream = Vec::new();
        for datagram in &datagrams {
            stream.extend_from_slice(&framing::header(datagram).expect("not empty"));
            stream.extend_from_slice(datagram);
        }
        let (mut deframer, mut frames, mut rest) = (Deframer::new(40), Vec::new(), &stream[..]);
        for piece in pieces.iter().cycle() {
            let (data, after) = rest.split_at(rest.len().min(*piece));
            deframer.feed(data, |frame| frames.push(frame.to_vec())).expect("no frame is too long");
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(frames, datagrams);
        prop_assert_eq!(deframer.pending(), 0);
    }

    #[test]
    fn a_written_request_reads_back_and_is_authentic(
        id: [u8; 12], username in vec(any::<u8>(), 0..=508), password in vec(any::<u8>(), 0..100),
        priority: u32, controlling: u64, nominate: bool,
    ) {
        let mut builder = Builder::new(Class::Request, id).username(&username).expect("short enough");
        builder = builder.priority(priority).ice_controlling(controlling);
        if nominate {
            builder = builder.use_candidate();
        }
        let message = builder.finish(Some(&password));
        let view = StunView::parse(&message).expect("ours");
        prop_assert_eq!(view.check_fingerprint(), Ok(()));
        prop_assert!(view.verify(&password));
        prop_assert_eq!(view.class(), Class::Request);
        prop_assert_eq!(view.transaction_id(), &id);
        prop_assert_eq!(view.username(), Some(&username[..]));
        prop_assert_eq!(view.priority(), Some(priority));
        prop_assert_eq!(view.ice_controlling(), Some(controlling));
        prop_assert_eq!(view.use_candidate(), nominate);
    }

    #[test]
    fn a_mapped_address_reads_back(id: [u8; 12], mapped: SocketAddr) {
        let message = Builder::new(Class::Success, id).xor_mapped_address(mapped).finish(None);
        let read = StunView::parse(&message).expect("ours").xor_mapped_address().expect("written");
        prop_assert_eq!((read.ip(), read.port()), (mapped.ip(), mapped.port()));
    }

    #[test]
    fn one_bit_changed_in_a_signed_message_is_noticed(id: [u8; 12], bit in 0..8usize, at: prop::sample::Index) {
        let mut message =
            Builder::new(Class::Request, id).username(b"a:b").expect("short").priority(1).finish(Some(b"secret"));
        let at = at.index(message.len());
        message[at] ^= 1 << bit;
        let sound = StunView::parse(&message).is_ok_and(|view| view.check_fingerprint().is_ok() && view.verify(b"secret"));
        prop_assert!(!sound || at + 8 >= message.len(), "byte {at}");
    }

    #[test]
    fn any_bytes_parse_or_fail_without_a_panic(mut bytes in vec(any::<u8>(), 0..200), sound_header: bool) {
        if sound_header && bytes.len() >= 20 {
            bytes.truncate(bytes.len() / 4 * 4);
            let length = (bytes.len() - 20) as u16;
            bytes[0] = 0;
            bytes[2..4].copy_from_slice(&length.to_be_bytes());
            bytes[4..8].copy_from_slice(&[0x21, 0x12, 0xa4, 0x42]);
        }
        if let Ok(view) = StunView::parse(&bytes) {
            let _ = view.check_fingerprint();
            prop_assert!(!view.verify(b"nobody signed with this"));
        }
    }
}
