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
mod context;
mod gateway_socket;
mod head_memory;
mod inbound;
mod ingress;
mod listener;
mod sensor_io;
mod serve_accepted;
mod service;
mod thread_load;
mod timeouts;
mod unix_stream;
mod unserved;
mod write_tracker;

pub(crate) use self::{
    balancer::{BalancedThread, ConnectionBalancer, ConnectionQueue},
    connection_limits::{ConnectionLimits, raise_descriptor_limit},
    connection_state::ConnectionState,
    context::ServerContext,
    gateway_socket::GatewaySocket,
    head_memory::HeadMemory,
    inbound::Target,
    ingress::{Ingress, ListenerKind},
    listener::{GatewayListener, RunSocketListener, SharedListener},
    serve_accepted::serve_handed_over,
    service::CallService,
    thread_load::{LoadShare, ThreadLoad},
    timeouts::IdleTimeouts,
    write_tracker::WriteTracker,
};
