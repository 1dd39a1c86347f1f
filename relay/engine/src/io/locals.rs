//! This host's addresses that packets came to, by small numbers: a flow stores two bytes instead of sixteen.

use std::sync::{Mutex, PoisonError};

use crate::core::LocalId;

/// The list of a process. It only grows, to at most [`MAX`]; a host has a handful.
#[derive(Debug, Default)]
pub(super) struct SharedLocals(Mutex<Vec<[u8; 16]>>);

/// One worker's copy.
#[derive(Debug, Default)]
pub(super) struct Locals {
    known: Vec<[u8; 16]>,
}

/// More would be somebody's whole network on one host; further addresses leave the choice to the kernel.
const MAX: usize = 4_096;

impl Locals {
    /// The number of an address; 0 stands for "whatever the socket is bound to".
    pub(super) fn id(&mut self, address: Option<[u8; 16]>, shared: &SharedLocals) -> LocalId {
        let Some(address) = address else {
            return LocalId(0);
        };
        if let Some(at) = self.known.iter().position(|known| *known == address) {
            return LocalId(at as u16 + 1);
        }
        let mut all = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains(&address) && all.len() < MAX {
            all.push(address);
        }
        self.known.clone_from(&all);
        let at = all.iter().position(|known| *known == address);
        at.map_or(LocalId(0), |at| LocalId(at as u16 + 1))
    }

    /// The address of a number.
    pub(super) fn address(&mut self, id: LocalId, shared: &SharedLocals) -> Option<[u8; 16]> {
        let at = usize::from(id.0).checked_sub(1)?;
        if at >= self.known.len() {
            self.known
                .clone_from(&shared.0.lock().unwrap_or_else(PoisonError::into_inner));
        }
        self.known.get(at).copied()
    }
}
