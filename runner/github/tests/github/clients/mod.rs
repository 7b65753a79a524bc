//! clients holds tests that need packages of foreign clients.

mod description;
