//! Tests `platform/compose` with real containers.

mod gateway;
mod production;
mod registry;
mod stack;
