//! occ-harness-openclaw.
