//! What an attacker, or bad luck, can do to other people's calls. Each test first shows that it works without the guard.

mod common;

use std::collections::BTreeMap;

use common::{OTHER_VIP, VIP, World, binding_request, delivered, dropped, owner, to, to_both};
use voicecluster_relay_engine::core::{Downlink, DropReason, Limits, Rate, Verdict};

const VICTIM: &str = "192.0.2.1:50000";
const ATTACKER: &str = "198.51.100.66:4444";
const UNLIMITED: Rate = Rate {
    per_second: 1_000_000,
    burst: 4_000_000,
};

/// Two callers behind one NAT port: what each of them gets for media sent after both have connected.
fn media_of_two_callers(
    first_vip: common::Vip,
    second_vip: common::Vip,
) -> (Verdict, Verdict, Downlink) {
    let world = World::new(Limits::default());
    world.connect(VICTIM, first_vip, 1, 1);
    world.connect(VICTIM, second_vip, 2, 2);
    let downlink = world.owner_sends(owner(2), VICTIM, second_vip, &[0x80; 50]);
    (
        world.media(VICTIM, first_vip),
        world.media(VICTIM, second_vip),
        downlink,
    )
}

#[test]
fn two_callers_behind_one_nat_port_to_two_vips_are_two_flows() {
    let one_vip = media_of_two_callers(VIP, VIP);
    assert_eq!(
        (one_vip.0, one_vip.1),
        (to_both(1, 2), to_both(1, 2)),
        "without the VIP in the key they mix"
    );
    let two_vips = media_of_two_callers(VIP, OTHER_VIP);
    assert_eq!(two_vips, (to(1), to(2), delivered(VICTIM, OTHER_VIP)));
}

/// The attacker sends valid checks of his own call with the victim's address, every 200 ms for 20 s; his own owner
/// answers them. The victim checks every 2.5 s. Returns where the victim's media went, with how often.
fn media_under_forged_checks(limits: Limits) -> BTreeMap<String, usize> {
    let mut world = World::new(limits);
    world.connect(VICTIM, VIP, 1, 1);
    let mut outcomes = BTreeMap::new();
    for step in 0..100 {
        world.later(200);
        if step % 12 == 11 {
            world.check(VICTIM, VIP, &world.ufrag(1, 1));
            world.answer(1, VICTIM, VIP);
        }
        world.check(VICTIM, VIP, &world.ufrag(2, 66));
        world.answer(2, VICTIM, VIP);
        let reached = match world.media(VICTIM, VIP) {
            Verdict::Forward(to) | Verdict::ForwardBoth(to, _) if to == owner(1) => {
                "the victim's owner"
            }
            Verdict::Forward(_) | Verdict::ForwardBoth(..) => "the attacker's owner",
            Verdict::Drop(_) => "nobody",
        };
        *outcomes.entry(reached.to_owned()).or_default() += 1;
    }
    outcomes
}

#[test]
fn a_valid_hint_with_a_forged_address_never_displaces_a_fresh_incumbent() {
    let unguarded = media_under_forged_checks(Limits {
        challenge_ms: 0,
        ..Limits::default()
    });
    assert!(
        unguarded["the attacker's owner"] > 50,
        "without the guard the call is cut: {unguarded:?}"
    );
    let guarded = media_under_forged_checks(Limits::default());
    assert_eq!(
        guarded,
        BTreeMap::from([("the victim's owner".to_owned(), 100)])
    );
}

#[test]
fn a_flood_with_a_forged_address_cannot_make_the_incumbent_look_silent() {
    let mut world = World::new(Limits::default());
    world.connect(VICTIM, VIP, 1, 1);
    for step in 0..20_000 {
        if step % 2_500 == 2_499 {
            world.connect(VICTIM, VIP, 1, 1);
        }
        if world.check(VICTIM, VIP, &world.ufrag(2, 66)) == to(2) {
            world.answer(2, VICTIM, VIP);
        }
        world.media(VICTIM, VIP);
        world.later(1);
    }
    world.later(1_000);
    assert_eq!(world.media(VICTIM, VIP), to_both(1, 2));
}

#[test]
fn a_forged_check_with_a_wrong_password_gets_a_challenger_nothing() {
    let mut world = World::new(Limits::default());
    world.connect(VICTIM, VIP, 1, 1);
    for _ in 0..100 {
        world.later(100);
        // Its owner never answers with success, and the incumbent has long gone silent.
        world.check(VICTIM, VIP, &world.ufrag(2, 66));
        assert_eq!(world.media(VICTIM, VIP), to(1));
    }
}

/// One second of 57,000 packets on the attacker's flow, and the victim's 50 on another; what reached the owner.
fn one_second_of_flood(limits: Limits, media: bool) -> (usize, usize) {
    let mut world = World::new(limits);
    world.connect(VICTIM, VIP, 1, 1);
    world.connect(ATTACKER, VIP, 1, 66);
    let (mut attackers, mut victims) = (0, 0);
    let own = world.ufrag(1, 66);
    for millisecond in 0..1_000 {
        for _ in 0..57 {
            let verdict = if media {
                world.media(ATTACKER, VIP)
            } else {
                world.check(ATTACKER, VIP, &own)
            };
            attackers += usize::from(verdict == to(1));
        }
        if millisecond % 20 == 0 {
            victims += usize::from(world.media(VICTIM, VIP) == to(1));
        }
        world.later(1);
    }
    (attackers, victims)
}

#[test]
fn fifty_seven_thousand_packets_a_second_on_one_flow_are_limited_and_others_lose_nothing() {
    let unguarded = Limits {
        flow_packets: UNLIMITED,
        flow_stun: UNLIMITED,
        ..Limits::default()
    };
    assert_eq!(
        one_second_of_flood(unguarded, true),
        (57_000, 50),
        "without the guard all of it reaches the worker"
    );
    assert_eq!(one_second_of_flood(unguarded, false), (57_000, 50));
    let (media, victims) = one_second_of_flood(Limits::default(), true);
    assert!(
        (440..=450).contains(&media),
        "300 in a burst and 150 a second, not {media}"
    );
    let (checks, others) = one_second_of_flood(Limits::default(), false);
    assert!(
        (55..=60).contains(&checks),
        "40 in a burst and 20 a second, not {checks}"
    );
    assert_eq!((victims, others), (50, 50));
}

/// Sprays one ufrag from 10,000 forged sources in ten seconds; returns the most flows there ever were.
fn spray(limits: Limits) -> usize {
    let mut world = World::new(limits);
    let ufrag = world.ufrag(1, 66);
    let mut most = 0;
    for source in 0..10_000_u32 {
        let address = format!(
            "198.{}.{}.{}:5000",
            18 + source % 2,
            source / 2 % 250,
            source / 500
        );
        if world.check(&address, VIP, &ufrag) == to(1) {
            world.answer(1, &address, VIP);
        }
        let (provisional, confirmed, _) = world.counts();
        most = most.max(provisional + confirmed);
        world.later(1);
    }
    most
}

#[test]
fn a_ufrag_sprayed_over_forged_sources_makes_eight_flows_at_most() {
    let rates_off = Limits {
        new_flows_per_ufrag: UNLIMITED,
        new_flows_per_source: UNLIMITED,
        ..Limits::default()
    };
    let unguarded = spray(Limits {
        flows_per_ufrag: usize::MAX,
        ..rates_off
    });
    assert_eq!(
        unguarded, 10_000,
        "without the guard every forged source makes a flow"
    );
    assert_eq!((spray(rates_off), spray(Limits::default())), (8, 8));
}

#[test]
fn a_sprayed_ufrag_makes_four_new_flows_a_second() {
    let mut world = World::new(Limits::default());
    let ufrag = world.ufrag(1, 66);
    let mut passed = 0;
    for port in 0..10_000 {
        passed += usize::from(
            world.check(&format!("198.51.100.66:{}", 10_000 + port), VIP, &ufrag) == to(1),
        );
        world.later(1);
    }
    assert_eq!(passed, 4 + 39);
}

#[test]
fn a_ninth_flow_replaces_the_idlest_and_never_an_active_one() {
    let mut world = World::new(Limits {
        new_flows_per_ufrag: UNLIMITED,
        ..Limits::default()
    });
    let address = |number: usize| format!("192.0.2.1:{}", 50_000 + number);
    for number in 0..8 {
        world.connect(&address(number), VIP, 1, 1);
        world.later(10);
    }
    let active = [0, 1, 2, 4, 5, 6, 7];
    for number in active {
        world.media(&address(number), VIP);
        world.later(10);
    }
    world.connect(&address(8), VIP, 1, 1);
    let alive: Vec<usize> = (0..9)
        .filter(|&number| world.media(&address(number), VIP) == to(1))
        .collect();
    assert_eq!(
        (alive, world.evictions()),
        (vec![0, 1, 2, 4, 5, 6, 7, 8], vec![("ufrag_full", 1)])
    );
}

#[test]
fn a_check_replayed_from_another_address_makes_one_bounded_provisional_flow() {
    let mut world = World::new(Limits::default());
    world.connect(VICTIM, VIP, 1, 1);
    let replayed = binding_request(&world.ufrag(1, 1));
    let outcomes: Vec<_> = (0..100)
        .map(|_| world.decide(ATTACKER, VIP, &replayed).verdict)
        .collect();
    assert_eq!(
        outcomes.iter().filter(|&&verdict| verdict == to(1)).count(),
        41,
        "the first and a burst of 40"
    );
    assert_eq!(world.counts(), (1, 1, 0));
    assert_eq!(world.media(ATTACKER, VIP), dropped(DropReason::Provisional));
    assert_eq!(
        world.owner_sends(owner(1), ATTACKER, VIP, &[0x80; 50]),
        Downlink::Drop(DropReason::Provisional)
    );
    assert_eq!(world.media(VICTIM, VIP), to(1));
    world.later(5_000);
    world.sweep();
    assert_eq!(world.counts(), (0, 1, 0));
}

#[test]
fn replays_from_many_addresses_never_evict_the_confirmed_flow_of_their_ufrag() {
    let mut world = World::new(Limits::default());
    world.connect(VICTIM, VIP, 1, 1);
    let ufrag = world.ufrag(1, 1);
    for port in 0..2_000 {
        world.check(&format!("198.51.100.66:{}", 10_000 + port), VIP, &ufrag);
        world.later(20);
    }
    assert_eq!(world.media(VICTIM, VIP), to(1));
}

#[test]
fn a_strangers_ufrag_on_the_same_worker_cannot_evict_a_fresh_flow() {
    let mut world = World::new(Limits::default());
    world.connect(VICTIM, VIP, 1, 1);
    for step in 0..400 {
        if step % 25 == 0 {
            world.connect(VICTIM, VIP, 1, 1);
        }
        world.check(VICTIM, VIP, &world.ufrag(1, 66));
        world.answer(1, VICTIM, VIP);
        let other = format!("198.51.100.66:{}", 10_000 + step);
        if world.check(&other, VIP, &world.ufrag(1, 66)) == to(1) {
            world.answer(1, &other, VIP);
        }
        world.later(100);
        assert_ne!(
            world.media(VICTIM, VIP),
            dropped(DropReason::UnknownFlow),
            "at step {step}"
        );
    }
}

#[test]
fn one_network_cannot_use_up_everybodys_new_flows() {
    let world = World::new(Limits::default());
    let passed = (0..1_000_u64).filter(|&call| {
        let address = format!("198.51.100.{}:5000", call % 250);
        world.check(
            &address,
            [VIP, OTHER_VIP][(call / 250 % 2) as usize],
            &world.ufrag(1, 1_000 + call),
        ) == to(1)
    });
    assert_eq!(
        passed.count(),
        200 + 200,
        "200 flows, and 200 more checks of the same addresses as their challengers"
    );
    assert_eq!(world.check(VICTIM, VIP, &world.ufrag(1, 1)), to(1));
}

#[test]
fn one_worker_gets_no_more_than_its_rate_and_other_workers_all_of_theirs() {
    let mut world = World::new(Limits {
        route_packets: Rate {
            per_second: 100,
            burst: 100,
        },
        ..Limits::default()
    });
    let flood: Vec<String> = (0..20)
        .map(|number| format!("198.51.100.{number}:5000"))
        .collect();
    for (call, address) in flood.iter().enumerate() {
        world.connect(address, VIP, 1, 100 + call as u64);
    }
    world.connect(VICTIM, VIP, 2, 1);
    world.later(1_000);
    let passed = flood
        .iter()
        .cycle()
        .take(1_000)
        .filter(|address| world.media(address, VIP) == to(1))
        .count();
    assert_eq!((passed, world.media(VICTIM, VIP)), (100, to(2)));
}
