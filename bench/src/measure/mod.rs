//! What is read off clocks and the kernel's accounting, and on what machine.

pub mod clock;
pub mod cores;
pub mod machine;
pub mod process;
