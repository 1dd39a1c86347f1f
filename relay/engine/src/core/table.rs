//! One shard of the flow table: provisional and confirmed flows, bounded, expired in constant work per step.
//!
//! Provisional flows stand in order of their making, which is the order they expire in. Confirmed ones stand in order
//! of their last packet to within a second: moving one at every packet would touch three of them for each.

use super::address::FlowKey;
use super::counters::Evictions;
use super::flow::{Flow, Settled, Side, Ufrag};
use super::limits::Limits;
use super::slab::{Handle, Slab};
use super::time::Tick;
use super::verdict::Eviction;

const PROVISIONAL: usize = 0;
const CONFIRMED: usize = 1;
const RELINK_MS: u32 = 1_000;

/// How many flows a shard may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) flows: usize,
    pub(super) provisional: usize,
}

/// How many flows there are, by state. `challenged` ones are counted in `confirmed` or `provisional` as well.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FlowCounts {
    /// Flows whose owner has not answered yet.
    pub provisional: usize,
    /// Flows whose owner has.
    pub confirmed: usize,
    /// Flows that two routes dispute.
    pub challenged: usize,
}

pub(super) struct FlowShard {
    flows: Slab<Flow, 2>,
    challenged: usize,
}

impl FlowShard {
    pub(super) fn new(room: Room) -> Self {
        Self {
            flows: Slab::with_capacity(room.flows),
            challenged: 0,
        }
    }

    pub(super) fn counts(&self) -> FlowCounts {
        FlowCounts {
            provisional: self.flows.list_len(PROVISIONAL),
            confirmed: self.flows.list_len(CONFIRMED),
            challenged: self.challenged,
        }
    }

    /// Finds a flow that is still alive, with its challenge settled. One whose time is up goes at once, swept or not.
    pub(super) fn find(
        &mut self,
        hash: u64,
        key: &FlowKey,
        limits: &Limits,
        evictions: &Evictions,
        now: Tick,
    ) -> Option<Handle> {
        let handle = self.flows.find(hash, |flow| flow.key == *key)?;
        if self.flows.get(handle)?.is_expired(limits, now) {
            self.expire(handle, evictions);
            return None;
        }
        self.settle(handle, limits, evictions, now);
        Some(handle)
    }

    pub(super) fn get(&self, handle: Handle) -> Option<&Flow> {
        self.flows.get(handle)
    }

    /// Changes a flow and keeps the count of challenged ones right.
    pub(super) fn update<R>(
        &mut self,
        handle: Handle,
        change: impl FnOnce(&mut Flow) -> R,
    ) -> Option<R> {
        let flow = self.flows.get_mut(handle)?;
        let before = flow.is_challenged();
        let result = change(flow);
        let after = flow.is_challenged();
        self.challenged = self.challenged + usize::from(after) - usize::from(before);
        Some(result)
    }

    /// The client was heard.
    pub(super) fn touch(&mut self, handle: Handle, now: Tick) {
        let Some(flow) = self.flows.get_mut(handle) else {
            return;
        };
        flow.heard = now;
        if flow.incumbent.is_confirmed() && now.since(flow.linked) >= RELINK_MS {
            flow.linked = now;
            self.flows.move_to_tail(handle, CONFIRMED);
        }
    }

    /// Adds a provisional flow, making room first: provisional flows go before confirmed ones.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        flow: Flow,
        room: Room,
        evictions: &Evictions,
    ) -> Handle {
        while self.flows.list_len(PROVISIONAL) >= room.provisional.max(1) {
            self.evict_head(PROVISIONAL, Eviction::FullProvisional, evictions);
        }
        while self.flows.len() >= room.flows.max(1) {
            match self.flows.list_len(PROVISIONAL) {
                0 => self.evict_head(CONFIRMED, Eviction::FullIdlest, evictions),
                _ => self.evict_head(PROVISIONAL, Eviction::FullProvisional, evictions),
            }
        }
        self.flows.insert(hash, flow, PROVISIONAL)
    }

    /// The owner answered a check of `side` with success.
    pub(super) fn confirm(
        &mut self,
        handle: Handle,
        side: Side,
        limits: &Limits,
        evictions: &Evictions,
        now: Tick,
    ) {
        let was_confirmed = self
            .flows
            .get(handle)
            .is_some_and(|flow| flow.incumbent.is_confirmed());
        self.update(handle, |flow| flow.confirm(side, now));
        self.settle(handle, limits, evictions, now);
        if !was_confirmed && let Some(flow) = self.flows.get_mut(handle) {
            flow.linked = now;
            self.flows.move_to_tail(handle, CONFIRMED);
        }
    }

    /// Takes the flow away from a ufrag that has too many: a challenger loses its challenge, an incumbent the flow.
    pub(super) fn release(&mut self, handle: Handle, ufrag: &Ufrag, evictions: &Evictions) {
        let Some(flow) = self.flows.get(handle) else {
            return;
        };
        if flow.incumbent.ufrag == *ufrag {
            self.remove(handle, Eviction::UfragFull, evictions);
        } else {
            self.update(handle, Flow::drop_challenger);
            evictions.count(Eviction::UfragFull);
        }
    }

    /// Removes flows whose time is up; looks at no more than `budget` of them.
    pub(super) fn sweep(
        &mut self,
        budget: usize,
        limits: &Limits,
        evictions: &Evictions,
        now: Tick,
    ) {
        for list in [PROVISIONAL, CONFIRMED] {
            for _ in 0..budget {
                let Some(handle) = self.flows.head(list) else {
                    break;
                };
                let Some(flow) = self.flows.get_mut(handle) else {
                    break;
                };
                if flow.is_expired(limits, now) {
                    self.expire(handle, evictions);
                } else if list == CONFIRMED && now.since(flow.linked) >= limits.idle_ms {
                    flow.linked = now;
                    self.flows.move_to_tail(handle, list);
                } else {
                    break;
                }
            }
        }
    }

    pub(super) fn reserve(&mut self, room: Room) {
        self.flows.reserve(room.flows);
    }

    fn settle(&mut self, handle: Handle, limits: &Limits, evictions: &Evictions, now: Tick) {
        match self.update(handle, |flow| flow.settle(limits, now)) {
            Some(Settled::Displaced) => evictions.count(Eviction::Displaced),
            Some(Settled::ChallengeEnded) => evictions.count(Eviction::ChallengeEnded),
            Some(Settled::Unchanged) | None => {}
        }
    }

    fn expire(&mut self, handle: Handle, evictions: &Evictions) {
        let confirmed = self
            .flows
            .get(handle)
            .is_some_and(|flow| flow.incumbent.is_confirmed());
        let why = if confirmed {
            Eviction::Idle
        } else {
            Eviction::ProvisionalExpired
        };
        self.remove(handle, why, evictions);
    }

    fn evict_head(&mut self, list: usize, why: Eviction, evictions: &Evictions) {
        if let Some(handle) = self.flows.head(list) {
            self.remove(handle, why, evictions);
        }
    }

    fn remove(&mut self, handle: Handle, why: Eviction, evictions: &Evictions) {
        if let Some(flow) = self.flows.remove(handle) {
            self.challenged -= usize::from(flow.is_challenged());
            evictions.count(why);
        }
    }
}
