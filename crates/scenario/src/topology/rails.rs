//! Rails: servers with a NIC per GPU, whose NICs of one number share a ToR.

use super::presets::Preset;
use super::{Ground, Layout};
use crate::footprint::Size;
use crate::values::Chance;
use finding::{Finding, code};
use model::{Fabric, HostId, NodeId, Packet, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Servers of `[server]`, ToRs and spines. Rail n consists of the NICs with number n of all servers.
///
/// Nodes are named `s0`, `s1`, ... for servers, `tor0`, ..., `spine0`, ...; the roles of switches are `tor` and `spine`. GPU 5 of
/// server 3 has the endpoint `s3g5`, or `s3g5p0` and `s3g5p1` if its NIC has two ports. If the numbers of GPUs and NICs
/// differ, an endpoint has the number of its NIC: `s3n2`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Rails {
    /// Cluster whose settings, and those of its `[server]`, are the defaults of all other keys. Default: none, so every other key
    /// has its own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Number of servers. Default 32 (a scalable unit of a DGX SuperPOD has 31 or 32).
    pub servers: usize,
    /// Wiring. `"rail-optimised"`: a ToR has the NICs of one rail, and spines join all ToRs; `"rail-only"`: spines join only
    /// the ToRs of one rail (arXiv 2307.12169); `"per-server"`: a ToR has all NICs of its servers. Default
    /// `"rail-optimised"` (DGX SuperPOD).
    pub kind: Kind,
    /// Number of servers whose NICs share ToRs. The last segment may have fewer. Default: all servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers_per_segment: Option<usize>,
    /// Number of ToRs that serve a rail of a segment, or a segment of `"per-server"`: port p of each NIC is attached to
    /// ToR p. Default: the ports of a NIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tors_per_rail: Option<usize>,
    /// Number of planes. With 2, the first ToRs of all rails reach only the first half of the spines, and the second ToRs
    /// the second half (Alibaba HPN). Default 1 (our choice).
    pub planes: usize,
    /// Number of spines in each plane, for `"rail-only"` in each rail and plane. 0 is possible if no two ToRs need to be
    /// joined. Default 16 (our choice).
    pub spines: usize,
    /// Rate of the links to NIC ports. Default 400 Gb/s (DGX H100).
    pub rate: Rate,
    /// Propagation delay of the links to NIC ports. Default 1 us (our choice).
    pub delay: Time,
    /// Rate of the links between ToRs and spines. Default: `rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_rate: Option<Rate>,
    /// Propagation delay of the links between ToRs and spines. Default: `delay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_delay: Option<Time>,
    /// Number of parallel links between a ToR and a spine. Default 1 (our choice).
    pub uplinks_per_spine: usize,
    /// Probability that a link to a NIC port loses a packet. Default: `loss` of `[links]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Chance>,
    /// Probability that a link between a ToR and a spine loses a packet. Default: `loss` of `[links]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_loss: Option<Chance>,
}

/// Wiring of servers and ToRs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A ToR has the NICs of one rail; spines join all ToRs.
    #[default]
    RailOptimised,
    /// A ToR has the NICs of one rail; spines join the ToRs of one rail.
    RailOnly,
    /// A ToR has all NICs of its servers.
    PerServer,
}

impl Default for Rails {
    fn default() -> Self {
        Rails {
            preset: None,
            servers: 32,
            kind: Kind::RailOptimised,
            servers_per_segment: None,
            tors_per_rail: None,
            planes: 1,
            spines: 16,
            rate: Rate::from_gbps(400),
            delay: Time::from_us(1),
            uplink_rate: None,
            uplink_delay: None,
            uplinks_per_spine: 1,
            loss: None,
            uplink_loss: None,
        }
    }
}

/// Counts that follow from the settings.
struct Counts {
    /// NICs and ports of a NIC of every server.
    nics: usize,
    ports: usize,
    servers_per_segment: usize,
    segments: usize,
    /// Rows of a segment: rails, or 1 if a ToR has all NICs of its servers.
    rows: usize,
    /// ToRs that serve a row.
    sets: usize,
    /// NIC ports at a ToR.
    down: usize,
    /// All spines.
    spines: usize,
    /// Spines that a ToR reaches.
    reached: usize,
}

impl Counts {
    /// ToRs of one set.
    fn tors(&self) -> usize {
        self.segments * self.rows
    }
}

impl Rails {
    fn counts(&self, ground: &Ground<'_>) -> Result<Counts, Finding> {
        let Some(server) = ground.server else {
            let text = "a fabric of rails needs servers, which have several NICs";
            return Err(code::NEEDS
                .at("", text)
                .with_help("add a table [server]; its default is a server of 8 GPUs"));
        };
        let at_least_one = [
            ("servers", self.servers),
            ("planes", self.planes),
            ("uplinks-per-spine", self.uplinks_per_spine),
        ];
        for (key, count) in at_least_one {
            if count == 0 {
                return Err(code::RANGE.at(key, "expected at least 1, found 0"));
            }
        }
        let (nics, ports) = (server.nics, server.ports_per_nic);
        let servers_per_segment = self.servers_per_segment.unwrap_or(self.servers).min(self.servers);
        if servers_per_segment == 0 {
            return Err(code::RANGE.at("servers-per-segment", "expected at least 1 server, found 0"));
        }
        let sets = self.tors_per_rail.unwrap_or(ports);
        if sets != ports {
            let text = format!("expected as many ToRs as ports of a NIC ({ports}), found {sets}");
            return Err(code::FIT
                .at("tors-per-rail", text)
                .with_help("port p of each NIC is attached to ToR p; set `ports-per-nic` of [server]"));
        }
        if self.planes > 1 && self.planes != sets {
            let text =
                format!("expected 1 plane or as many as ToRs of a rail ({sets}), found {}", self.planes);
            return Err(code::FIT.at("planes", text));
        }
        let rows = if self.kind == Kind::PerServer { 1 } else { nics };
        let segments = self.servers.div_ceil(servers_per_segment);
        let per_server = if self.kind == Kind::PerServer { nics } else { 1 };
        let rails = if self.kind == Kind::RailOnly { nics } else { 1 };
        let counts = Counts {
            nics,
            ports,
            servers_per_segment,
            segments,
            rows,
            sets,
            down: servers_per_segment.saturating_mul(per_server),
            spines: self.spines.saturating_mul(self.planes).saturating_mul(rails),
            reached: self.spines,
        };
        let most = Packet::MAX_PORTS;
        let up = counts.reached.saturating_mul(self.uplinks_per_spine).saturating_add(counts.down);
        let joined = counts.tors().saturating_mul(sets) / (self.planes * rails);
        for (key, ports, what) in [
            ("servers-per-segment", counts.down, "ToR"),
            ("spines", up, "ToR"),
            ("servers", joined.saturating_mul(self.uplinks_per_spine), "spine"),
        ] {
            if ports > most && (what == "ToR" || self.spines > 0) {
                return Err(
                    code::FIT.at(key, format!("a {what} needs {ports} ports; a switch has at most {most}"))
                );
            }
        }
        let hosts = self.servers.saturating_mul(server.ports());
        if hosts > HostId::MOST {
            let text = format!("{hosts} NIC ports; at most {} are possible", HostId::MOST);
            return Err(code::RANGE.at("servers", text));
        }
        for (key, rate) in [("rate", Some(self.rate)), ("uplink-rate", self.uplink_rate)] {
            rate.map_or(Ok(()), |rate| super::links::possible_rate(key, rate))?;
        }
        for (key, delay) in [("delay", Some(self.delay)), ("uplink-delay", self.uplink_delay)] {
            delay.map_or(Ok(()), |delay| super::links::possible_delay(key, delay))?;
        }
        Ok(counts)
    }

    /// Spines that the ToR with number `tor` of a set reaches, as numbers.
    fn above(&self, counts: &Counts, set: usize, tor: usize) -> std::ops::Range<usize> {
        let plane = if self.planes > 1 { set } else { 0 };
        let rail = if self.kind == Kind::RailOnly { tor % counts.rows } else { 0 };
        let rails = if self.kind == Kind::RailOnly { counts.rows } else { 1 };
        let first = (plane * rails + rail) * self.spines;
        first..first + self.spines
    }
}

impl Layout for Rails {
    fn size(&self, ground: &Ground<'_>) -> Result<Size, Finding> {
        let counts = self.counts(ground)?;
        let hosts = self.servers * counts.nics * counts.ports;
        let tors = counts.tors() * counts.sets;
        Ok(Size {
            hosts,
            switches: tors + counts.spines,
            links: hosts + tors * counts.reached * self.uplinks_per_spine,
            racks: tors,
            key: "servers",
        })
    }

    fn lay(&self, ground: &Ground<'_>) -> Result<Fabric, Finding> {
        let counts = self.counts(ground)?;
        let gpus = ground.server.map_or(0, |server| server.gpus);
        let mut builder = ground.builder();
        let mut servers: Vec<NodeId> = Vec::new();
        for (server, nic) in (0..self.servers).flat_map(|s| (0..counts.nics).map(move |n| (s, n))) {
            let letter = if gpus == counts.nics { 'g' } else { 'n' };
            for port in 0..counts.ports {
                let node = match counts.ports {
                    1 => builder.host(format!("s{server}{letter}{nic}")),
                    _ => builder.host(format!("s{server}{letter}{nic}p{port}")),
                };
                if nic == 0 && port == 0 {
                    servers.push(node);
                }
            }
        }
        let tors: Vec<NodeId> =
            (0..counts.tors() * counts.sets).map(|t| builder.switch(format!("tor{t}"), "tor")).collect();
        let spines: Vec<NodeId> =
            (0..counts.spines).map(|s| builder.switch(format!("spine{s}"), "spine")).collect();
        let chance = |own: Option<Chance>| own.map_or(ground.loss, Chance::probability);
        for (s, &server) in servers.iter().enumerate() {
            let segment = s / counts.servers_per_segment;
            for (nic, set) in (0..counts.nics).flat_map(|n| (0..counts.sets).map(move |set| (n, set))) {
                let tor = set * counts.tors() + segment * counts.rows + nic % counts.rows;
                builder.connect(server, tors[tor], self.rate, self.delay, chance(self.loss));
            }
        }
        let (rate, delay) = (self.uplink_rate.unwrap_or(self.rate), self.uplink_delay.unwrap_or(self.delay));
        for (t, &tor) in tors.iter().enumerate() {
            for spine in self.above(&counts, t / counts.tors(), t % counts.tors()) {
                for _ in 0..self.uplinks_per_spine {
                    builder.connect(tor, spines[spine], rate, delay, chance(self.uplink_loss));
                }
            }
        }
        builder.build().map_err(|e| code::RANGE.at("", e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Server, ServerConfig};
    use model::Probability;

    fn lay(rails: &Rails, server: &Server) -> Fabric {
        let ground = Ground { loss: Probability::ZERO, server: Some(server) };
        let fabric = rails.lay(&ground).unwrap();
        let size = rails.size(&ground).unwrap();
        assert_eq!((size.hosts, size.switches), (fabric.hosts(), fabric.switches().count()));
        assert_eq!(2 * size.links, fabric.links().len());
        fabric
    }

    fn server(ports: usize) -> Server {
        ServerConfig { ports_per_nic: Some(ports), ..ServerConfig::default() }.server().unwrap()
    }

    /// Links of a GPU's NVLink, which SimAI's files list beside those of the fabric.
    const NVLINKS: usize = 1;

    /// Nodes, switches (NVSwitches counted apart) and links of a file in SimAI's format.
    fn counts(fabric: &Fabric, gpus: usize) -> (usize, usize, usize) {
        let switches = fabric.switches().count();
        (gpus + gpus / 8 + switches, switches, gpus * NVLINKS + fabric.links().len() / 2)
    }

    #[test]
    fn small_fabrics_have_the_counts_of_simais_templates() {
        // Spectrum-X with 128 GPUs and 8 spines: a ToR of every rail has 64 NICs.
        let rails = Rails { servers: 16, servers_per_segment: Some(64), spines: 8, ..Rails::default() };
        assert_eq!(counts(&lay(&rails, &server(1)), 128), (160, 16, 320));
        // HPN with 64 GPUs, 8 NICs per ToR and 8 spines, in one plane and in two.
        let hpn = Rails { servers: 8, servers_per_segment: Some(8), spines: 8, ..Rails::default() };
        assert_eq!(counts(&lay(&hpn, &server(2)), 64), (96, 24, 320));
        let planes = Rails { planes: 2, spines: 4, ..hpn };
        assert_eq!(counts(&lay(&planes, &server(2)), 64), (96, 24, 256));
        // DCN+ with 64 GPUs and 4 spines: a ToR has the 16 NICs of two servers; with two ToRs, the 32 NICs of four.
        let dcn = Rails { servers: 8, kind: Kind::PerServer, spines: 4, ..Rails::default() };
        let single = Rails { servers_per_segment: Some(2), ..dcn.clone() };
        assert_eq!(counts(&lay(&single, &server(1)), 64), (80, 8, 144));
        let dual = Rails { servers_per_segment: Some(4), ..dcn };
        assert_eq!(counts(&lay(&dual, &server(2)), 64), (80, 8, 208));
    }

    #[test]
    fn a_tor_has_the_nics_of_one_rail_and_port_p_is_attached_to_set_p() {
        let rails =
            Rails { servers: 6, servers_per_segment: Some(4), spines: 3, planes: 2, ..Rails::default() };
        let f = lay(&rails, &server(2));
        let tor = |name: &str| f.name(f.attachment(f.find_host(name).unwrap())).to_owned();
        assert_eq!([tor("s0g5p0"), tor("s3g5p0"), tor("s4g5p0")], ["tor5", "tor5", "tor13"]);
        assert_eq!([tor("s0g5p1"), tor("s4g0p1")], ["tor21", "tor24"]);
        assert_eq!(f.host_name(f.find_host("s5g7p1").unwrap()), "s5g7p1");
        let spines = |name: &str| {
            let up = f.ports(f.find(name).unwrap()).iter().filter(|l| f.role(l.to) == "spine");
            up.map(|l| f.name(l.to).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(spines("tor13"), ["spine0", "spine1", "spine2"]);
        assert_eq!(spines("tor21"), ["spine3", "spine4", "spine5"]);
    }

    #[test]
    fn in_a_rail_only_fabric_no_path_leads_from_rail_to_rail() {
        let rails = Rails {
            servers: 8,
            kind: Kind::RailOnly,
            servers_per_segment: Some(4),
            spines: 2,
            ..Rails::default()
        };
        let f = lay(&rails, &server(1));
        let host = |name: &str| f.find_host(name).unwrap();
        assert!(f.reaches(host("s0g3"), host("s7g3")));
        assert!(!f.reaches(host("s0g3"), host("s0g4")) && !f.reaches(host("s0g3"), host("s7g4")));
        assert_eq!(f.switches().filter(|&node| f.role(node) == "spine").count(), 16);
    }

    /// The fabric of a scenario, and its servers.
    fn of(toml: &str) -> (Rails, Server, Fabric) {
        let text = format!(
            "{toml}\n[[workload]]\ncollective = {{ kind = 'all-reduce', bytes = '1kB', groups = 'server', algorithm = 'nvls' }}\n"
        );
        let source = crate::Source::new("cluster.toml", text);
        let checked = crate::check(&source, &[]).unwrap_or_else(|error| panic!("{toml}\n{error}"));
        let server = checked.scenario.server.unwrap().server().unwrap();
        let crate::topology::Topology::Rails(rails) = checked.scenario.topology.clone() else { panic!() };
        // A scenario with every default filled in means the same.
        let again = crate::check(&crate::Source::new("cluster.toml", checked.to_toml()), &[]).unwrap();
        assert_eq!(again.scenario.topology, checked.scenario.topology);
        (rails, server, checked.plan.fabric)
    }

    /// Links of the fabric as names, from below to above, in their order.
    fn links(fabric: &Fabric) -> Vec<(String, String)> {
        let name = |node: NodeId| fabric.name(node).to_owned();
        let up = fabric.links().iter().filter(|link| fabric.tier(link.to) > fabric.tier(link.from));
        let mut links: Vec<_> = up.map(|link| (name(link.from), name(link.to))).collect();
        links.sort();
        links
    }

    /// The links that the rules of SimAI's templates give: GPUs to their ToRs, then ToRs to spines.
    fn wired(
        gpus: usize,
        npa: usize,
        sets: usize,
        planes: usize,
        rails: bool,
        spines: usize,
    ) -> Vec<(String, String)> {
        let tors = if rails { gpus.div_ceil(8 * npa) * 8 } else { gpus.div_ceil(npa) };
        let mut links = Vec::new();
        for gpu in 0..gpus {
            for set in 0..sets {
                let tor = if rails { gpu / (8 * npa) * 8 + gpu % 8 } else { gpu / npa };
                links.push((format!("s{}", gpu / 8), format!("tor{}", set * tors + tor)));
            }
        }
        for tor in 0..tors * sets {
            let half = spines / planes;
            let first = if planes > 1 { tor / tors * half } else { 0 };
            links.extend((first..first + half).map(|spine| (format!("tor{tor}"), format!("spine{spine}"))));
        }
        links.sort();
        links
    }

    #[test]
    fn presets_are_wired_like_the_templates_of_simai() {
        // SimAI's examples are smaller than the presets: keys beside the preset override it.
        for (toml, gpus, first_line, expected) in [
            (
                "preset = 'spectrum-x'\nservers = 16\nspines = 8",
                128,
                (160, 16, 320),
                wired(128, 64, 1, 1, true, 8),
            ),
            (
                "preset = 'hpn'\nservers = 8\nservers-per-segment = 8\nspines = 8\nplanes = 1",
                64,
                (96, 24, 320),
                wired(64, 8, 2, 1, true, 8),
            ),
            (
                "preset = 'hpn'\nservers = 8\nservers-per-segment = 8\nspines = 4",
                64,
                (96, 24, 256),
                wired(64, 8, 2, 2, true, 8),
            ),
            (
                "preset = 'dcn+'\nservers = 8\nservers-per-segment = 2\nspines = 4",
                64,
                (80, 8, 144),
                wired(64, 16, 1, 1, false, 4),
            ),
            (
                "preset = 'dcn+'\nservers = 8\nservers-per-segment = 4\nspines = 4\n[server]\nports-per-nic = 2",
                64,
                (80, 8, 208),
                wired(64, 32, 2, 1, false, 4),
            ),
        ] {
            let (_, _, fabric) = of(&format!("[topology.rails]\n{toml}"));
            assert_eq!(counts(&fabric, gpus), first_line, "{toml}");
            assert_eq!(links(&fabric), expected, "{toml}");
        }
    }

    #[test]
    fn a_preset_gives_rails_and_servers_and_every_key_overrides_it() {
        let (rails, server, _) = of("[topology.rails]\npreset = 'hpn'\nservers = 16");
        assert_eq!(
            (rails.servers, rails.servers_per_segment, rails.planes, rails.spines),
            (16, Some(128), 2, 60)
        );
        assert_eq!((rails.rate, server.ports_per_nic), (Rate::from_gbps(200), 2));
        assert_eq!(server.nvlink.unwrap().rate, Rate(2_966_400_000_000));
        let (rails, server, _) =
            of("[topology.rails]\npreset = 'meta-pod'\nservers = 16\n[server]\npreset = 'hgx-b200'");
        assert_eq!((rails.servers, rails.kind), (16, Kind::PerServer));
        assert_eq!(server.nvlink.unwrap().rate, Rate(18 * 40_100_000_000 * 8));
        let (_, server, fabric) = of("[topology.rails]\npreset = 'nvl72'");
        assert_eq!((server.gpus, fabric.hosts()), (72, 576));
        assert_eq!(fabric.switches().filter(|&node| fabric.role(node) == "tor").count(), 72);
    }

    #[test]
    fn presets_have_their_published_numbers_of_gpus_and_switches() {
        // A preset as TOML, its NIC ports, ToRs and spines.
        for (preset, ports, tors, spines) in [
            ("hpn", 30_720, 240, 120),
            ("spectrum-x", 4096, 64, 64),
            ("dcn+", 512, 8, 8),
            ("meta-pod", 3072, 192, 16),
        ] {
            let mut table: toml::Table = format!("[topology.rails]\npreset = '{preset}'").parse().unwrap();
            crate::topology::presets::fill(&mut table);
            let server: ServerConfig = table["server"].clone().try_into().unwrap();
            let rails: Rails = table["topology"]["rails"].clone().try_into().unwrap();
            let ground = Ground { loss: Probability::ZERO, server: Some(&server.server().unwrap()) };
            let size = rails.size(&ground).unwrap();
            assert_eq!((size.hosts, size.racks, size.switches), (ports, tors, tors + spines), "{preset}");
        }
    }
}
