//! Assignment of NICs and paths to queue pairs.

use crate::congestion::rccc::UNIT;
use crate::pacer::{AnyGranter, Pacer, Throttle};
use crate::{AnyReceiver, AnySender, Due, Nic, Path, Reacting};
use model::annex::NoticeRules;
use model::draw::{Key, Purpose};
use model::{HostId, Plan, QpId};
use std::sync::Arc;

/// NICs of a run; builds the ends of every queue pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Nics {
    /// Kinds of NICs. Two queue pairs of one host may have different kinds, since a scheme may bring a NIC along.
    kinds: Vec<Nic>,
    /// Position in `kinds` of every queue pair's NIC; empty if there is only one kind.
    kind_of: Arc<[u8]>,
    /// Kinds of paths; empty if no congestion control depends on its path.
    paths: Vec<Path>,
    /// Position in `paths` of every queue pair's path.
    path_of: Vec<u32>,
}

impl Nics {
    /// NICs of a run; `kind_of` holds the position in `kinds` of every queue pair's NIC. Queue pairs beyond its end have the
    /// first NIC.
    ///
    /// # Panics
    /// If `kinds` is empty.
    pub fn new(kinds: Vec<Nic>, kind_of: Arc<[u8]>) -> Self {
        assert!(!kinds.is_empty(), "queue pairs need a NIC");
        Nics { kinds, kind_of, paths: Vec::new(), path_of: Vec::new() }
    }

    /// Adds paths for congestion controls that depend on them ([`Nics::wants_paths`]). `path_of` holds the position in
    /// `paths` of every queue pair's path.
    #[must_use]
    pub fn over(self, paths: Vec<Path>, path_of: Vec<u32>) -> Self {
        Nics { paths, path_of, ..self }
    }

    /// True if a congestion control or a window depends on the path of its queue pair, see [`Nic::wants_path`].
    pub fn wants_paths(&self) -> bool {
        self.kinds.iter().any(Nic::wants_path)
    }

    /// True if replies of some queue pairs name single packets, see [`Nic::is_selective`].
    pub fn are_selective(&self) -> bool {
        self.kinds.iter().any(Nic::is_selective)
    }

    /// True if replies of some queue pairs carry SACKs, see [`Nic::sacks`].
    pub fn have_sacks(&self) -> bool {
        self.kinds.iter().any(Nic::sacks)
    }

    /// True if a congestion control reads the telemetry that switches write on packets, see [`Nic::telemetry`].
    pub fn read_telemetry(&self) -> bool {
        self.kinds.iter().any(|nic| nic.telemetry().is_some())
    }

    /// Most data packets per ACK, [`u32::MAX`] if a NIC acknowledges whole messages.
    pub fn most_per_ack(&self) -> u32 {
        self.kinds.iter().map(|nic| nic.per_ack()).max().unwrap_or(1)
    }

    /// NIC of a queue pair.
    pub fn of(&self, qp: QpId) -> &Nic {
        let kind = self.kind_of.get(qp.index()).copied().unwrap_or_default();
        &self.kinds[usize::from(kind)]
    }

    /// Sender of a queue pair. A keyed draw selects one of the timings if a preset has several.
    pub fn sender(&self, plan: &Plan, qp: QpId) -> AnySender {
        let mut sender = self.of(qp).sender_by(Key::new(plan.seed, Purpose::Nic, qp.0.into()).draw(0));
        if let (AnySender::Sack(sender), Some(path)) = (&mut sender, self.path(qp)) {
            sender.expect(path.longest_rtt);
        }
        sender
    }

    /// Receiver of a queue pair; `notices` are the rules for its sender's notices, if it sends any.
    pub fn receiver(&self, qp: QpId, notices: Option<NoticeRules>) -> AnyReceiver {
        self.of(qp).receiver_with(notices)
    }

    /// Path of a queue pair, if [`Nics::over`] has given one.
    pub(crate) fn path(&self, qp: QpId) -> Option<&Path> {
        self.paths.get(*self.path_of.get(qp.index())? as usize)
    }

    /// The granter of a host: one if a queue pair to the host needs credit.
    pub fn granter(&self, plan: &Plan, host: HostId) -> AnyGranter {
        let home = |host: HostId| plan.sharing.map_or(host, |sharing| sharing.home(host));
        let start = plan.qps.partition_point(|qp| home(qp.to) < host);
        let to_host = plan.qps[start..].iter().take_while(|qp| home(qp.to) == host);
        let needed = (start..).zip(to_host).find_map(|(qp, _)| {
            let qp = QpId(qp as u32);
            Some((self.of(qp).grants()?, self.path(qp)))
        });
        AnyGranter::new(needed.map(|(grants, path)| {
            let rate = plan.line(host);
            let path = Path::or_guess(path, rate);
            let product = rate.bps() as f64 / 8e12 * path.longest_rtt.ps() as f64;
            let ahead = match grants.due {
                // In units of credit.
                Due::Demand(products) => Some((products * product) as u64 / UNIT * UNIT),
                Due::Arrival => None,
            };
            // A grant of one packet takes the time of the packet on the wire, preamble and gap included.
            let of_wire = f64::from(path.mtu) / f64::from(path.frame);
            let packet = (path.mtu.into(), grants.share * of_wire);
            let (quantum, share) = grants.quantum.map_or(packet, |quantum| (quantum, grants.share));
            let throttle = (grants.throttles && path.oversubscription > 1.0).then(|| {
                // Queue pairs draw with their own numbers.
                let draws = Key::new(plan.seed, Purpose::Nic, 1 << 32 | u64::from(host.0));
                Throttle::new(path.oversubscription, path.longest_rtt, draws)
            });
            Pacer::new(rate, share, quantum, ahead).throttled(throttle)
        }))
    }

    /// Congestion control of a queue pair, with its reactions.
    pub fn congestion(&self, plan: &Plan, qp: QpId) -> Reacting {
        let host = plan.qps[qp.index()].from;
        let rate = plan.line(host);
        match self.path(qp) {
            Some(path) => self.of(qp).congestion_over(rate, path),
            None => self.of(qp).congestion(rate),
        }
    }
}
