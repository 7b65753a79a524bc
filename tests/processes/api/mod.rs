//! Tests the HTTP API of `sluice up`: who may take its connections and its time.

mod headers;
mod occupation;
