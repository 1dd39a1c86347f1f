//! A flow's life: found by hint, provisional, confirmed by its owner, challenged, idle.

mod common;

use common::{
    OTHER_VIP, VIP, World, attribute, binding_request, delivered, dropped, endpoint, owner, stun,
    to, to_both,
};
use voicecluster_relay_engine::core::{
    DecodeResult, Downlink, DropReason, Endpoint, Limits, OwnerAddr, Routes, Verdict,
};

const ANNA: &str = "192.0.2.1:50000";
const BERT: &str = "192.0.2.2:50000";

fn world() -> World {
    World::new(Limits::default())
}

#[test]
fn a_valid_hint_reaches_its_owner_and_makes_a_provisional_flow() {
    let world = world();
    let decision = world.decide(ANNA, VIP, &binding_request(&world.ufrag(2, 1)));
    assert_eq!(
        (decision.verdict, decision.decoded),
        (to(2), Some(DecodeResult::Ok))
    );
    assert_eq!(world.counts(), (1, 0, 0));
}

#[test]
fn a_provisional_flow_carries_stun_only_in_both_directions() {
    let world = world();
    world.check(ANNA, VIP, &world.ufrag(1, 1));
    let request_from_owner = stun(0x0001, &attribute(0x0006, b"peer:ours"));
    let outputs = (
        world.media(ANNA, VIP),
        world.decide(ANNA, VIP, &stun(0x0101, &[])).verdict,
        world.decide(ANNA, VIP, &stun(0x0011, &[])).verdict,
        world.owner_sends(owner(1), ANNA, VIP, &[0x16; 50]),
        world.owner_sends(owner(1), ANNA, VIP, &request_from_owner),
    );
    let provisional = DropReason::Provisional;
    let expected = (
        dropped(provisional),
        to(1),
        to(1),
        Downlink::Drop(provisional),
        delivered(ANNA, VIP),
    );
    assert_eq!(outputs, expected);
}

#[test]
fn the_owners_success_response_confirms_a_flow() {
    let world = world();
    world.connect(ANNA, VIP, 1, 1);
    assert_eq!(world.counts(), (0, 1, 0));
    assert_eq!(world.media(ANNA, VIP), to(1));
    assert_eq!(
        world.owner_sends(owner(1), ANNA, VIP, &[0x80; 50]),
        delivered(ANNA, VIP)
    );
}

#[test]
fn an_error_response_confirms_nothing() {
    let world = world();
    world.check(ANNA, VIP, &world.ufrag(1, 1));
    let error = stun(0x0111, &attribute(0x0009, &[0, 0, 4, 1]));
    assert_eq!(
        world.owner_sends(owner(1), ANNA, VIP, &error),
        delivered(ANNA, VIP)
    );
    assert_eq!(world.counts(), (1, 0, 0));
}

#[test]
fn a_client_cannot_confirm_its_own_flow() {
    let world = world();
    world.check(ANNA, VIP, &world.ufrag(1, 1));
    assert_eq!(world.decide(ANNA, VIP, &stun(0x0101, &[])).verdict, to(1));
    assert_eq!(world.counts(), (1, 0, 0));
}

#[test]
fn an_unconfirmed_flow_lives_five_seconds_whatever_it_sends() {
    let mut world = world();
    let ufrag = world.ufrag(1, 1);
    for _ in 0..5 {
        world.check(ANNA, VIP, &ufrag);
        world.later(999);
    }
    assert_eq!(world.decide(ANNA, VIP, &stun(0x0011, &[])).verdict, to(1));
    world.later(5);
    assert_eq!(
        world.decide(ANNA, VIP, &stun(0x0011, &[])).verdict,
        dropped(DropReason::UnknownFlow)
    );
    assert_eq!(world.evictions(), [("provisional_expired", 1)]);
}

#[test]
fn a_confirmed_flow_ends_after_sixty_idle_seconds_and_not_before() {
    let mut world = world();
    world.connect(ANNA, VIP, 1, 1);
    world.later(59_999);
    assert_eq!(world.media(ANNA, VIP), to(1));
    world.later(60_000);
    assert_eq!(world.media(ANNA, VIP), dropped(DropReason::UnknownFlow));
    assert_eq!(
        (world.counts(), world.evictions()),
        ((0, 0, 0), vec![("idle", 1)])
    );
}

#[test]
fn sweeping_ends_what_is_idle_and_keeps_what_is_not() {
    let mut world = world();
    world.connect(ANNA, VIP, 1, 1);
    world.connect(BERT, VIP, 2, 2);
    world.later(40_000);
    world.media(BERT, VIP);
    world.later(20_000);
    world.sweep();
    assert_eq!(
        (world.counts(), world.evictions()),
        ((0, 1, 0), vec![("idle", 1)])
    );
    world.later(60_000);
    world.sweep();
    assert_eq!((world.counts(), world.relay.ufrag_count()), ((0, 0, 0), 0));
}

#[test]
fn a_known_ufrag_is_not_decoded_again() {
    let world = world();
    let request = binding_request(&world.ufrag(1, 1));
    let decoded: Vec<_> = (0..3)
        .map(|_| world.decide(ANNA, VIP, &request).decoded)
        .collect();
    assert_eq!(decoded, [Some(DecodeResult::Ok), None, None]);
}

#[test]
fn an_ice_restart_on_the_same_owner_keeps_the_flow_and_soon_owns_it() {
    let mut world = world();
    world.connect(ANNA, VIP, 1, 1);
    world.later(10);
    world.connect(ANNA, VIP, 1, 2);
    assert_eq!((world.media(ANNA, VIP), world.counts()), (to(1), (0, 1, 0)));
    for _ in 0..3 {
        world.later(2_500);
        world.connect(ANNA, VIP, 1, 2);
    }
    let decoded = world
        .decide(ANNA, VIP, &binding_request(&world.ufrag(1, 2)))
        .decoded;
    assert_eq!((decoded, world.evictions()), (None, vec![("displaced", 1)]));
}

#[test]
fn twenty_ice_restarts_in_a_row_keep_the_flow() {
    let mut world = world();
    for call in 0..20 {
        world.connect(ANNA, VIP, 1, call);
        assert_eq!(world.media(ANNA, VIP), to(1));
        world.later(300);
    }
    assert_eq!(world.counts(), (0, 1, 0));
}

#[test]
fn a_nat_port_reused_by_a_new_caller_goes_to_both_owners_until_the_old_call_is_silent() {
    let mut world = world();
    world.connect(ANNA, VIP, 1, 1);
    world.later(3_000);
    assert_eq!(world.check(ANNA, VIP, &world.ufrag(2, 2)), to(2));
    assert_eq!((world.media(ANNA, VIP), world.counts()), (to(1), (0, 1, 1)));
    world.answer(2, ANNA, VIP);
    assert_eq!(world.media(ANNA, VIP), to_both(1, 2));
    world.later(3_999);
    assert_eq!(world.check(ANNA, VIP, &world.ufrag(2, 2)), to(2));
    world.answer(2, ANNA, VIP);
    assert_eq!(world.media(ANNA, VIP), to_both(1, 2));
    world.later(1);
    assert_eq!((world.media(ANNA, VIP), world.counts()), (to(2), (0, 1, 0)));
    assert_eq!(world.evictions(), [("displaced", 1)]);
}

#[test]
fn packets_from_inside_are_taken_from_the_flows_owner_only() {
    let world = world();
    world.connect(ANNA, VIP, 1, 1);
    let media = [0x80; 40];
    let elsewhere = OwnerAddr(Endpoint {
        port: 40_001,
        ..owner(1).0
    });
    let outputs = [
        world.owner_sends(owner(2), ANNA, VIP, &media),
        world.owner_sends(elsewhere, ANNA, VIP, &media),
        world.owner_sends(owner(1), BERT, VIP, &media),
        world.owner_sends(owner(1), ANNA, OTHER_VIP, &media),
        world.owner_sends(owner(1), ANNA, VIP, &[]),
    ];
    let reasons = [
        DropReason::NotOwner,
        DropReason::NotOwner,
        DropReason::UnknownFlow,
        DropReason::UnknownFlow,
        DropReason::Empty,
    ];
    assert_eq!(outputs, reasons.map(Downlink::Drop));
}

#[test]
fn a_flow_lives_on_when_its_vip_changes_and_hears_its_owner_by_both_names() {
    let mut world = world();
    world.connect(ANNA, VIP, 1, 1);
    let former = world.view.vips.of(VIP);
    world.advertise(["198.51.100.1:3478", "203.0.113.2:3478"]);
    assert_eq!(world.media(ANNA, VIP), to(1));
    for vip in [former, world.view.vips.of(VIP)] {
        assert_eq!(
            world.owner_sends_by(owner(1), ANNA, vip, &[0x80; 50]),
            delivered(ANNA, VIP)
        );
    }
}

#[test]
fn a_vip_belongs_to_the_listener_that_advertises_it_now() {
    let mut world = world();
    world.connect(ANNA, VIP, 1, 1);
    world.connect(ANNA, OTHER_VIP, 2, 2);
    world.advertise(["203.0.113.2:3478", "203.0.113.1:3478"]);
    assert_eq!(
        world.owner_sends(owner(1), ANNA, VIP, &[0x80; 50]),
        delivered(ANNA, VIP)
    );
}

#[test]
fn a_vip_that_is_not_ours_is_answered_by_nobody() {
    let world = world();
    world.connect(ANNA, VIP, 1, 1);
    let foreign = endpoint("203.0.113.9:3478");
    let outcome = world.relay.from_owner(
        &world.view,
        owner(1),
        common::caller(ANNA),
        foreign,
        &[0x80; 9],
        world.now,
    );
    assert_eq!(outcome, Downlink::Drop(DropReason::UnknownVip));
}

#[test]
fn a_routes_new_address_is_used_at_once_and_the_old_one_no_more() {
    let mut world = world();
    world.connect(ANNA, VIP, 1, 1);
    let moved = OwnerAddr(endpoint("10.0.0.99:40000"));
    let list = [(common::route(1), moved)];
    world.view.routes =
        Routes::replacing(&world.view.routes, list, &world.view.limits, world.now).into();
    assert_eq!(world.media(ANNA, VIP), Verdict::Forward(moved));
    assert_eq!(
        world.owner_sends(moved, ANNA, VIP, &[0x80; 40]),
        delivered(ANNA, VIP)
    );
    assert_eq!(
        world.owner_sends(owner(1), ANNA, VIP, &[0x80; 40]),
        Downlink::Drop(DropReason::NotOwner)
    );
}

#[test]
fn a_flow_whose_route_is_gone_forwards_nothing_until_the_route_is_back() {
    let mut world = world();
    world.connect(ANNA, VIP, 1, 1);
    let all = world.view.routes.clone();
    world.view.routes = Routes::default().into();
    assert_eq!(world.media(ANNA, VIP), dropped(DropReason::RouteGone));
    world.view.routes = all;
    assert_eq!(world.media(ANNA, VIP), to(1));
}

#[test]
fn every_unusable_datagram_has_its_reason() {
    let world = world();
    let ufrag = world.ufrag(1, 1);
    let long = [ufrag.as_slice(), b"x"].concat();
    let mut forged = ufrag;
    forged[5] = if forged[5] == b'a' { b'b' } else { b'a' };
    let unknown_key = [b"B", &ufrag[1..]].concat();
    let broken = [&[0, 1, 0, 9][..], &[0; 16]].concat();
    let bad_fingerprint = [attribute(0x0006, b"x:y"), attribute(0x8028, &[1, 2, 3, 4])].concat();
    let outcomes = [
        world.decide(ANNA, VIP, &[]),
        world.decide(ANNA, VIP, &[0x80; 1_473]),
        world.decide(ANNA, VIP, &[64; 30]),
        world.decide(ANNA, VIP, &[0x80; 30]),
        world.decide(ANNA, VIP, &broken),
        world.decide(ANNA, VIP, &stun(0x0003, &[])),
        world.decide(ANNA, VIP, &stun(0x0001, &[])),
        world.decide(ANNA, VIP, &stun(0x0001, &bad_fingerprint)),
        world.decide(ANNA, VIP, &stun(0x0011, &[])),
        world.decide(ANNA, VIP, &binding_request(&long)),
        world.decide(ANNA, VIP, &binding_request(&forged)),
        world.decide(ANNA, VIP, &binding_request(&unknown_key)),
        world.decide(ANNA, VIP, &binding_request(&world.ufrag(9, 1))),
    ];
    let expected = [
        (DropReason::Empty, None),
        (DropReason::Oversize, None),
        (DropReason::UnknownProtocol, None),
        (DropReason::UnknownFlow, None),
        (DropReason::BadStun, None),
        (DropReason::UnknownMethod, None),
        (DropReason::NoUsername, None),
        (DropReason::BadFingerprint, None),
        (DropReason::UnknownFlow, None),
        (DropReason::BadHint, Some(DecodeResult::BadLength)),
        (DropReason::BadHint, Some(DecodeResult::BadBlock)),
        (DropReason::BadHint, Some(DecodeResult::UnknownKey)),
        (DropReason::UnknownRoute, Some(DecodeResult::UnknownRoute)),
    ];
    let got = outcomes.map(|decision| (decision.verdict, decision.decoded));
    assert_eq!(got, expected.map(|(why, decoded)| (dropped(why), decoded)));
    assert_eq!(world.counts(), (0, 0, 0));
}

#[test]
fn unknown_attributes_are_no_reason_to_drop() {
    let world = world();
    let username = attribute(0x0006, &[world.ufrag(1, 1).as_slice(), b":peer"].concat());
    let request = stun(
        0x0001,
        &[
            attribute(0x7fee, &[1; 600]),
            username,
            attribute(0xc057, &[0; 4]),
        ]
        .concat(),
    );
    assert_eq!(world.decide(ANNA, VIP, &request).verdict, to(1));
}
