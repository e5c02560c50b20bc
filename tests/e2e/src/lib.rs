//! occ-e2e.
