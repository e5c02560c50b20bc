//! occ-secret-local.
