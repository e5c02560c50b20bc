//! occ-iam-native.
