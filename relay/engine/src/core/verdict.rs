//! Decisions as values: what the shell is to do with one packet, and the labels it counts by.

use super::address::{ClientAddr, ListenerId, LocalId, OwnerAddr};

/// What to do with a datagram that a client sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// Send it on to the owner.
    Forward(OwnerAddr),
    /// Send it on to the incumbent and to its challenger: only one of them can decrypt it.
    ForwardBoth(OwnerAddr, OwnerAddr),
    /// Do nothing but count.
    Drop(DropReason),
}

/// What to do with a datagram that came from inside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Downlink {
    /// Send its payload to the client, from the listener and local address that the client's packets came to.
    Deliver {
        /// The caller.
        client: ClientAddr,
        /// The listener whose socket sends.
        listener: ListenerId,
        /// The local address to send from.
        local: LocalId,
    },
    /// Do nothing but count.
    Drop(DropReason),
}

/// Declares an enum of counter labels: every variant has a label and an index below `COUNT`.
macro_rules! labels {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident => $label:literal,)+ }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum $name { $($(#[$inner])* $variant,)+ }

        impl $name {
            /// All variants, in order of their index.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The counter's label.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }

            /// The counter's index.
            pub const fn index(self) -> usize {
                self as usize
            }
        }
    };
}

labels! {
    /// Why a packet went nowhere.
    DropReason {
        /// A datagram without a byte in it.
        Empty => "empty",
        /// More than 1,472 bytes from a client.
        Oversize => "oversize",
        /// The first byte is none of STUN's, DTLS's or SRTP's (RFC 7983).
        UnknownProtocol => "unknown_protocol",
        /// STUN that cannot be read: header, length or attributes.
        BadStun => "bad_stun",
        /// A FINGERPRINT that does not fit (RFC 8489 section 14.7).
        BadFingerprint => "bad_fingerprint",
        /// A STUN method other than Binding.
        UnknownMethod => "unknown_method",
        /// A binding request without a USERNAME.
        NoUsername => "no_username",
        /// The ufrag is not one that this relay can read.
        BadHint => "bad_hint",
        /// The ufrag names a route that is not in the table.
        UnknownRoute => "unknown_route",
        /// A packet that only a known flow may send.
        UnknownFlow => "unknown_flow",
        /// A packet other than STUN on a flow that its owner has not confirmed yet.
        Provisional => "provisional",
        /// The flow's owner is no longer in the routes.
        RouteGone => "route_gone",
        /// The flow already has a challenger whose checks are fresh.
        Challenged => "challenged",
        /// More packets on one flow than allowed.
        FlowRate => "flow_rate",
        /// More STUN on one flow than allowed.
        FlowStunRate => "flow_stun_rate",
        /// More packets towards one worker than allowed.
        RouteRate => "route_rate",
        /// More new flows of one ufrag than allowed.
        UfragRate => "ufrag_rate",
        /// More new flows of one network than allowed.
        SourceRate => "source_rate",
        /// More new flows in all than allowed.
        NewFlowRate => "new_flow_rate",
        /// A datagram from inside whose SPP header cannot be read.
        BadSpp => "bad_spp",
        /// A datagram from inside for a VIP that is not ours.
        UnknownVip => "unknown_vip",
        /// A datagram from inside whose sender does not own the flow.
        NotOwner => "not_owner",
    }
}

labels! {
    /// What became of a ufrag that was decoded.
    DecodeResult {
        /// It named a known route.
        Ok => "ok",
        /// It is not 23 characters long.
        BadLength => "bad_length",
        /// It has characters or trailing bits that a hint never has.
        BadEncoding => "bad_encoding",
        /// No key of its key id is loaded.
        UnknownKey => "unknown_key",
        /// It decrypts to something that is no hint: forged, or of another key.
        BadBlock => "bad_block",
        /// It is a hint, but of a route that is not in the table.
        UnknownRoute => "unknown_route",
    }
}

labels! {
    /// Why a flow, or a challenge, ended.
    Eviction {
        /// Not confirmed in time.
        ProvisionalExpired => "provisional_expired",
        /// No packet from the client for the idle time.
        Idle => "idle",
        /// The table was full, and this was the oldest provisional flow.
        FullProvisional => "full_provisional",
        /// The table was full of confirmed flows, and this was the idlest.
        FullIdlest => "full_idlest",
        /// Its ufrag got one flow too many, and this was the idlest.
        UfragFull => "ufrag_full",
        /// A confirmed challenger took the flow over.
        Displaced => "displaced",
        /// The challenger's checks stopped.
        ChallengeEnded => "challenge_ended",
    }
}
