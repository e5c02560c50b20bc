//! occ-configuration-local.
