//! What is read off clocks and the kernel's accounting.

pub mod clock;
pub mod process;
