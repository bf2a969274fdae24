//! The papers' experiments, one file each.

pub(crate) mod dlbf;
pub(crate) mod dlbf_motivation;
pub(crate) mod flowcut;
pub(crate) mod hardware;
pub(crate) mod long_haul;
pub(crate) mod loss_recovery;
pub(crate) mod next_generation;
pub(crate) mod themis_fig1;
pub(crate) mod themis_fig5;
pub(crate) mod themis_memory;
pub(crate) mod themis_modes;
pub(crate) mod which_scheme;
