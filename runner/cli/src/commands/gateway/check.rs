//! Implements `sluice gateway check`.

use std::io::{self, Write};

use platform_core::id::GatewayId;
use platform_runtime::terminal;
use runner_gateways::managed::{self, Finding};
use serde_json::json;

use super::{Context, Error, Exit};

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Only this gateway
    #[arg(value_name = "NAME")]
    id: Option<GatewayId>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn check(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let settings = &context.settings;
    if let Some(id) = &arguments.id {
        settings.gateway(id)?;
    }
    let mut results = Vec::new();
    for (id, gateway) in &settings.gateways {
        if arguments.id.as_ref().is_none_or(|only| only == id) {
            results.push((id, managed::check(settings, id, gateway).await));
        }
    }
    let mut out = io::stdout();
    if arguments.json {
        let finding = |finding: &Finding| json!({ "code": finding.code(), "message": finding.to_string() });
        let gateways = results.iter().map(|(id, findings)| {
            json!({ "id": id, "findings": findings.iter().map(finding).collect::<Vec<_>>() })
        });
        let report = json!({ "gateways": gateways.collect::<Vec<_>>() });
        writeln!(out, "{}", terminal::safe_json(&report.to_string()))?;
    } else {
        results.iter().try_for_each(|(id, findings)| print_findings(&mut out, id, findings))?;
    }
    Ok(exit_code(results.iter().flat_map(|(_, findings)| findings)))
}

/// Returns the exit code. Confirmed findings take precedence over unknown ones.
fn exit_code<'f>(findings: impl Iterator<Item = &'f Finding>) -> Exit {
    let mut findings = findings.filter(|finding| !finding.is_untested()).peekable();
    if findings.peek().is_none() {
        Exit::Success
    } else if findings.all(Finding::is_unknown) {
        Exit::Unavailable
    } else {
        Exit::Failure
    }
}

fn print_findings(out: &mut impl Write, id: &GatewayId, findings: &[Finding]) -> io::Result<()> {
    if findings.is_empty() {
        return writeln!(out, "ok         {id}");
    }
    findings.iter().try_for_each(|finding| {
        let word = match finding {
            finding if finding.is_unknown() => "not known",
            finding if finding.is_untested() => "untested ",
            _ => "wrong    ",
        };
        writeln!(out, "{word}  {id}: {}", terminal::safe(&finding.to_string()))
    })
}
