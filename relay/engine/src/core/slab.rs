//! A bounded table: entries found by a keyed hash, and standing in one of several lists ordered by the caller.
//!
//! Room for everything is reserved at the start (untouched memory costs nothing), so no packet waits for an allocation.
//! Every operation is constant work. An entry is named by a [`Handle`], which may outlive it: looking one up says so.

/// Names an entry; stale after its removal, and then perhaps the name of another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Handle(pub(super) u32);

/// The table. `T` is small and plain; `LISTS` lists hold its entries.
pub(super) struct Slab<T, const LISTS: usize> {
    entries: Vec<Entry<T>>,
    /// Open addressing: upper half of the word a tag of the hash, lower half the entry's number plus one; 0 is free.
    index: Vec<u64>,
    free: u32,
    lists: [List; LISTS],
}

#[derive(Clone, Copy)]
struct Entry<T> {
    value: T,
    hash: u32,
    previous: u32,
    next: u32,
    list: u8,
}

#[derive(Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
    len: usize,
}

const NONE: u32 = u32::MAX;
const FREE: u8 = u8::MAX;

impl<T: Copy, const LISTS: usize> Slab<T, LISTS> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            entries: Vec::with_capacity(capacity),
            index: vec![0; index_size(capacity)],
            free: NONE,
            lists: [List {
                head: NONE,
                tail: NONE,
                len: 0,
            }; LISTS],
        }
    }

    /// Makes room for `capacity` entries; does nothing if there is. Never shrinks.
    pub(super) fn reserve(&mut self, capacity: usize) {
        if index_size(capacity) <= self.index.len() {
            return;
        }
        self.entries
            .reserve(capacity.saturating_sub(self.entries.len()));
        let old = std::mem::replace(&mut self.index, vec![0; index_size(capacity)]);
        for word in old.into_iter().filter(|&word| word != 0) {
            self.index_insert((word >> 32) as u32, (word & 0xffff_ffff) as u32 - 1);
        }
    }

    pub(super) fn find(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<Handle> {
        let tag = tag(hash);
        let mask = self.index.len() - 1;
        let mut at = tag as usize & mask;
        loop {
            let word = self.index[at];
            if word == 0 {
                return None;
            }
            if (word >> 32) as u32 == tag {
                let number = (word & 0xffff_ffff) as u32 - 1;
                if is(&self.entries[number as usize].value) {
                    return Some(Handle(number));
                }
            }
            at = (at + 1) & mask;
        }
    }

    pub(super) fn get(&self, handle: Handle) -> Option<&T> {
        let entry = self.entries.get(handle.0 as usize)?;
        (entry.list != FREE).then_some(&entry.value)
    }

    pub(super) fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        let entry = self.entries.get_mut(handle.0 as usize)?;
        (entry.list != FREE).then_some(&mut entry.value)
    }

    /// Adds an entry at the tail of `list`. The caller keeps to the capacity and to one entry per key.
    pub(super) fn insert(&mut self, hash: u64, value: T, list: usize) -> Handle {
        let entry = Entry {
            value,
            hash: tag(hash),
            previous: NONE,
            next: NONE,
            list: FREE,
        };
        let number = if self.free == NONE {
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        } else {
            let number = self.free;
            self.free = self.entries[number as usize].next;
            self.entries[number as usize] = entry;
            number
        };
        self.reserve(self.entries.len());
        self.index_insert(tag(hash), number);
        self.link(number, list);
        Handle(number)
    }

    /// Removes an entry; `None` if the handle is stale.
    pub(super) fn remove(&mut self, handle: Handle) -> Option<T> {
        let value = *self.get(handle)?;
        let number = handle.0;
        self.index_remove(self.entries[number as usize].hash, number);
        self.unlink(number);
        let entry = &mut self.entries[number as usize];
        entry.list = FREE;
        entry.next = self.free;
        self.free = number;
        Some(value)
    }

    /// Moves an entry to the tail of `list`, wherever it was.
    pub(super) fn move_to_tail(&mut self, handle: Handle, list: usize) {
        if self.get(handle).is_some() {
            self.unlink(handle.0);
            self.link(handle.0, list);
        }
    }

    pub(super) fn head(&self, list: usize) -> Option<Handle> {
        let head = self.lists[list].head;
        (head != NONE).then_some(Handle(head))
    }

    pub(super) fn list_len(&self, list: usize) -> usize {
        self.lists[list].len
    }

    pub(super) fn len(&self) -> usize {
        self.lists.iter().map(|list| list.len).sum()
    }

    fn link(&mut self, number: u32, list: usize) {
        let tail = self.lists[list].tail;
        let entry = &mut self.entries[number as usize];
        (entry.previous, entry.next, entry.list) = (tail, NONE, list as u8);
        match tail {
            NONE => self.lists[list].head = number,
            _ => self.entries[tail as usize].next = number,
        }
        self.lists[list].tail = number;
        self.lists[list].len += 1;
    }

    fn unlink(&mut self, number: u32) {
        let Entry {
            previous,
            next,
            list,
            ..
        } = self.entries[number as usize];
        let list = &mut self.lists[usize::from(list)];
        list.len -= 1;
        match previous {
            NONE => list.head = next,
            _ => self.entries[previous as usize].next = next,
        }
        match next {
            NONE => list.tail = previous,
            _ => self.entries[next as usize].previous = previous,
        }
    }

    fn index_insert(&mut self, tag: u32, number: u32) {
        let mask = self.index.len() - 1;
        let mut at = tag as usize & mask;
        while self.index[at] != 0 {
            at = (at + 1) & mask;
        }
        self.index[at] = u64::from(tag) << 32 | u64::from(number + 1);
    }

    /// Removes a word and moves later ones of its run back, so that no tombstones pile up.
    fn index_remove(&mut self, tag: u32, number: u32) {
        let mask = self.index.len() - 1;
        let wanted = u64::from(tag) << 32 | u64::from(number + 1);
        let mut hole = tag as usize & mask;
        while self.index[hole] != wanted {
            if self.index[hole] == 0 {
                return;
            }
            hole = (hole + 1) & mask;
        }
        let mut at = (hole + 1) & mask;
        while self.index[at] != 0 {
            let home = (self.index[at] >> 32) as usize & mask;
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.index[hole] = self.index[at];
                hole = at;
            }
            at = (at + 1) & mask;
        }
        self.index[hole] = 0;
    }
}

/// The index is at most three quarters full.
fn index_size(capacity: usize) -> usize {
    (capacity + capacity / 3 + 2).next_power_of_two()
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn walk(slab: &Slab<u64, 2>, list: usize) -> Vec<u64> {
        let mut found = Vec::new();
        let mut at = slab.lists[list].head;
        while at != NONE {
            found.push(slab.entries[at as usize].value);
            at = slab.entries[at as usize].next;
        }
        found
    }

    #[test]
    fn entries_keep_the_order_of_their_list() {
        let mut slab: Slab<u64, 2> = Slab::with_capacity(4);
        let handles: Vec<_> = (1..=3)
            .map(|value| slab.insert(value << 32, value, 0))
            .collect();
        slab.move_to_tail(handles[0], 0);
        slab.move_to_tail(handles[1], 1);
        assert_eq!((walk(&slab, 0), walk(&slab, 1)), (vec![3, 1], vec![2]));
    }

    #[test]
    fn a_stale_handle_names_nothing() {
        let mut slab: Slab<u64, 2> = Slab::with_capacity(4);
        let handle = slab.insert(7 << 32, 7, 0);
        assert_eq!(slab.remove(handle), Some(7));
        assert_eq!(
            (slab.get(handle).copied(), slab.remove(handle), slab.len()),
            (None, None, 0)
        );
    }

    #[test]
    fn it_agrees_with_a_map_under_random_use() {
        let mut slab: Slab<u64, 2> = Slab::with_capacity(64);
        let mut model: HashMap<u64, Handle> = HashMap::new();
        let mut state = 42_u64;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let key = (state >> 40) % 96;
            // Few distinct home slots, so that runs collide and wrap.
            let hash = (key % 7) << 32 | 0xffff_fff0_0000_0000;
            if let Some(handle) = model.remove(&key) {
                assert_eq!(slab.remove(handle), Some(key));
            } else if model.len() < 64 {
                model.insert(key, slab.insert(hash, key, (key % 2) as usize));
            }
            for (key, handle) in &model {
                let hash = (key % 7) << 32 | 0xffff_fff0_0000_0000;
                assert_eq!(slab.find(hash, |value| value == key), Some(*handle));
            }
            assert_eq!(slab.len(), model.len());
        }
    }
}
