//! Flows: how many finished, and how long they took.

use super::{Better, Shown, Unit};
use crate::flows::{Bucket, Distances, Sample, Samples};
use crate::metrics::tell::Named;
use crate::stats::Spread;

/// A section with the numbers of a set of flows between others.
macro_rules! set_of_flows {
    (
        $(#[doc = $about:literal])+
        pub struct $Section:ident read from $run:ident: $Source:ty, flows $sample:expr;
        { $($before:tt)* } { $($after:tt)* }
    ) => {
        section! {
            $(#[doc = $about])+
            pub struct $Section read from $run: $Source;

            $($before)*

            /// Flows.
            count: u64 = $sample.count => { label: "flows", unit: Unit::Flows };

            /// Flows that finished.
            finished: u64 = $sample.finished() => { unit: Unit::Flows, better: Better::More, share_of: "flows.count" };

            /// Payload of all flows.
            bytes: u64 = $sample.bytes => { label: "payload", unit: Unit::Bytes };

            /// Flow completion time (FCT) of flows that finished, from the start to the ACK of the last byte.
            fct_us: Option<Spread> = Spread::of($sample.times.clone()) => {
                label: "FCT", unit: Unit::Microseconds, better: Better::Less,
                statistics: &[
                    ("mean", Shown::Page, ""),
                    ("p50", Shown::Comparison, "FCT us\np50"),
                    ("p99", Shown::Sweep, "FCT us\np99"),
                ],
            };

            /// Slowdown (FCT / FCT of the flow alone on the fabric) of flows that finished.
            slowdown: Option<Spread> = Spread::of($sample.slowdowns.clone()) => {
                label: "slowdown", unit: Unit::Times, better: Better::Less,
                statistics: &[("mean", Shown::Page, ""), ("p99", Shown::Comparison, "slowdown\np99")],
            };

            $($after)*
        }
    };
}

set_of_flows! {
    /// A set of flows.
    pub struct Flows read from set: &Samples, flows set.all;
    {}
    {
        /// Flows that finished and that a rate below a hundredth of line rate held for more than half of their time: the congestion
        /// control decided their completion times.
        throttled: u64 = set.all.throttled => {
            unit: Unit::Flows, better: Better::Less, share_of: "flows.count",
        };

        /// Flows by size, from small to large; empty if all are of similar size.
        by_size: Vec<SizeBucket> = set.buckets().map(|bucket| SizeBucket::read(&bucket)).collect() => {
            part: "flows of at most * B", again: true,
        };

        /// Flows by distance; null unless some flows go more than ten times as far as others.
        by_distance: Option<ByDistance> = set.distances().map(|distances| ByDistance::read(&distances)) => {
            again: true,
        };
    }
}

set_of_flows! {
    /// Flows of similar size. Buckets end at powers of ten of bytes (our choice; figures of flow-size distributions have a
    /// logarithmic axis). Buckets without a flow are left out.
    pub struct SizeBucket read from bucket: &Bucket<'_>, flows bucket.sample;
    {
        /// Flows in this bucket are larger than this.
        over_bytes: u64 = bucket.over_bytes => { unit: Unit::Bytes };

        /// Flows in this bucket are no larger than this.
        up_to_bytes: u64 = bucket.up_to_bytes => { unit: Unit::Bytes };
    }
    {}
}

impl Named for SizeBucket {
    const BEFORE: &'static str = "up_to_";

    fn name(&self) -> String {
        self.up_to_bytes.to_string()
    }
}

section! {
    /// Flows over short and over long paths. A path is long if it takes more than ten times the propagation delay of the
    /// longest one that is not: our choice, so that the tiers of one datacentre are alike and two datacentres are not.
    pub struct ByDistance read from flows: &Distances<'_>;

    /// Flows over short paths.
    near: Distance = Distance::read(flows.near) => { part: "over short paths" };

    /// Flows over long paths.
    far: Distance = Distance::read(flows.far) => { part: "over paths more than ten times as long" };

    /// Mean slowdown of flows over short paths / that of flows over long paths (the long-haul paper's unfairness).
    unfairness: Option<f64> = flows.unfairness() => { unit: Unit::Times };
}

set_of_flows! {
    /// Flows over paths of similar length.
    pub struct Distance read from sample: &Sample, flows sample;
    {}
    {}
}
