//! `switch.pfc.headroom`: room for what arrives after a pause was sent, by the delay or by the cable of a port.

use finding::{Finding, code};
use model::fabric::Link;
use model::plan::Memory;
use model::{Bytes, Rate, Wire};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Size of a headroom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a size such as \"30kB\", `{ delays = 3 }`, or `{ xoff = \"auto\", shared-pool = \"8MB\" }`"
)]
pub enum Headroom {
    /// Fixed size.
    Bytes(Bytes),
    /// A multiple of the link's delay x rate.
    Delays(Delays),
    /// As a switch's configuration has it.
    Cable(CableHeadroom),
}

/// A multiple of a link's delay x rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Delays {
    /// Factor of the link's delay x rate. No default.
    pub delays: u32,
}

/// Headroom as a switch's configuration has it. It lies beside `buffer`, which then is the pool alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CableHeadroom {
    /// Headroom of each port and virtual channel: a size; a list by rate and length of the cable, `[{ rate = "400Gbps", metres = 40,
    /// xoff = "446024B" }]`; or `"auto"`, the vendor's rule for the port's rate and cable (needs `cell`). A cable has 5 ns of delay per
    /// metre. No default.
    pub xoff: Xoff,
    /// Headroom that all ports together may use. Default: the sum of theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_pool: Option<Bytes>,
}

/// Headroom of one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a size such as \"300kB\", \"auto\", or a list of `{ rate, metres, xoff }`"
)]
pub enum Xoff {
    /// The vendor's rule.
    Auto(Auto),
    /// Fixed size.
    Bytes(Bytes),
    /// By rate and length.
    Cables(Vec<CableXoff>),
}

/// The word `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Auto {
    /// The vendor's rule.
    Auto,
}

/// Headroom of ports of one rate with cables up to a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CableXoff {
    /// Rate of the ports. No default.
    pub rate: Rate,
    /// Longest cable, metres. No default.
    pub metres: u32,
    /// Their headroom. No default.
    pub xoff: Bytes,
}

/// Delay of a metre of cable, ps. Vendor: SONiC's and Broadcom's tables go by 5 ns; light in glass takes 4.9.
pub const METRE: u64 = 5_000;

/// Speed of light in NVIDIA's rule, m/s (sonic-net/sonic-swss, cfgmgr/buffer_headroom_mellanox.lua).
const LIGHT: u128 = 198_000_000;

/// Time after which a port stops for a pause, in quanta of 64 B, by rate in Gb/s (IEEE 802.3 31B.3.7, as in the file above).
const QUANTA: [(u64, u64); 8] =
    [(10, 67), (25, 80), (40, 118), (50, 147), (100, 394), (200, 453), (400, 905), (800, 905)];

/// Vendor: the largest frame of a port and of a lossless class in NVIDIA's rule, and bytes in a switch and its PHY, with which the rule
/// gives the tables of SONiC for Spectrum-4 (sonic-net/sonic-buildimage, device/mellanox).
const PORT_MTU: u64 = 9_216;
const LOSSLESS_MTU: u64 = 1_024;
const PIPELINE: u64 = 819;

/// Cells of Spectrum-1 to -6, bytes (sonic-net/sonic-buildimage, platform/mellanox/asic_table.j2).
const SPECTRUM: [u32; 4] = [96, 144, 192, 256];

/// Bytes per Gb/s that Spectrum-4 and -5 keep in a tile; their cell.
const TILE: (u64, u32) = (15, 192);

/// Headroom for 5 m in Broadcom's tables by rate in Gb/s; the cell. A further metre takes 2 x 5 ns x rate in frames of 64 B, which
/// take 84 B of wire and a cell.
/// Vendor: Tomahawk 5 of Dell Z9864f-O64, Tomahawk 6 of Nexthop NH-4210-F-O256 (sonic-net/sonic-buildimage, device, pg_profile_lookup.ini).
const BROADCOM: [(u32, [(u64, u64); 4]); 2] = [
    (254, [(100, 147_066), (200, 229_362), (400, 393_192), (800, 729_488)]),
    (420, [(100, 229_740), (200, 369_180), (400, 650_160), (800, 1_249_080)]),
];

/// Length of a link's cable, cm.
fn centimetres(link: &Link) -> u64 {
    link.delay.ps() / (METRE / 100)
}

/// A length in whole metres, as people write it.
fn metres(cm: u64) -> String {
    format!("{} m", cm / 100)
}

/// The vendor's headroom for a port of this rate with so long a cable, on a switch with this cell. The error says what is missing.
pub(crate) fn vendors(cell: u32, rate: Rate, cm: u64) -> Result<Bytes, String> {
    let gbps = rate.bps() / 1_000_000_000;
    let of = |table: &[(u64, u64)]| {
        let rates = || table.iter().map(|(rate, _)| format!("{rate}Gbps")).collect::<Vec<_>>().join(", ");
        let found = table.iter().find(|(known, _)| Rate::from_gbps(*known) == rate);
        found.map(|(_, value)| *value).ok_or_else(|| {
            format!("no headroom is public for a cell of {cell} B at {rate}, only at {}", rates())
        })
    };
    if let Some((_, table)) = BROADCOM.iter().find(|(own, _)| *own == cell) {
        let anchor = u128::from(of(table)?);
        let wire = 2 * u128::from(rate.bps()) * u128::from(METRE);
        // Both in units of 1 / (100 x 8e12) B.
        let (far, near) = (u128::from(cm) * wire, 500 * wire);
        let unit = 800_000_000_000_000 * 84 / u128::from(cell);
        let bytes = anchor + far.saturating_sub(near).div_ceil(unit.max(1));
        let least = bytes.saturating_sub(near.saturating_sub(far) / unit.max(1));
        return Ok(Bytes(u64::try_from(least.div_ceil(cell.into()) * u128::from(cell)).unwrap_or(u64::MAX)));
    }
    if !SPECTRUM.contains(&cell) {
        return Err(format!(
            "no rule is public for a cell of {cell} B: rules are for 96, 144, 192 and 256 B (Spectrum), 254 B (Tomahawk 5) and 420 B \
             (Tomahawk 6)"
        ));
    }
    let tile = if cell == TILE.1 { TILE.0 * gbps } else { 0 };
    let fixed = PORT_MTU + PIPELINE + 64 * of(&QUANTA)? + tile;
    // Bytes of the buffer per byte of wire if all frames are small, as a fraction.
    let (num, den) =
        if cell > 128 { (u128::from(cell), 64) } else { (2 * u128::from(cell), 1 + u128::from(cell)) };
    // 2 x length / speed x rate / 8, with the length in cm: the unit is 1 / (800 x LIGHT) B.
    let unit = 800 * LIGHT;
    let wire = 2 * u128::from(cm) * u128::from(rate.bps());
    let times = (u128::from(fixed) * unit + wire) * num;
    let bytes = (u128::from(LOSSLESS_MTU) * unit * den + times).div_ceil(unit * den);
    Ok(Bytes(u64::try_from(bytes.div_ceil(1_024) * 1_024).unwrap_or(u64::MAX)))
}

impl CableHeadroom {
    /// The headroom of a link's port.
    pub(crate) fn of(&self, link: &Link, memory: &Memory) -> Result<Bytes, (&'static str, String)> {
        match &self.xoff {
            Xoff::Bytes(bytes) => Ok(*bytes),
            Xoff::Auto(_) if memory.cell <= 1 => {
                Err(("xoff", "\"auto\" needs `switch.cell`, such as \"192B\" (Spectrum-4)".to_owned()))
            }
            Xoff::Auto(_) => {
                vendors(memory.cell, link.rate, centimetres(link)).map_err(|text| ("xoff", text))
            }
            Xoff::Cables(list) => {
                let (fits, longest) = Self::entries(list, link);
                let text = || format!("no entry has the rate {}", link.rate);
                fits.or(longest).map(|entry| entry.xoff).ok_or_else(|| ("xoff", text()))
            }
        }
    }

    /// The entry for a link's cable, and the one for the longest cable of its rate.
    fn entries<'l>(list: &'l [CableXoff], link: &Link) -> (Option<&'l CableXoff>, Option<&'l CableXoff>) {
        let of_rate = || list.iter().filter(|entry| entry.rate == link.rate);
        let fits = of_rate().filter(|entry| u64::from(entry.metres) * 100 >= centimetres(link));
        (fits.min_by_key(|entry| entry.metres), of_rate().max_by_key(|entry| entry.metres))
    }

    /// What is wrong with the headroom of a link's port: it serves a shorter cable.
    pub(crate) fn too_short(&self, link: &Link, port: &str, memory: &Memory) -> Option<String> {
        let cm = centimetres(link);
        let own = metres(cm);
        match &self.xoff {
            Xoff::Auto(_) => None,
            Xoff::Cables(list) => {
                let (fits, longest) = Self::entries(list, link);
                let longest = longest.filter(|_| fits.is_none())?;
                Some(format!(
                    "the cable of {own} at {port} has the xoff of {} m, {}, the longest of {} in the list: on hardware it drops",
                    longest.metres, longest.xoff, link.rate
                ))
            }
            Xoff::Bytes(xoff) => {
                let need = vendors(memory.cell, link.rate, cm).ok().filter(|need| xoff < need)?;
                let serves = |cm: &u64| vendors(memory.cell, link.rate, *cm).is_ok_and(|need| need <= *xoff);
                let most = longest_below(cm, serves);
                let of = most.map_or_else(|| "of no cable".to_owned(), |most| format!("of {}", metres(most)));
                Some(format!(
                    "the cable of {own} at {port} has the xoff {of}, {xoff}: by its vendor's rule it needs {need}, and on hardware it \
                     drops"
                ))
            }
        }
    }
}

/// The largest number below `end` that passes a test which all smaller numbers pass, too.
fn longest_below(end: u64, passes: impl Fn(&u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (0, end);
    passes(&0).then(|| {
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if passes(&middle) { low = middle } else { high = middle }
        }
        low
    })
}

/// Least headroom with which an ingress port loses no packet. Packets arrive from the decision to pause until the
/// neighbour stops: for two delays of the link, plus the frame that led to the decision and the frame that the neighbour
/// has begun. A pause frame that occupies the wire waits for one more frame. All take whole cells.
pub(crate) fn least(link: &Link, wire: &Wire, memory: &Memory) -> Bytes {
    let twice = 2 * u128::from(link.delay.ps());
    let nominal = if memory.cell > 1 { 0 } else { u128::from(over(link, 2).get()) };
    // A clock that truncates to nanoseconds sends frames faster than the link's rate, short frames most of all. Frames
    // that take 0 ns on a very fast link are ignored: they are ACKs, at most one per full frame.
    let room = |frame: u32| u128::from(memory.room(frame.into()));
    let short = if memory.cell > 1 { wire.data_frame(1) } else { wire.ack };
    let frames = [wire.max_frame(), wire.ack, short];
    let timed = frames.map(|frame| (frame, u128::from(wire.transmission(link.rate, frame).ps())));
    let quickest = timed.into_iter().filter(|(_, time)| *time > 0);
    let arriving = |(frame, time): (u32, u128)| match memory.cell {
        0 | 1 => (u128::from(frame) * twice).div_ceil(time),
        // The last frame may have begun before.
        _ => room(frame) * (twice.div_ceil(time) + 1),
    };
    let quick = quickest.map(arriving).max().unwrap_or(0);
    let on_the_way = u64::try_from(nominal.max(quick)).unwrap_or(u64::MAX);
    // Where one class takes all packets, ACKs are paused, too, and the longest frame may be one of them.
    let frame = memory.room(wire.max_frame().max(wire.ack).max(wire.cnp).into());
    let pause = if wire.pfc > 0 { frame + memory.room(wire.pfc.into()) } else { 0 };
    Bytes(on_the_way.saturating_add(2 * frame + pause))
}

/// Bytes that a link sends in so many of its delays.
pub(crate) fn over(link: &Link, delays: u64) -> Bytes {
    let time = u128::from(delays) * u128::from(link.delay.ps());
    Bytes(u64::try_from((u128::from(link.rate.bps()) * time).div_ceil(8_000_000_000_000)).unwrap_or(u64::MAX))
}

impl Headroom {
    /// The headroom of a link's port, where the least one is `least`. The error names the key below `headroom`.
    pub(crate) fn of(&self, link: &Link, memory: &Memory, least: Bytes) -> Result<Bytes, Finding> {
        match self {
            Headroom::Bytes(bytes) => Ok(*bytes),
            Headroom::Delays(Delays { delays }) => Ok(least.max(over(link, (*delays).into()))),
            Headroom::Cable(cable) => cable.of(link, memory).map_err(|(key, text)| code::NEEDS.at(key, text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load;

    /// Vendor: pg_profile_lookup.ini of ACS-SN5600, a Spectrum-4 (sonic-net/sonic-buildimage, device/mellanox).
    #[test]
    fn nvidias_rule_gives_all_headrooms_of_a_spectrum_4_to_the_byte() {
        let rows = [
            (10, [45_056, 46_080, 56_320]),
            (25, [48_128, 52_224, 76_800]),
            (40, [57_344, 62_464, 101_376]),
            (50, [63_488, 69_632, 118_784]),
            (100, [113_664, 126_976, 225_280]),
            (200, [131_072, 157_696, 355_328]),
            (400, [231_424, 283_648, 677_888]),
            (800, [257_024, 362_496, 1_150_976]),
        ];
        for (gbps, xoffs) in rows {
            for (metres, xoff) in [5, 40, 300].into_iter().zip(xoffs) {
                let rate = Rate::from_gbps(gbps);
                assert_eq!(vendors(192, rate, 100 * metres), Ok(Bytes(xoff)), "{rate}, {metres} m");
            }
        }
    }

    /// Vendor: pg_profile_lookup.ini of Dell Z9864f-O64 and Nexthop NH-4210-F-O256 (sonic-net/sonic-buildimage, device).
    #[test]
    fn broadcoms_slope_gives_the_headrooms_of_tomahawk_5_and_6_to_two_cells() {
        let rows = [
            (254, 200, 40, 255_778),
            (254, 200, 300, 452_374),
            (254, 400, 5, 393_192),
            (254, 400, 40, 446_024),
            (254, 400, 300, 839_216),
            (254, 800, 40, 835_406),
            (254, 800, 300, 1_621_536),
            (420, 400, 30, 712_740),
            (420, 400, 300, 1_387_680),
            (420, 800, 500, 3_724_140),
        ];
        for (cell, gbps, metres, xoff) in rows {
            let own = vendors(cell, Rate::from_gbps(gbps), 100 * metres).unwrap().get();
            assert!(own.abs_diff(xoff) <= 2 * u64::from(cell), "{gbps}G, {metres} m: {own}, not {xoff}");
        }
    }

    fn told(sets: &[&str]) -> Vec<String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        match load("quickstart", &sets) {
            Ok(checked) => checked.warnings(),
            Err(error) => vec![error.to_string()],
        }
    }

    #[test]
    fn a_long_cable_with_the_xoff_of_a_short_one_is_told() {
        let fabric =
            ["topology.leaf-spine.rate=400Gbps", "topology.leaf-spine.delay=750ns", "switch.buffer=60MB"];
        let with = |more: &[&str]| told(&[&fabric[..], more].concat()).join("\n");
        let short = with(&["switch.cell=192B", "switch.pfc.headroom={ xoff = \"231424B\" }"]);
        assert!(
            short.contains("the cable of 150 m at leaf0 has the xoff of 5 m, 231424B: by its vendor's rule it needs 450560B"),
            "{short}"
        );
        assert_eq!(with(&["switch.cell=192B", "switch.pfc.headroom={ xoff = \"auto\" }"]), "");
        let list = "switch.pfc.headroom={ xoff = [{ rate = \"400Gbps\", metres = 5, xoff = \"393192B\" }, { rate = \"400Gbps\", \
                    metres = 40, xoff = \"446024B\" }] }";
        let longest = with(&["switch.cell=254B", list]);
        assert!(longest.contains("the cable of 150 m at leaf0 has the xoff of 40 m, 446024B"), "{longest}");
    }

    #[test]
    fn a_rule_that_nobody_published_is_an_error() {
        let auto = "switch.pfc.headroom={ xoff = \"auto\" }";
        let none = told(&[auto]).join("\n");
        assert!(none.contains("\"auto\" needs `switch.cell`"), "{none}");
        let unknown = told(&[auto, "switch.cell=208B"]).join("\n");
        assert!(unknown.contains("no rule is public for a cell of 208 B"), "{unknown}");
        let rate = told(&[auto, "switch.cell=254B", "topology.leaf-spine.rate=25Gbps"]).join("\n");
        assert!(rate.contains("only at 100Gbps, 200Gbps, 400Gbps, 800Gbps"), "{rate}");
    }

    #[test]
    fn parts_of_a_buffer_must_hold_a_frame() {
        let told = |set: &str| told(&[set]).join("\n");
        assert!(told("switch.cell=0B").contains("expected a cell from 1 to 65536 B"));
        assert!(told("switch.slices=0").contains("expected 1 to 64 slices, found 0"));
        let pool = told("switch.pfc.headroom={ xoff = \"30kB\", shared-pool = \"100B\" }");
        assert!(pool.contains("cannot hold one frame"), "{pool}");
        assert!(told("switch.pfc.headroom={ xof = 3 }").contains("expected a size such as"));
    }
}
