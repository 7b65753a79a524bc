//! Tests the whole way of files into a run and out of it.
