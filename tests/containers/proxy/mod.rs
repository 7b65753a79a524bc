//! Tests the proxy: how it serves calls, counts and limits them, times them out, starts and stops.

mod epochs;
mod image;
mod path;
