//! The order of admission, through HTTP (seed: Agents; spec/engine 3, 3.1).

mod faults;
pub mod issued;
pub mod mediated;
pub mod scene;
pub mod table;
pub mod walk;
