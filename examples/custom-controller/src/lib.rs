//! occ-example-custom-controller.
