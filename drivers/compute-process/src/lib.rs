//! occ-compute-process.
