//! Switches as SONiC configures them, the values `"sonic:SKU"` of `switch.model`: tables of sonic-net/sonic-buildimage in a layout of our
//! own, in `hardware/sonic`.

use crate::dscp::{DscpMap, Named};
use crate::headroom::{CableHeadroom, CableXoff, Xoff};
use crate::switch::{RateAlpha, RateEcn};
use crate::values::{Chance, Share};
use model::{Bytes, Rate};
use serde::Serialize;
use std::collections::BTreeSet;
use toml::Value;

/// Start of the names of these models.
pub const PREFIX: &str = "sonic:";

const POOLS: &str = include_str!("../hardware/sonic/pools.tsv");
const HEADROOM: &str = include_str!("../hardware/sonic/headroom.tsv");
const WRED: &str = include_str!("../hardware/sonic/wred.tsv");
const ASICS: &str = include_str!("../hardware/sonic/asics.tsv");

/// The tables' source.
const SOURCE: &str = "sonic-net/sonic-buildimage 086b03b";

/// WRED of lossless queues where a SKU has none of its own: least, most and probability. Vendor: AZURE_LOSSLESS of files/build_templates/qos_config.j2.
const USUAL_WRED: (u64, u64, u32) = (1_048_576, 2_097_152, 5);

/// Rates of ports, Gb/s, for settings by rate of a SKU without a table of headrooms.
const RATES: [u64; 8] = [10, 25, 40, 50, 100, 200, 400, 800];

/// What is known of a chip.
struct Asic {
    name: &'static str,
    about: &'static str,
    /// Bytes of a cell, if published.
    cell: Option<u64>,
    /// Slices of the pool, fitted; 0 if unknown.
    slices: u16,
    /// Our model of the chip, which has the size of the buffer where SONiC computes the pool as it starts.
    like: Option<&'static str>,
}

/// Chips. Cells: sonic-net/sonic-mgmt, tests/qos/files (Broadcom); sonic-buildimage, platform/mellanox/asic_table.j2 (Spectrum).
#[rustfmt::skip]
const CHIPS: [Asic; 13] = [
    Asic { name: "TD3", about: "Broadcom Trident 3", cell: Some(256), slices: 0, like: None },
    Asic { name: "TH", about: "Broadcom Tomahawk", cell: Some(208), slices: 4, like: None },
    Asic { name: "TH2", about: "Broadcom Tomahawk 2", cell: Some(208), slices: 4, like: None },
    Asic { name: "TH3", about: "Broadcom Tomahawk 3", cell: Some(254), slices: 2, like: None },
    Asic { name: "TH4", about: "Broadcom Tomahawk 4", cell: None, slices: 0, like: None },
    Asic { name: "TH5", about: "Broadcom Tomahawk 5", cell: Some(254), slices: 2, like: None },
    Asic { name: "TH6", about: "Broadcom Tomahawk 6", cell: Some(420), slices: 0, like: None },
    Asic { name: "SPC1", about: "NVIDIA Spectrum", cell: Some(96), slices: 1, like: None },
    Asic { name: "SPC2", about: "NVIDIA Spectrum-2", cell: Some(144), slices: 1, like: Some("spectrum-2") },
    Asic { name: "SPC3", about: "NVIDIA Spectrum-3", cell: Some(144), slices: 1, like: Some("spectrum-3") },
    Asic { name: "SPC4", about: "NVIDIA Spectrum-4", cell: Some(192), slices: 1, like: Some("spectrum-4") },
    Asic { name: "SPC5", about: "NVIDIA Spectrum-5", cell: Some(192), slices: 1, like: None },
    Asic { name: "SPC6", about: "NVIDIA Spectrum-6", cell: Some(256), slices: 1, like: None },
];

/// A switch's figures: key, value, source.
pub(crate) struct Preset {
    pub(crate) about: String,
    pub(crate) figures: Vec<(&'static str, Value, String)>,
    pub(crate) unknowns: Vec<String>,
    /// The model whose `buffer` holds, if the tables have no pool.
    pub(crate) like: Option<&'static str>,
}

/// A row of the table of pools.
#[derive(Clone, Copy, PartialEq)]
struct Pool<'t> {
    sku: &'t str,
    roles: &'t str,
    lossless: u64,
    headroom: Option<u64>,
    egress: Option<u64>,
    lossy: Option<i32>,
}

/// A line of a table of headrooms.
struct Lane {
    rate: Rate,
    guarantee: u64,
    alpha: Option<i32>,
    xon_offset: Option<u64>,
    /// Length in metres and xoff.
    cables: Vec<(u32, u64)>,
}

fn rows(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.starts_with('#'))
}

fn pools() -> impl Iterator<Item = Pool<'static>> {
    rows(POOLS).filter_map(|line| {
        let mut fields = line.split('\t');
        let (sku, roles, _mode) = (fields.next()?, fields.next()?, fields.next()?);
        let mut number = || fields.next().map(str::parse::<i64>);
        let mut size = || number().and_then(Result::ok).map(i64::unsigned_abs);
        let (lossless, headroom, egress) = (size()?, size(), size());
        let lossy = fields.next().and_then(|field| field.parse().ok());
        Some(Pool { sku, roles, lossless, headroom, egress, lossy })
    })
}

/// The table of headrooms of a SKU.
fn lanes(sku: &str) -> Vec<Lane> {
    let mut all = rows(HEADROOM);
    if !all.by_ref().any(|line| !line.starts_with('\t') && line.split(' ').any(|name| name == sku)) {
        return Vec::new();
    }
    let lane = |line: &str| {
        let mut fields = line.trim_start_matches('\t').split('\t');
        let mut number = || fields.next().and_then(|field| field.parse::<i64>().ok());
        let (mbps, guarantee, _xon) = (number()?, number()?, number());
        let (alpha, xon_offset) = (number(), number());
        let cable = |field: &str| {
            let (metres, xoff) = field.split_once(':')?;
            Some((metres.parse().ok()?, xoff.parse().ok()?))
        };
        Some(Lane {
            rate: Rate(mbps.unsigned_abs() * 1_000_000),
            guarantee: guarantee.unsigned_abs(),
            alpha: alpha.and_then(|exponent| exponent.try_into().ok()),
            xon_offset: xon_offset.map(i64::unsigned_abs),
            cables: fields.next()?.split(' ').filter_map(cable).collect(),
        })
    };
    all.take_while(|line| line.starts_with('\t')).filter_map(lane).collect()
}

/// The SKUs that a line of `table` lists behind its first fields, and these fields.
fn listed(table: &'static str, fields: usize, sku: &str) -> Option<Vec<&'static str>> {
    rows(table).find_map(|line| {
        let all: Vec<&str> = line.split('\t').collect();
        let (own, skus) = (all.get(..fields)?, all.get(fields)?);
        skus.split(' ').any(|name| name == sku).then(|| own.to_vec())
    })
}

/// The names of all models, without [`PREFIX`]. A SKU whose pool depends on the role of the switch has a name for each role as well.
pub fn names() -> Vec<String> {
    let of_headroom = rows(HEADROOM).filter(|line| !line.starts_with('\t')).flat_map(|line| line.split(' '));
    let of_wred = rows(WRED).flat_map(|line| line.rsplit('\t').next().unwrap_or_default().split(' '));
    let pools: Vec<Pool<'_>> = pools().collect();
    let all: BTreeSet<&str> = pools.iter().map(|pool| pool.sku).chain(of_headroom).chain(of_wred).collect();
    let mut names = Vec::new();
    for sku in all {
        names.push(sku.to_owned());
        let own: Vec<_> = pools.iter().filter(|pool| pool.sku == sku).collect();
        if own.len() > 1 {
            let roles = own.iter().flat_map(|pool| pool.roles.split(','));
            names.extend(roles.map(|role| format!("{sku}/{role}")));
        }
    }
    names
}

/// Two to the power of a threshold's exponent.
fn power(exponent: i32) -> Share {
    let by = 1 << exponent.unsigned_abs().min(16);
    if exponent < 0 { Share::new(1, by) } else { Share::new(by, 1) }
}

fn value(of: impl Serialize) -> Option<Value> {
    Value::try_from(of).ok()
}

/// The value that most lines have; the first of several.
fn most<T: Copy + PartialEq>(all: &[T]) -> Option<T> {
    let count = |own: &T| all.iter().filter(|other| *other == own).count();
    let best = all.iter().map(count).max()?;
    all.iter().find(|own| count(own) == best).copied()
}

/// What tables and tests say of a SKU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Value of `switch.model`.
    pub model: String,
    /// Bytes of a cell, if published.
    pub cell: Option<u64>,
    /// Slices of the pool; 1 if it is whole, or unknown.
    pub slices: u16,
    /// Bits per second of ports with a headroom in the tables; empty if they have none for the SKU.
    pub rates: Vec<u64>,
    /// SONiC's pool that has the size of the buffer without headroom.
    pub pool: &'static str,
}

/// What is known of a SKU whose switch has a role of SONiC's, such as "t0"; `None` if the tables lack the SKU.
pub fn known(sku: &str, role: &str) -> Option<Known> {
    let of_role = format!("{sku}/{role}");
    let name = [of_role.as_str(), sku].into_iter().find(|name| preset(name).is_some())?;
    let chip = asic(sku);
    Some(Known {
        model: format!("{PREFIX}{name}"),
        cell: chip.and_then(|chip| chip.cell),
        slices: chip.map_or(1, |chip| chip.slices.max(1)),
        rates: lanes(sku).iter().map(|lane| lane.rate.bps()).collect(),
        pool: if chip.is_some_and(|chip| chip.name == "TH3") { EGRESS_POOL } else { INGRESS_POOL },
    })
}

/// Names of pools. The ingress pool of Tomahawk 3 includes headroom.
const INGRESS_POOL: &str = "ingress_lossless_pool";
const EGRESS_POOL: &str = "egress_lossless_pool";

/// The ASIC of a SKU, if the tables have it.
fn asic(sku: &str) -> Option<&'static Asic> {
    let fields = listed(ASICS, 1, sku)?;
    CHIPS.iter().find(|chip| fields.first() == Some(&chip.name))
}

/// What a model is, whose name comes without [`PREFIX`].
pub(crate) fn about(name: &str) -> String {
    let sku = name.split_once('/').map_or(name, |(sku, _)| sku);
    let asic = asic(sku).map_or_else(String::new, |asic| format!(", {}", asic.about));
    format!("{sku} as SONiC configures it{asic}.")
}

/// The figures of a model, whose name comes without [`PREFIX`]; `None` if there is no such model.
pub(crate) fn preset(name: &str) -> Option<Preset> {
    let (sku, role) = name.split_once('/').map_or((name, None), |(sku, role)| (sku, Some(role)));
    let own: Vec<Pool<'_>> = pools().filter(|pool| pool.sku == sku).collect();
    let plays = |pool: &&Pool<'_>| role.is_none_or(|role| pool.roles.split(',').any(|own| own == role));
    let (pool, lanes) = (own.iter().find(plays), lanes(sku));
    let known = !own.is_empty() || !lanes.is_empty() || listed(WRED, 3, sku).is_some();
    (known && (role.is_none() || own.len() > 1 && pool.is_some())).then_some(())?;
    let asic = asic(sku);
    let mut preset = Preset { about: about(name), figures: Vec::new(), unknowns: Vec::new(), like: None };
    let mut add =
        |key, of: Option<Value>, source: String| preset.figures.extend(of.map(|of| (key, of, source)));
    let of_file = |what: &str, file: &str| format!("vendor: {what} ({SOURCE}, {file})");
    if let Some(pool) = pool {
        let (size, what) = match (asic.map(|asic| asic.name), pool.egress) {
            (Some("TH3"), Some(egress)) if egress > 0 => {
                (egress, "egress_lossless_pool, as the ingress pool includes headroom there")
            }
            _ => (pool.lossless, "ingress_lossless_pool"),
        };
        let source =
            of_file(&format!("{what}, of role {}", pool.roles.replace(',', " and ")), "buffers_defaults");
        add("buffer", value(Bytes(size)), source);
        if let Some(exponent) = pool.lossy {
            let what = format!("dynamic_th {exponent} of egress_lossy_profile: alpha is 2 to that power");
            add("drop-alpha", value(power(exponent)), of_file(&what, "buffers_defaults"));
        }
    }
    if let Some(asic) = asic {
        let source = match asic.name.starts_with("SPC") {
            true => of_file("the chip's cell", "platform/mellanox/asic_table.j2"),
            false => "vendor: the chip's cell (sonic-net/sonic-mgmt b4ba9de, tests/qos/files)".to_owned(),
        };
        add("cell", asic.cell.and_then(|cell| value(Bytes(cell))), source);
        if asic.slices > 1 {
            let source = "fitted: with it the law of the buffer gives the cells until the first pause that sonic-net/sonic-mgmt expects, to two";
            add("slices", value(asic.slices), source.to_owned());
        }
    }
    let file = "pg_profile_lookup.ini";
    let guarantees: Vec<u64> = lanes.iter().map(|lane| lane.guarantee).collect();
    if let Some(guarantee) = most(&guarantees).filter(|guarantee| *guarantee > 0) {
        let differ = guarantees.iter().any(|own| *own != guarantee);
        let what =
            if differ { "size of most lossless priority groups" } else { "size of lossless priority groups" };
        add(
            "guarantee",
            value(Bytes(guarantee)),
            of_file(&format!("{what}, less xoff where size includes it"), file),
        );
    }
    let alphas: Vec<i32> = lanes.iter().filter_map(|lane| lane.alpha).collect();
    let least = alphas.iter().min().copied();
    if let Some(least) = least.filter(|_| alphas.len() == lanes.len()) {
        let what = format!("dynamic_th {least}: alpha is 2 to that power");
        add("pfc.alpha", value(power(least)), of_file(&what, file));
        let more = lanes.iter().filter_map(|lane| {
            let alpha = lane.alpha.filter(|own| *own > least)?;
            Some(RateAlpha { rate: lane.rate, alpha: power(alpha) })
        });
        let more: Vec<RateAlpha> = more.collect();
        if !more.is_empty() {
            add("pfc.alpha-at-rate", value(more), of_file("dynamic_th of other rates", file));
        }
    }
    let offsets: Vec<u64> = lanes.iter().filter_map(|lane| lane.xon_offset).collect();
    add(
        "pfc.xon-offset",
        most(&offsets).and_then(|offset| value(Bytes(offset))),
        of_file("xon_offset", file),
    );
    if !lanes.is_empty() {
        let entry = |lane: &Lane| {
            let rate = lane.rate;
            let of = |&(metres, xoff): &(u32, u64)| CableXoff { rate, metres, xoff: Bytes(xoff) };
            lane.cables.iter().map(of).collect::<Vec<_>>()
        };
        let xoff = Xoff::Cables(lanes.iter().flat_map(entry).collect());
        let shared_pool = pool.and_then(|pool| pool.headroom).filter(|size| *size > 0).map(Bytes);
        let what = "xoff by rate and cable, and the pool's xoff as shared headroom";
        add("pfc.headroom", value(CableHeadroom { xoff, shared_pool }), of_file(what, file));
    }
    let own = listed(WRED, 3, sku)
        .and_then(|fields| Some((fields[0].parse().ok()?, fields[1].parse().ok()?, fields[2].parse().ok()?)));
    let (kmin, kmax, percent): (u64, u64, u32) = own.unwrap_or(USUAL_WRED);
    let speeds: Vec<Rate> = match lanes.is_empty() {
        true => RATES.iter().map(|rate| Rate::from_gbps(*rate)).collect(),
        false => lanes.iter().map(|lane| lane.rate).collect(),
    };
    let pmax = Chance::new(f64::from(percent) / 100.0);
    let marks = speeds.iter().map(|&rate| RateEcn { rate, kmin: Bytes(kmin), kmax: Bytes(kmax), pmax });
    let what = if own.is_some() {
        "WRED of the lossless queues"
    } else {
        "SONiC's default WRED, as the SKU has none of its own"
    };
    add("ecn.at-rate", value(marks.collect::<Vec<_>>()), of_file(what, "qos.json and qos_config.j2"));
    add(
        "dscp-map",
        value(DscpMap::Named(Named::Sonic)),
        of_file("SONiC's default map", "files/build_templates/qos_config.j2"),
    );
    preset.like = asic.and_then(|asic| asic.like).filter(|_| pool.is_none());
    let mut unknown = |missing: bool, text: &str| preset.unknowns.extend(missing.then(|| text.to_owned()));
    unknown(pool.is_none(), "the pool: SONiC computes it as it starts, or its tables have none");
    unknown(
        lanes.is_empty(),
        "headroom and alpha: the tables have none for this SKU, so `pfc` stays at its defaults, and headroom is part of `buffer`",
    );
    unknown(asic.is_none_or(|asic| asic.cell.is_none()), "the cell: packets take their own size");
    unknown(asic.is_none_or(|asic| asic.slices == 0), "the slices of the pool: ports share it whole");
    unknown(true, "the delay inside the switch: add it to `delay` of the links");
    Some(preset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checked, Source, check};

    fn lay(model: &str, keys: &str) -> Checked {
        let text = format!(
            "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\nrate = \"100Gbps\"\ndelay = \"1500ns\"\n[switch]\n\
             model = \"sonic:{model}\"\n{keys}\n[[workload]]\nneighbour-ring = {{}}\n"
        );
        check(&Source::new("s.toml", text), &[]).unwrap_or_else(|e| panic!("{model}: {e}"))
    }

    #[test]
    fn every_sku_has_figures_that_fit_their_keys() {
        let names = names();
        assert!(names.len() > 150, "{}", names.len());
        for name in &names {
            let preset = preset(name).unwrap_or_else(|| panic!("{name}"));
            assert!(preset.figures.len() >= 2, "{name}");
            let rates = lanes(name.split('/').next().unwrap_or(name))
                .iter()
                .map(|lane| lane.rate)
                .collect::<Vec<_>>();
            // The fabric has a rate of the SKU's table.
            let rate = rates.last().map_or(Rate::from_gbps(100), |rate| *rate);
            let text = format!(
                "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\nrate = \"{rate}\"\ndelay = \"25ns\"\n[switch]\n\
                 model = \"sonic:{name}\"\n[[workload]]\nneighbour-ring = {{}}\n"
            );
            let checked = check(&Source::new("s.toml", text), &[]).unwrap_or_else(|e| panic!("{name}: {e}"));
            let shown = checked.annotated();
            for (key, _, source) in preset.figures {
                assert!(shown.contains(&format!("# sonic:{name}: {source}")), "{name}: {key}\n{shown}");
            }
        }
    }

    #[test]
    fn a_sku_brings_its_pool_thresholds_and_headroom() {
        let checked = lay("Arista-7060CX-32S", "[nic]\ndscp = 3");
        let of = checked.thresholds();
        // Measured: sonic-net/sonic-mgmt expects 6,542 cells until the first pause, and 1,292 more until the first drop.
        let leaf = of.iter().find(|of| of.role == "leaf").unwrap();
        let cells = |bytes: Option<u64>| bytes.unwrap() / 208;
        assert!(cells(leaf.xoff_alone).abs_diff(6_542) <= 2, "{leaf:?}");
        assert!(cells(leaf.drop_alone).abs_diff(7_835) <= 2, "{leaf:?}");
        let t1 = lay("Arista-7060X6-64PE-256x200G/t1", "");
        assert_eq!(t1.scenario.switch.buffer.get(), 121_964_196);
        let own = lay("Arista-7060X6-64PE-256x200G/t1", "buffer = \"50MB\"\nslices = 1");
        assert_eq!((own.scenario.switch.buffer.get(), own.scenario.switch.slices), (50_000_000, 1));
    }

    #[test]
    fn the_tables_list_all_headrooms_of_a_spectrum_4() {
        let lanes = lanes("ACS-SN5600");
        assert_eq!(lanes.iter().map(|lane| lane.cables.len()).sum::<usize>(), 24);
        for lane in lanes {
            for (metres, xoff) in lane.cables {
                let own = crate::headroom::vendors(192, lane.rate, u64::from(metres) * 100);
                assert_eq!(own, Ok(Bytes(xoff)), "{} {metres} m", lane.rate);
            }
        }
    }

    #[test]
    fn a_wrong_sku_gets_the_nearest_right_name() {
        let text = "[topology.leaf-spine]\n[switch]\nmodel = \"sonic:Arista-7060CX-32\"\n[[workload]]\nneighbour-ring = {}\n";
        let error = check(&Source::new("s.toml", text), &[]).unwrap_err();
        assert_eq!(
            error.located(),
            "s.toml:3:9: unknown model `sonic:Arista-7060CX-32`; did you mean `sonic:Arista-7060CX-32S`?"
        );
    }

    /// NCCL's default on SONiC's default: data has DSCP 0, so its class is lossy. With DSCP 3 it is lossless.
    #[test]
    fn a_job_with_nccls_default_runs_on_the_lossy_class() {
        let lossless = |keys: &str| {
            let checked = lay("Arista-7060CX-32S", keys);
            let mut rules = checked.plan.switches.iter().map(|switch| switch.flow_control.is_lossless());
            (rules.all(|own| own), checked.findings.iter().any(|f| f.code == "lossy-class"))
        };
        assert_eq!(lossless(""), (false, true));
        assert_eq!(lossless("[nic]\ndscp = 3"), (true, false));
        assert_eq!(lossless("classes = \"strict\""), (true, false), "queues by kind of packet alone");
    }
}
