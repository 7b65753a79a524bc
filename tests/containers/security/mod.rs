//! Tests that secrets stay where they belong, and that the search for them finds those that do not.

mod canaries;
mod secrets;
