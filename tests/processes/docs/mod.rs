//! Tests the documentation: generated pages are up to date, and commands of its pages work.

mod first_change;
mod http_api;
mod openapi;
mod reconcile;
mod reference;
mod sdk_compatibility;
