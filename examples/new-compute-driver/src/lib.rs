//! occ-example-new-compute-driver.
