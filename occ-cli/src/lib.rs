//! occ-cli.
