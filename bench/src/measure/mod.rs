//! Reads clocks and the kernel's accounting, and describes the machine.

pub mod clock;
pub mod cores;
pub mod machine;
pub mod process;
