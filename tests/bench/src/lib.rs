//! occ-bench.
