//! Tests pages of the documentation whose commands need foreign clients.

mod applications_api;
mod temporal;
