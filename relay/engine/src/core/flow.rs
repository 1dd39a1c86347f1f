//! One flow: who owns it, who challenges that, and what it may send.

use super::address::{FlowKey, LocalId};
use super::bucket::{Bucket, Taken};
use super::limits::Limits;
use super::snapshot::RouteId;
use super::time::Tick;
use super::verdict::DropReason;

/// A routing hint as it stands in a ufrag: 23 characters.
pub type Ufrag = [u8; 23];

/// Whether the owner has answered a check of this claim with a success response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Standing {
    /// Only its hint is known to be right: it may exchange STUN, for seconds.
    Unconfirmed,
    /// The owner knows the call.
    Confirmed,
}

/// A ufrag's claim to a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) ufrag: Ufrag,
    pub(super) route: RouteId,
    pub(super) standing: Standing,
    /// When the claim was made, and from its confirmation on: when the owner last answered a check.
    pub(super) since: Tick,
}

impl Claim {
    pub(super) fn new(ufrag: Ufrag, route: RouteId, now: Tick) -> Self {
        Self {
            ufrag,
            route,
            standing: Standing::Unconfirmed,
            since: now,
        }
    }

    fn confirm(&mut self, now: Tick) {
        self.standing = Standing::Confirmed;
        self.since = now;
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.standing == Standing::Confirmed
    }

    /// Whether the claim, as a challenger, has run out: not confirmed in time, or no longer answered.
    fn is_over(&self, limits: &Limits, now: Tick) -> bool {
        let life = match self.standing {
            Standing::Unconfirmed => limits.provisional_ms,
            Standing::Confirmed => limits.challenge_ms,
        };
        now.since(self.since) >= life
    }
}

/// Which of a flow's two claims.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    Incumbent,
    Challenger,
}

/// What `settle` changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Settled {
    Unchanged,
    ChallengeEnded,
    /// The challenger is the incumbent now.
    Displaced,
}

/// A flow. Its fields are ordered for size: memory per flow is a promise (DESIGN section 8).
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) key: FlowKey,
    pub(super) local: LocalId,
    pub(super) incumbent: Claim,
    pub(super) challenger: Option<Claim>,
    /// Whose ufrag the last check carried. Two claims of one worker can only be told apart by it.
    asked: Side,
    packets: Bucket,
    /// Checks of the incumbent's ufrag.
    own_stun: Bucket,
    /// All other STUN.
    other_stun: Bucket,
    /// The last packet from the client that was passed on.
    pub(super) heard: Tick,
    /// When it was last moved in its list.
    pub(super) linked: Tick,
}

impl Flow {
    pub(super) fn new(
        key: FlowKey,
        local: LocalId,
        claim: Claim,
        limits: &Limits,
        now: Tick,
    ) -> Self {
        Self {
            key,
            local,
            incumbent: claim,
            challenger: None,
            asked: Side::Incumbent,
            packets: Bucket::full(limits.flow_packets, now),
            own_stun: Bucket::full(limits.flow_stun, now),
            other_stun: Bucket::full(limits.flow_stun, now),
            heard: now,
            linked: now,
        }
    }

    pub(super) fn is_expired(&self, limits: &Limits, now: Tick) -> bool {
        match self.incumbent.standing {
            Standing::Unconfirmed => now.since(self.incumbent.since) >= limits.provisional_ms,
            Standing::Confirmed => now.since(self.heard) >= limits.idle_ms,
        }
    }

    /// Charges the flow for one packet of DTLS or SRTP.
    pub(super) fn charge_media(&mut self, limits: &Limits, now: Tick) -> Result<(), DropReason> {
        match self.packets.take(limits.flow_packets, now) {
            Taken::Granted => Ok(()),
            Taken::Refused => Err(DropReason::FlowRate),
        }
    }

    /// Charges the flow for one STUN message that is no check of its own.
    pub(super) fn charge_stun(&mut self, limits: &Limits, now: Tick) -> Result<(), DropReason> {
        let taken = self.other_stun.take(limits.flow_stun, now);
        self.charged_stun(taken, limits, now)
    }

    /// Charges the flow for one check. The incumbent's have an allowance of their own: whoever forges the client's
    /// address could otherwise use it up, so that the incumbent would seem to have gone silent, and take its place.
    pub(super) fn charge_check(
        &mut self,
        ufrag: &[u8],
        limits: &Limits,
        now: Tick,
    ) -> Result<(), DropReason> {
        let own = self.incumbent.ufrag == *ufrag;
        let bucket = if own {
            &mut self.own_stun
        } else {
            &mut self.other_stun
        };
        let taken = bucket.take(limits.flow_stun, now);
        self.charged_stun(taken, limits, now)
    }

    /// STUN counts as packets too, but is not refused for being too many of those, for the same reason.
    fn charged_stun(&mut self, taken: Taken, limits: &Limits, now: Tick) -> Result<(), DropReason> {
        match taken {
            Taken::Granted => {
                self.packets.take(limits.flow_packets, now);
                Ok(())
            }
            Taken::Refused => Err(DropReason::FlowStunRate),
        }
    }

    /// The route of a check by its ufrag, if the ufrag is one of the flow's.
    pub(super) fn route_of_check(&mut self, ufrag: &Ufrag) -> Option<RouteId> {
        if self.incumbent.ufrag == *ufrag {
            self.asked = Side::Incumbent;
            return Some(self.incumbent.route);
        }
        let challenger = self.challenger.filter(|claim| claim.ufrag == *ufrag)?;
        self.asked = Side::Challenger;
        Some(challenger.route)
    }

    /// The other owner that packets go to besides the incumbent: a challenger of another route that is good enough.
    pub(super) fn second_route(&self, least: Standing) -> Option<RouteId> {
        let challenger = self.challenger?;
        let good = challenger.is_confirmed() || least == Standing::Unconfirmed;
        (good && challenger.route != self.incumbent.route).then_some(challenger.route)
    }

    /// Takes note of another ufrag's check. A confirmed incumbent keeps the flow; the newcomer challenges it.
    ///
    /// A new ufrag of the same route (an ICE restart) stands in the challenger's place too: its packets go to the same
    /// worker anyway, and so nobody's flow is counted to a stranger's ufrag while its own checks are fresh.
    pub(super) fn claim(&mut self, claim: Claim) -> Result<(), DropReason> {
        let disputed = self
            .challenger
            .is_some_and(|held| held.is_confirmed() && held.route != claim.route);
        if self.incumbent.route == claim.route && (disputed || !self.incumbent.is_confirmed()) {
            self.incumbent.ufrag = claim.ufrag;
            self.asked = Side::Incumbent;
            return Ok(());
        }
        if disputed {
            return Err(DropReason::Challenged);
        }
        self.challenger = Some(claim);
        self.asked = Side::Challenger;
        Ok(())
    }

    /// Whether a packet from the worker of this route may reach the client, and which claim it speaks for.
    pub(super) fn side_of(&self, is_sender: impl Fn(RouteId) -> bool) -> Option<Side> {
        let incumbent = is_sender(self.incumbent.route);
        let challenger = self.challenger.is_some_and(|claim| is_sender(claim.route));
        match (incumbent, challenger) {
            (true, true) => Some(self.asked),
            (true, false) => Some(Side::Incumbent),
            (false, true) => Some(Side::Challenger),
            (false, false) => None,
        }
    }

    pub(super) fn is_confirmed(&self, side: Side) -> bool {
        match side {
            Side::Incumbent => self.incumbent.is_confirmed(),
            Side::Challenger => self.challenger.is_some_and(|claim| claim.is_confirmed()),
        }
    }

    /// The owner answered a check with success: the claim is good, and fresh again.
    pub(super) fn confirm(&mut self, side: Side, now: Tick) {
        match (side, &mut self.challenger) {
            (Side::Challenger, Some(claim)) => claim.confirm(now),
            (Side::Challenger, None) | (Side::Incumbent, _) => self.incumbent.confirm(now),
        }
    }

    /// Ends a challenge that time has decided. An incumbent with fresh checks is never displaced.
    pub(super) fn settle(&mut self, limits: &Limits, now: Tick) -> Settled {
        let Some(challenger) = self.challenger else {
            return Settled::Unchanged;
        };
        let stale = !self.incumbent.is_confirmed()
            || now.since(self.incumbent.since) >= limits.challenge_ms;
        if challenger.is_confirmed() && stale {
            self.incumbent = challenger;
            self.drop_challenger();
            return Settled::Displaced;
        }
        if challenger.is_over(limits, now) {
            self.drop_challenger();
            return Settled::ChallengeEnded;
        }
        Settled::Unchanged
    }

    pub(super) fn drop_challenger(&mut self) {
        self.challenger = None;
        self.asked = Side::Incumbent;
    }

    /// Whether two routes dispute the flow (an ICE restart does not count).
    pub(super) fn is_challenged(&self) -> bool {
        self.second_route(Standing::Unconfirmed).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_takes_no_more_memory_than_promised() {
        assert!(size_of::<Flow>() <= 128, "{}", size_of::<Flow>());
    }
}
