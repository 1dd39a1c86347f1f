//! How many flows each ufrag has, and how fast it makes new ones.
//!
//! An entry names its flows by handles that are checked when they are needed, so a flow that ends needs no call here. An
//! entry stays for as long as one of its flows lives, or the table has room.

use super::bucket::{Bucket, Rate};
use super::flow::Ufrag;
use super::limits::MAX_FLOWS_PER_UFRAG;
use super::slab::{Handle, Slab};
use super::time::Tick;

/// Where a flow is: its shard and its handle there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct FlowRef {
    pub(super) shard: u8,
    pub(super) handle: Handle,
}

/// One ufrag's flows.
#[derive(Clone, Copy)]
pub(super) struct UfragEntry {
    ufrag: Ufrag,
    count: u8,
    shards: [u8; MAX_FLOWS_PER_UFRAG],
    handles: [u32; MAX_FLOWS_PER_UFRAG],
    pub(super) new_flows: Bucket,
    used: Tick,
}

impl UfragEntry {
    pub(super) fn flows(&self) -> impl Iterator<Item = FlowRef> + '_ {
        let refs = self
            .shards
            .iter()
            .zip(&self.handles)
            .take(usize::from(self.count));
        refs.map(|(&shard, &handle)| FlowRef {
            shard,
            handle: Handle(handle),
        })
    }

    /// Keeps only the flows for which `keep` holds.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(FlowRef) -> bool) {
        let mut kept = 0;
        for at in 0..usize::from(self.count) {
            if keep(FlowRef {
                shard: self.shards[at],
                handle: Handle(self.handles[at]),
            }) {
                (self.shards[kept], self.handles[kept]) = (self.shards[at], self.handles[at]);
                kept += 1;
            }
        }
        self.count = kept as u8;
    }

    /// Adds a flow. The caller made room.
    pub(super) fn push(&mut self, flow: FlowRef) {
        let at = usize::from(self.count);
        if at < MAX_FLOWS_PER_UFRAG && !self.flows().any(|known| known == flow) {
            (self.shards[at], self.handles[at]) = (flow.shard, flow.handle.0);
            self.count += 1;
        }
    }
}

pub(super) struct UfragShard {
    entries: Slab<UfragEntry, 1>,
}

impl UfragShard {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            entries: Slab::with_capacity(capacity),
        }
    }

    /// The entry of a ufrag, made if need be; a full table forgets the ufrag that has made no flow for longest.
    pub(super) fn entry(
        &mut self,
        hash: u64,
        ufrag: &Ufrag,
        rate: Rate,
        capacity: usize,
        now: Tick,
    ) -> &mut UfragEntry {
        let handle = match self.entries.find(hash, |entry| entry.ufrag == *ufrag) {
            Some(handle) => handle,
            None => {
                while self.entries.len() >= capacity.max(1) {
                    let Some(oldest) = self.entries.head(0) else {
                        break;
                    };
                    self.entries.remove(oldest);
                }
                let entry = UfragEntry {
                    ufrag: *ufrag,
                    count: 0,
                    shards: [0; MAX_FLOWS_PER_UFRAG],
                    handles: [0; MAX_FLOWS_PER_UFRAG],
                    new_flows: Bucket::full(rate, now),
                    used: now,
                };
                self.entries.insert(hash, entry, 0)
            }
        };
        self.entries.move_to_tail(handle, 0);
        let entry = self
            .entries
            .get_mut(handle)
            .expect("an entry that was just found or made is there");
        entry.used = now;
        entry
    }

    /// Forgets ufrags that made no flow for `idle_ms` and have none left; looks at no more than `budget` of them.
    pub(super) fn sweep(
        &mut self,
        budget: usize,
        idle_ms: u32,
        is_alive: impl Fn(FlowRef, &Ufrag) -> bool,
        now: Tick,
    ) {
        for _ in 0..budget {
            let Some(handle) = self.entries.head(0) else {
                break;
            };
            let Some(entry) = self.entries.get_mut(handle) else {
                break;
            };
            if now.since(entry.used) < idle_ms {
                break;
            }
            let ufrag = entry.ufrag;
            entry.retain(|flow| is_alive(flow, &ufrag));
            entry.used = now;
            if entry.count == 0 {
                self.entries.remove(handle);
            } else {
                self.entries.move_to_tail(handle, 0);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        per_second: 4,
        burst: 4,
    };

    fn flow(number: u32) -> FlowRef {
        FlowRef {
            shard: 0,
            handle: Handle(number),
        }
    }

    #[test]
    fn an_entry_outlives_its_idle_time_while_a_flow_of_it_lives() {
        let (mut shard, t0) = (UfragShard::new(4), Tick::from_millis(0));
        shard.entry(1 << 32, &[b'a'; 23], RATE, 4, t0).push(flow(1));
        shard.entry(2 << 32, &[b'b'; 23], RATE, 4, t0).push(flow(2));
        shard.sweep(
            9,
            60_000,
            |flow, _| flow.handle == Handle(2),
            t0.plus(60_000),
        );
        assert_eq!(shard.len(), 1);
    }

    #[test]
    fn a_full_table_forgets_the_ufrag_that_made_no_flow_for_longest() {
        let (mut shard, t0) = (UfragShard::new(2), Tick::from_millis(0));
        for (at, name) in [(0, b'a'), (1, b'b'), (2, b'a'), (3, b'c')] {
            shard
                .entry(u64::from(name) << 32, &[name; 23], RATE, 2, t0.plus(at))
                .push(flow(1));
        }
        assert_eq!(
            shard
                .entry(u64::from(b'a') << 32, &[b'a'; 23], RATE, 2, t0.plus(4))
                .flows()
                .count(),
            1
        );
        assert_eq!(
            shard
                .entry(u64::from(b'b') << 32, &[b'b'; 23], RATE, 2, t0.plus(5))
                .flows()
                .count(),
            0
        );
    }
}
