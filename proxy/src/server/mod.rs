//! Serves clients' connections, from the listener down to the bytes.
//!
//! It decides who may connect and how many, watches timeouts, and sees when the last byte of an answer is out.
//!
//! Knows calls only as a [`CallService`], which answers the requests that a connection brings.

mod accepted;
mod balancer;
mod connection;
mod connection_limits;
mod connection_state;
mod gateway_socket;
mod head_memory;
mod inbound;
mod ingress;
mod listener;
mod sensor_io;
mod service;
mod timeouts;
mod unix_stream;
mod unserved;
mod write_tracker;

pub(crate) use self::{
    balancer::{
        BalancedThread, ConnectionBalancer, ConnectionQueue, LoadShare, ThreadLoad, serve_handed_over,
    },
    connection_limits::{ConnectionLimits, raise_descriptor_limit},
    connection_state::ConnectionState,
    gateway_socket::GatewaySocket,
    head_memory::HeadMemory,
    inbound::Target,
    ingress::{Ingress, ListenerKind},
    listener::{GatewayListener, RunSocketListener, SharedListener},
    service::{CallService, ServerContext},
    timeouts::IdleTimeouts,
    write_tracker::WriteTracker,
};
