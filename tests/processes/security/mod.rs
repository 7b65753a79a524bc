//! Tests attacks, and that runs, secrets and sockets stay apart. Ends with controls of the search for secrets.

pub(crate) mod attacks;
pub(crate) mod attribution;
mod canaries;
mod isolation;
mod sockets;
mod tokens;
