//! Equipment to test and measure the other crates with.
//!
//! Nothing here is part of the product, nothing in the product depends on it, and it depends on none of the
//! product's crates: what checks a program should not share its code.

pub mod upstream;
