//! Tests the documentation: generated pages are up to date, and commands of its pages work.

mod applications_api;
mod book;
mod http_api;
mod mirrors;
mod openapi;
mod quick_start;
mod reconcile;
mod reference;
mod sdk_compatibility;
mod temporal;
