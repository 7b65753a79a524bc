//! harmless takes the effects out of what an agent wrote before it leaves this host: of texts for web pages, and of commits.

mod commit;
mod disarm;
mod plain;

pub(crate) use self::commit::harmless_commit;
pub use self::{
    disarm::{TextKind, disarm},
    plain::plain,
};
