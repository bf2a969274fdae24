//! Values of vendors, and the settings that result.
//!
//! A value without a source here is assumed: it is SAI's, or, where SAI leaves it to the hardware, that of FBOSS's tests.

use super::{Alternates, Backup, Config, Mode};
use model::{Bytes, Probability, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A vendor's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ArsProfile")]
pub enum Profile {
    /// SONiC by SAI's defaults.
    #[default]
    Sonic,
    /// Juniper's dynamic load balancing, by Apstra 6.0.
    Junos,
    /// OcNOS-DC 6.6.
    Ocnos,
    /// Cisco's dynamic load balancing, by examples of NX-OS.
    NxOs,
    /// FBOSS's tests on hardware.
    Fboss,
    /// NVIDIA's adaptive routing on Spectrum switches.
    Spectrum,
    /// Arista's cluster load balancing.
    AristaClb,
}

/// All settings of a switch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) mode: Mode,
    pub(super) idle: Time,
    pub(super) table: u32,
    pub(super) entries: u32,
    pub(super) backup: Backup,
    pub(super) interval: Time,
    pub(super) exponent: u8,
    pub(super) current: bool,
    pub(super) past_weight: u8,
    pub(super) future_weight: u8,
    pub(super) past_limits: [Rate; 2],
    /// `None` stands for 0 to the share of the buffer that `alpha` gives to a queue.
    pub(super) future_limits: Option<[Bytes; 2]>,
    pub(super) scale: Rate,
    pub(super) bands: Vec<u16>,
    pub(super) congested_above: Option<f64>,
    pub(super) quality_delta: u8,
    pub(super) probability: Probability,
    pub(super) alternates: Option<Alternates>,
    pub(super) global: bool,
}

impl Profile {
    fn settings(self) -> Settings {
        let sai = Settings {
            // SONiC's HLD makes flowlets the default.
            mode: Mode::FlowletQuality,
            // saiars.h: idle time 256 us, at most 512 flows.
            idle: Time::from_us(256),
            table: 512,
            entries: 32_768,
            backup: Backup::Fixed,
            // saiarsprofile.h: interval 16 us, exponent 2, weights 16 and 16, no PORT_LOAD_CURRENT.
            interval: Time::from_us(16),
            exponent: 2,
            current: false,
            past_weight: 16,
            future_weight: 16,
            // FBOSS's tests: 1 to 10 Gb/s and 1 to 10 kB. saiarsprofile.h has 0 and leaves the bands to the hardware.
            past_limits: [Rate::from_gbps(1), Rate::from_gbps(10)],
            future_limits: Some([Bytes(1_000), Bytes(10_000)]),
            // SONiC's HLD: the speed of the port divided by 10 Gb/s.
            scale: Rate::from_gbps(10),
            bands: vec![1; 8],
            congested_above: None,
            quality_delta: 0,
            probability: Probability::new(1.0),
            alternates: None,
            global: false,
        };
        match self {
            Profile::Sonic => sai,
            // Apstra 6.0: inactivity interval 256 us, flowset table 256 entries, both weights equal.
            Profile::Junos => Settings { table: 256, ..sai },
            // OcNOS-DC 6.6: 256 us, 1,024 entries.
            Profile::Ocnos => Settings { table: 1024, ..sai },
            // Cisco's Genie tests, after the guide: 600 us, 32 us, decay 2, seven levels by width in percent of the link. The load
            // alone counts in the examples with levels.
            Profile::NxOs => Settings {
                idle: Time::from_us(600),
                interval: Time::from_us(32),
                past_limits: [Rate::from_gbps(0), Rate::from_gbps(10)],
                future_weight: 0,
                bands: vec![15, 20, 30, 15, 10, 5, 5],
                ..sai
            },
            // FBOSS's tests: 16 us, 2,048 entries, 1 us, exponent 0.
            Profile::Fboss => Settings {
                idle: Time::from_us(16),
                table: 2048,
                interval: Time::from_us(1),
                exponent: 0,
                ..sai
            },
            // Cumulus Linux, ECMP page: the choice changes every 1 us, by queue lengths. The profiles are not public: four grades
            // from 0, 1/8, 1/4 and 1/2 of alpha's share on are our choice.
            Profile::Spectrum => Settings {
                mode: Mode::PacketQuality,
                interval: Time::from_us(1),
                exponent: 0,
                past_weight: 0,
                future_weight: 1,
                future_limits: None,
                bands: vec![1, 1, 2, 4],
                ..sai
            },
            // Arista's AVD: flows in turn, ageing from 30 s on. One group's table holds all entries (our choice).
            Profile::AristaClb => {
                Settings { mode: Mode::InTurn, idle: Time::from_ms(30_000), table: 32_768, ..sai }
            }
        }
    }
}

impl Config {
    /// The settings: those of the profile where this table has none.
    pub(super) fn settings(&self) -> Settings {
        let profile = self.profile.settings();
        Settings {
            mode: self.mode.unwrap_or(profile.mode),
            idle: self.idle.unwrap_or(profile.idle),
            table: self.table.unwrap_or(profile.table),
            entries: self.entries.unwrap_or(profile.entries),
            backup: self.backup.unwrap_or(profile.backup),
            interval: self.interval.unwrap_or(profile.interval),
            exponent: self.exponent.unwrap_or(profile.exponent),
            current: self.current.unwrap_or(profile.current),
            past_weight: self.past_weight.unwrap_or(profile.past_weight),
            future_weight: self.future_weight.unwrap_or(profile.future_weight),
            past_limits: self.past_limits.unwrap_or(profile.past_limits),
            future_limits: self.future_limits.or(profile.future_limits),
            scale: self.scale.unwrap_or(profile.scale),
            bands: self.bands.clone().unwrap_or(profile.bands),
            congested_above: self.congested_above.or(profile.congested_above),
            quality_delta: self.quality_delta.unwrap_or(profile.quality_delta),
            probability: self.probability.map_or(profile.probability, Probability::new),
            alternates: self.alternates.or(profile.alternates),
            global: self.global.unwrap_or(profile.global),
        }
    }
}
