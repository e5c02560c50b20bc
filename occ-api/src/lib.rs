//! occ-api.
