//! Implements `sluice doctor`.

use std::io::{self, Write};

use platform_core::{
    grant::Correlation,
    id::{AccountId, AgentId},
    priority::Priority,
};
use platform_runtime::{
    settings::{Agent, DEFAULT_AGENT, ModelLimits, Protocol, Template},
    terminal,
};
use runner_engine::{
    reaper::{GcMode, Mode, Reaper},
    run_request::{Keep, RunRequest, RunSpec},
};
use runner_model::behaviour::BehaviourFiles;

use super::{
    Context, Error,
    exit::Exit,
    gc,
    palette::{Palette, Tone},
    run_reference::new_run_id,
    runtime::cancel_on_signals,
};
use crate::{
    doctor::{self, Check, Verdict},
    host_tools,
};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Print JSON instead of a list
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    leftovers: LeftoverArguments,
}

/// Options for leftover resources of ended runs.
#[derive(clap::Args)]
struct LeftoverArguments {
    /// Remove leftover resources of ended runs, as `sluice runs gc` does, and explain each decision
    #[arg(long)]
    reap: bool,
    /// With --reap: explain only, remove nothing
    #[arg(long, requires = "reap")]
    dry_run: bool,
}

pub(super) async fn doctor(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let probe = trial_run(context)?;
    let store = context.serving_store().await;
    let catalog = match &store {
        Ok(store) => Some(host_tools::gateway(&context.settings, store, &context.github()).catalog().await),
        Err(_) => None,
    };
    let dashboard = doctor::dashboard_check(store.as_ref().ok()).await;
    let reaper = store.as_ref().ok().filter(|_| arguments.leftovers.reap);
    let reaper = reaper.map(|store| Reaper::of(&context.settings, store.clone()));
    let mut checks = doctor::run_checks(&context.settings, store, probe, &cancel_on_signals()?).await;
    let github = context.github();
    checks.extend(doctor::relay_check(&context.settings, &github));
    checks.extend(doctor::credential_check(&context.settings, &github));
    checks.extend(doctor::tools_check(&context.settings, catalog.as_deref()));
    checks.extend(doctor::connections_check(&context.settings));
    checks.extend(dashboard);
    checks.extend(doctor::private_files_check(&context.settings, context.sources.configuration_path()));
    let ready = checks.iter().all(Check::is_ok);
    let gc_mode = if arguments.leftovers.dry_run { GcMode::DryRun } else { GcMode::Apply };
    let mode = Mode { act: gc_mode, ..Mode::default() };
    // Runs after the probe, to find leftovers of the probe's run, too.
    let gc_report = match reaper {
        Some(reaper) => Some(reaper.pass(mode).await),
        None => None,
    };
    let mut out = io::stdout();
    if arguments.json {
        let mut report = serde_json::json!({ "ready": ready, "checks": checks });
        if let Some(gc_report) = &gc_report {
            report["reaped"] = serde_json::to_value(gc_report)?;
        }
        writeln!(out, "{}", terminal::safe_json(&report.to_string()))?;
    } else {
        let palette = Palette::of(&out, &context.sources.environment);
        checks.iter().try_for_each(|check| print(&mut out, palette, check))?;
        if let Some(gc_report) = &gc_report {
            writeln!(out)?;
            gc::print_report(&mut out, gc_report)?;
        }
    }
    Ok(if ready { gc_report.as_ref().map_or(Exit::Success, gc::exit_code) } else { Exit::Unavailable })
}

/// Returns a run of the default agent that tries the whole path, and does nothing else.
fn trial_run(context: &Context) -> Result<RunRequest, Error> {
    let agent_id = AgentId::parse(DEFAULT_AGENT)?;
    let default = context.settings.agents[&agent_id].clone();
    Ok(RunRequest {
        run_id: new_run_id()?,
        account: AccountId::parse(doctor::ACCOUNT)?,
        correlation: Correlation::default(),
        agent_id,
        priority: Priority::default(),
        turn: None,
        // The image's entrypoint waits for an answer of /health through the socket, and then runs `true`.
        spec: RunSpec {
            files: None,
            repo: None,
            host_tools: Some(Vec::new()),
            state_key: None,
            agent: Agent { argv: vec![Template::literal("true")], protocol: Protocol::Text, ..default },
            model: String::new(),
            messages: vec![],
            behaviour: BehaviourFiles::new(),
            model_limits: ModelLimits::default(),
            keep: Keep::Nothing,
            order_hash: None,
            caller: None,
        },
    })
}

fn print(out: &mut impl Write, palette: Palette, check: &Check) -> io::Result<()> {
    let name = check.name;
    match &check.verdict {
        Verdict::Ok { found } => {
            writeln!(out, "{}       {name}: {}", palette.paint(Tone::Good, "ok"), indented(found))
        }
        Verdict::Broken { found, fix } => {
            let word = palette.paint(Tone::Bad, "broken");
            writeln!(out, "{word}   {name}: {}\n         fix: {fix}", indented(found))
        }
        Verdict::Unknown { needs } => writeln!(out, "unknown  {name}: needs {needs}"),
    }
}

/// Returns `found` with each further line below the first.
fn indented(found: &str) -> String {
    terminal::safe(found).replace('\n', "\n         ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_has_a_line_of_its_own() {
        let found = "a:one can run\na:two can run".to_owned();
        let mut out = Vec::new();
        print(&mut out, Palette::Plain, &Check { name: "agents", verdict: Verdict::Ok { found } }).unwrap();
        assert_eq!(out, b"ok       agents: a:one can run\n         a:two can run\n");
    }

    #[test]
    fn broken_is_red_on_a_terminal_only() {
        let verdict = Verdict::Broken { found: "gone".to_owned(), fix: "bring it back".to_owned() };
        let check = Check { name: "store", verdict };
        let shown = |palette| {
            let mut out = Vec::new();
            print(&mut out, palette, &check).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(shown(Palette::Coloured).starts_with("\x1b[31mbroken\x1b[0m   store: gone\n"));
        assert!(shown(Palette::Plain).starts_with("broken   store: gone\n"));
    }
}
