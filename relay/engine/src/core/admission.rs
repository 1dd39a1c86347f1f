//! What a valid hint may do: make a flow or challenge one, within the limits of its ufrag, its network and the relay.

use super::flow::{Claim, Flow, Standing, Ufrag};
use super::limits::{Limits, MAX_FLOWS_PER_UFRAG};
use super::relay::{Arrival, Relay, granted, locked, room, shard_of};
use super::snapshot::{RouteId, View};
use super::time::Tick;
use super::ufrags::{FlowRef, UfragEntry};
use super::verdict::DropReason;

impl Relay {
    /// Makes a provisional flow, or lets the ufrag challenge the flow that is there.
    pub(super) fn admit(
        &self,
        view: &View,
        from: Arrival,
        ufrag: Ufrag,
        route: RouteId,
        now: Tick,
    ) -> Result<(), DropReason> {
        let limits = &view.limits;
        let (hash, key) = self.key(from);
        let ufrag_hash = self.seed.ufrag(&ufrag);
        let room = room(limits, self.flows.len());
        let mut ufrags = locked(&self.ufrags[shard_of(ufrag_hash, self.ufrags.len())]);
        let entry = ufrags.entry(
            ufrag_hash,
            &ufrag,
            limits.new_flows_per_ufrag,
            room.flows,
            now,
        );
        granted(
            entry.new_flows.take(limits.new_flows_per_ufrag, now),
            DropReason::UfragRate,
        )?;
        self.make_room(entry, &ufrag, limits);
        let claim = Claim::new(ufrag, route, now);
        let mut flows = self.flow_shard(hash);
        let handle = match flows.find(hash, &key, limits, &self.evictions, now) {
            Some(found) => {
                flows
                    .update(found, |flow| flow.claim(claim))
                    .unwrap_or(Err(DropReason::UnknownFlow))?;
                found
            }
            None => {
                let source =
                    self.seed.network(&from.client.network()) as usize % self.sources.len();
                let rate = limits.new_flows_per_source;
                granted(self.sources[source].take(rate, now), DropReason::SourceRate)?;
                granted(
                    self.new_flows.take(limits.new_flows, now),
                    DropReason::NewFlowRate,
                )?;
                let flow = Flow::new(key, from.local, claim, limits, now);
                flows.insert(hash, flow, room, &self.evictions)
            }
        };
        entry.push(FlowRef {
            shard: shard_of(hash, self.flows.len()) as u8,
            handle,
        });
        Ok(())
    }

    /// Leaves a ufrag fewer flows than it may have: the provisional ones go first, then the idlest.
    fn make_room(&self, entry: &mut UfragEntry, ufrag: &Ufrag, limits: &Limits) {
        if limits.flows_per_ufrag > MAX_FLOWS_PER_UFRAG {
            return;
        }
        entry.retain(|flow| self.standing_of(flow, ufrag).is_some());
        while entry.flows().count() >= limits.flows_per_ufrag.max(1) {
            let idlest = entry.flows().min_by_key(|&flow| {
                let standing = self.standing_of(flow, ufrag);
                standing.map(|(standing, heard)| (standing == Standing::Confirmed, heard.raw()))
            });
            let Some(idlest) = idlest else { break };
            locked(&self.flows[usize::from(idlest.shard)]).release(
                idlest.handle,
                ufrag,
                &self.evictions,
            );
            entry.retain(|flow| flow != idlest);
        }
    }

    /// How a ufrag stands with a flow, and when the flow was last heard; `None` if it has nothing to do with it.
    pub(super) fn standing_of(&self, flow: FlowRef, ufrag: &Ufrag) -> Option<(Standing, Tick)> {
        let shard = locked(&self.flows[usize::from(flow.shard)]);
        let flow = shard.get(flow.handle)?;
        if flow.incumbent.ufrag == *ufrag {
            return Some((flow.incumbent.standing, flow.heard));
        }
        let challenger = flow.challenger.filter(|claim| claim.ufrag == *ufrag)?;
        Some((challenger.standing, challenger.since))
    }
}
