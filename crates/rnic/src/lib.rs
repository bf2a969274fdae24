//! rnic
