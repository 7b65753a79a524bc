//! Tests the dashboard in Chromium, against a real `sluice up` with real containers. The suites are in
//! `tests/sdk/dashboard`.

mod access;
mod agents;
mod chat;
mod hostile;
mod network;
mod overview;
mod people;
mod policy;
mod scale;
mod shots;
