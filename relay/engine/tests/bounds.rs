//! Tables have an end: who goes when they are full, and that garbage only costs its own time.

mod common;

use common::{VIP, World, binding_request, dropped, to};
use voicecluster_relay_engine::core::{DropReason, Limits};

fn address(number: usize) -> String {
    format!("192.0.{}.{}:50000", number / 200, number % 200)
}

#[test]
fn a_full_table_evicts_provisional_flows_before_any_confirmed_one() {
    let mut world = World::new(Limits {
        flows: 3,
        ..Limits::default()
    });
    world.connect(&address(0), VIP, 1, 0);
    world.later(10);
    world.connect(&address(1), VIP, 1, 1);
    world.later(10);
    world.check(&address(2), VIP, &world.ufrag(1, 2));
    world.later(10);
    world.connect(&address(3), VIP, 1, 3);
    let alive: Vec<usize> = (0..4)
        .filter(|&number| world.media(&address(number), VIP) == to(1))
        .collect();
    assert_eq!(
        (alive, world.evictions()),
        (vec![0, 1, 3], vec![("full_provisional", 1)])
    );
}

#[test]
fn a_table_full_of_confirmed_flows_evicts_the_idlest() {
    let mut world = World::new(Limits {
        flows: 3,
        ..Limits::default()
    });
    for number in 0..3 {
        world.connect(&address(number), VIP, 1, number as u64);
    }
    for number in [1, 0, 2] {
        world.later(2_000);
        assert_eq!(world.media(&address(number), VIP), to(1));
    }
    world.connect(&address(3), VIP, 1, 3);
    let alive: Vec<usize> = (0..4)
        .filter(|&number| world.media(&address(number), VIP) == to(1))
        .collect();
    assert_eq!(
        (alive, world.evictions()),
        (vec![0, 2, 3], vec![("full_idlest", 1)])
    );
}

#[test]
fn provisional_flows_have_a_small_table_of_their_own() {
    let world = World::new(Limits {
        provisional_flows: 2,
        ..Limits::default()
    });
    for number in 0..5 {
        assert_eq!(
            world.check(&address(number), VIP, &world.ufrag(1, number as u64)),
            to(1)
        );
    }
    assert_eq!(
        (world.counts(), world.evictions()),
        ((2, 0, 0), vec![("full_provisional", 3)])
    );
}

#[test]
fn smaller_limits_take_effect_on_the_running_table() {
    let mut world = World::new(Limits::default());
    for number in 0..10 {
        world.connect(&address(number), VIP, 1, number as u64);
    }
    world.view.limits.flows = 4;
    world.connect(&address(10), VIP, 1, 10);
    assert_eq!(world.counts(), (0, 4, 0));
}

#[test]
fn larger_limits_take_effect_on_the_running_table() {
    let mut world = World::new(Limits {
        flows: 2,
        ..Limits::default()
    });
    world.view.limits.flows = 500;
    world.relay.reserve(&world.view.limits);
    for number in 0..150 {
        world.connect(&address(number), VIP, 1, number as u64);
    }
    assert_eq!((world.counts(), world.evictions()), ((0, 150, 0), vec![]));
}

#[test]
fn any_bytes_are_dropped_or_forwarded_and_never_panic() {
    let mut random = SplitMix(20_261_130);
    let mut world = World::new(Limits {
        flows: 50,
        provisional_flows: 20,
        ..Limits::default()
    });
    world.connect(&address(0), VIP, 1, 0);
    for _ in 0..60_000 {
        let client = address(random.below(60));
        let hint = world.ufrag(1 + random.below(5) as u16, random.below(80) as u64);
        let datagram = match random.below(4) {
            0 => random.bytes(1_600),
            1 => random.broken(binding_request(&hint)),
            2 => [&[0, 1], random.bytes(200).as_slice()].concat(),
            _ => binding_request(&hint),
        };
        world.decide(&client, VIP, &datagram);
        world.owner_sends(
            common::owner(1 + random.below(4) as u16),
            &client,
            VIP,
            &datagram,
        );
        world.later(random.below(30) as u32);
        if random.below(50) == 0 {
            world.sweep();
        }
        let (provisional, confirmed, challenged) = world.counts();
        assert!(
            provisional <= 20
                && provisional + confirmed <= 50
                && challenged <= confirmed + provisional
        );
    }
}

#[test]
fn garbage_makes_no_state() {
    let mut random = SplitMix(7);
    let world = World::new(Limits::default());
    for _ in 0..20_000 {
        let datagram = random.bytes(300);
        world.decide(&address(random.below(100)), VIP, &datagram);
    }
    assert_eq!((world.counts(), world.relay.ufrag_count()), ((0, 0, 0), 0));
    assert_eq!(
        world.media(&address(0), VIP),
        dropped(DropReason::UnknownFlow)
    );
}

/// A seeded generator: a failure repeats.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn bytes(&mut self, limit: usize) -> Vec<u8> {
        (0..self.below(limit)).map(|_| self.next() as u8).collect()
    }

    fn broken(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        let at = self.below(bytes.len());
        bytes[at] = self.next() as u8;
        let keep = self.below(bytes.len() + 1);
        if self.below(2) == 0 {
            bytes.truncate(keep);
        }
        bytes
    }
}
