//! occ-example-local.
