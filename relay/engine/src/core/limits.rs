//! Every bound of the engine in one place (DESIGN section 2, rule 6).

use super::bucket::Rate;

/// What one relay process allows. Each refusal is counted by its reason.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Packets of one flow, from the client. A call needs about 55 a second.
    pub flow_packets: Rate,
    /// STUN messages of one flow, from the client; they are counted in `flow_packets` too.
    pub flow_stun: Rate,
    /// Packets towards one transceiver worker.
    pub route_packets: Rate,
    /// Flows of one ufrag, up to [`MAX_FLOWS_PER_UFRAG`]; one more replaces its idlest. Above that the guard is off: a
    /// test shows with it that the attack exists.
    pub flows_per_ufrag: usize,
    /// New flows of one ufrag.
    pub new_flows_per_ufrag: Rate,
    /// New flows of one /24 or /48.
    pub new_flows_per_source: Rate,
    /// New flows of everybody.
    pub new_flows: Rate,
    /// Flows in the table, provisional ones included.
    pub flows: usize,
    /// Provisional flows among them.
    pub provisional_flows: usize,
    /// Milliseconds without a packet from the client after which a confirmed flow ends.
    pub idle_ms: u32,
    /// Milliseconds that a flow, or a challenger, has to be confirmed in.
    pub provisional_ms: u32,
    /// Milliseconds without a confirmed check after which an incumbent gives way to a confirmed challenger. 0 switches
    /// the incumbent's protection off: a test shows with it that the attack exists.
    pub challenge_ms: u32,
}

/// The room for flows that every ufrag's entry has.
pub const MAX_FLOWS_PER_UFRAG: usize = 8;

impl Default for Limits {
    fn default() -> Self {
        Self {
            flow_packets: Rate {
                per_second: 150,
                burst: 300,
            },
            flow_stun: Rate::with_burst_of(20, STUN_BURST_SECONDS),
            route_packets: Rate::with_burst_of(200_000, 1),
            flows_per_ufrag: MAX_FLOWS_PER_UFRAG,
            new_flows_per_ufrag: Rate::with_burst_of(4, 1),
            new_flows_per_source: Rate::with_burst_of(200, 1),
            new_flows: Rate::with_burst_of(50_000, 1),
            flows: 200_000,
            provisional_flows: 20_000,
            idle_ms: 60_000,
            provisional_ms: 5_000,
            challenge_ms: 7_000,
        }
    }
}

/// Chromium pings a weak pair every 48 ms, just above 20 a second: it may do so for a while.
pub const STUN_BURST_SECONDS: u32 = 2;
