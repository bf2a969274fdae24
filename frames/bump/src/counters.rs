//! What a NIC has counted.

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// Counters of one NIC.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: u64,)*
        }

        impl Counters {
            /// Name, meaning and value of every counter.
            pub fn all(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$((stringify!($name), concat!($($doc),+).trim_ascii(), self.$name)),*]
            }
        }
    };
}

counters! {
    /// Frames from the host.
    from_host,
    /// Frames from the network.
    from_network,
    /// Frames that are not RoCEv2, or of a service without NACKs; they passed unaltered.
    passed,
    /// Frames from the network with a wrong ICRC; they were dropped.
    icrc_wrong,
    /// Request packets that the host sent for the first time.
    requests,
    /// Request packets that the host sent again by itself.
    host_resent,
    /// Requests to resend that the host made by its timer.
    host_timeouts,
    /// Request packets of the host that no queue had room for; they were dropped.
    queue_full,
    /// NACKs heard for a missing packet.
    nacks_heard,
    /// NACKs heard of an unknown flow; the host got them unaltered.
    nacks_unknown,
    /// Packets retransmitted after a NACK.
    retransmitted,
    /// Retransmissions for which no copy was left.
    no_copy,
    /// CNPs heard.
    cnps_heard,
    /// Request packets that arrived.
    arrived,
    /// Request packets that arrived out of order.
    out_of_order,
    /// Request packets that had arrived before.
    duplicates,
    /// Request packets that were dropped: out of order in a NIC that keeps none, or beyond its window.
    discarded,
    /// Request packets dropped because the reorder buffer was full.
    buffer_full,
    /// Most packets in the reorder buffer of one flow.
    most_held,
    /// NACKs sent.
    nacks_sent,
    /// NACKs that could not be sent when they were due, because no reply of the host had passed yet.
    nacks_late,
    /// CNPs sent.
    cnps_sent,
    /// NACKs of the host itself; the bump then continues where the host stands.
    host_nacks,
    /// Replies "receiver not ready" of the host.
    host_not_ready,
    /// Queue pairs whose replies were paired with their requests.
    learnt,
    /// Pairs that turned out to be wrong, or whose queue pair number was used again.
    unlearnt,
    /// Flows for which no room was left; their frames passed unaltered.
    flows_refused,
}
