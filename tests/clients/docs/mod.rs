//! Tests pages of the documentation with commands that need foreign clients.

mod applications_api;
mod temporal;
