//! occ-conformance.
