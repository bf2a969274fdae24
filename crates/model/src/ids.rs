//! Identifiers. Nodes are numbered with the hosts first: host `h` is node `h`.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// This number as an index into a table.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(
    /// A host or a switch; hosts come first.
    NodeId(u32)
);
id!(
    /// An endpoint: one port of a host, which has the number of its directed link. In a fabric whose hosts have one port
    /// each, it is also the number of the node. A packet can name [`HostId::MOST`] endpoints.
    HostId(u32)
);
id!(
    /// A port of one node, counted from 0 in the order in which its links were laid.
    PortIndex(u16)
);
id!(
    /// One direction of a link, and the global number of the port that sends into it.
    LinkId(u32)
);
id!(
    /// A reliable connection (queue pair) between two hosts. A packet can name 2^24 queue pairs.
    QpId(u32)
);
id!(
    /// A message that a workload posts on a queue pair; results call it a flow.
    MessageId(u32)
);

id!(
    /// A task: work of a host that sends nothing.
    TaskId(u32)
);

impl HostId {
    /// Most endpoints of a fabric: a packet carries its destination in 20 bits.
    pub const MOST: usize = 1 << 20;
}

impl PortIndex {
    /// The virtual ingress port of packets that the node makes itself.
    pub const VIRTUAL: PortIndex = PortIndex(1023);
}
