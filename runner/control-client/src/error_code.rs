//! Gives each error of the control socket its code.

use platform_core::code::{Code, Coded};

use super::Error;

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Refused { code, .. } if code == Code::NotStored.word() => Code::NotStored,
            error if error.is_refusal() => Code::DataPlaneRefused,
            Self::Refused { .. } | Self::Unexpected(_) => Code::DataPlaneFailed,
            _ => Code::DataPlaneUnavailable,
        }
    }

    fn word(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            error => error.code().word(),
        }
    }
}
