//! Tests the documentation: generated pages are up to date, and commands of its pages work.

mod book;
mod hosts;
mod http_api;
mod install;
mod mirrors;
mod quick_start;
