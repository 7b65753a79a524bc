//! Gives each error of the store its code.

use platform_core::code::{Code, Coded};
use platform_runtime::retry::Transient;

use super::error::Error;

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Unknown { .. } | Self::NoPrincipal { .. } => Code::NotFound,
            Self::NoConnection { .. } => Code::ConnectionUnknown,
            Self::NoThread { .. } => Code::ThreadUnknown,
            Self::Forgotten { .. } => Code::NotRepeatable,
            Self::Full(_) => Code::QueueFull,
            Self::SessionBusy { .. } => Code::SessionBusy,
            Self::ThreadBusy { .. } => Code::ThreadBusy,
            Self::StillActive { .. } => Code::RunActive,
            Self::RelayChanged { .. } => Code::RelayBusy,
            Self::HostAtWork { .. } | Self::OthersAtWork { .. } => Code::StoreBusy,
            Self::Conflict { .. } => Code::RunIdTaken,
            Self::ServesAnother { .. } => Code::StoreServesAnotherHost,
            Self::PrincipalExists { .. } | Self::PrincipalRevoked { .. } => Code::PrincipalIdTaken,
            Self::ConnectionExists { .. } => Code::ConnectionExists,
            Self::ConnectionLimit(_) => Code::ConnectionsExhausted,
            Self::TopUpExists { .. } => Code::IdempotencyKeyTaken,
            Self::BranchTaken { .. } => Code::BranchTaken,
            Self::NotEmpty { .. } => Code::StoreNotEmpty,
            Self::Backup { .. } | Self::BackupFile { .. } => Code::BackupUnusable,
            Self::TooLarge { .. } => Code::TooLarge,
            // Without a wildcard: the compiler demands a code for each new error.
            Self::Address { .. }
            | Self::File { .. }
            | Self::Exposed(_)
            | Self::Unreachable { .. }
            | Self::HostId { .. }
            | Self::OnlyReads
            | Self::Newer { .. }
            | Self::Altered { .. }
            | Self::Failed { .. }
            | Self::ThreadWorkspaceTaken { .. }
            | Self::Fenced { .. }
            | Self::Illegal { .. }
            | Self::NotMaking { .. }
            | Self::NotWarm { .. }
            | Self::NotWanted { .. }
            | Self::NotOver { .. }
            | Self::Backwards { .. }
            | Self::Corrupt { .. } => match self.is_transient() {
                true => Code::StoreUnavailable,
                false => Code::StoreFailed,
            },
        }
    }
}
