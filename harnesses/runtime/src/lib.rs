//! occ-runtime.
