//! schemes
