//! Runs the program: reads the command line, the environment and the configuration, and calls the command.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{CommandFactory, FromArgMatches};
use platform_core::name;
use platform_runtime::{config::Environment, telemetry};
use runner_model::failpoint;

use super::{
    Arguments, Command, Context, Error, agents, api, audit, backup, billing, chat, command_line, config,
    connections, dashboard, demo, doctor, error::Misused, error_code, exit::Exit, freeze, gateway, git,
    images, init, limit, man, metrics, models, principals, reload, repo, run, runs, runtime::create_runtime,
    store, token, tools, up, usage,
};

/// Parses the arguments and runs the command.
#[must_use]
pub fn main() -> ExitCode {
    let matches = command_line().try_get_matches().unwrap_or_else(|error| error_code::refuse_usage(&error));
    let error_format = error_code::ErrorFormat::of(&matches);
    let arguments = Arguments::from_arg_matches(&matches)
        .unwrap_or_else(|error| error_code::refuse_usage(&error.format(&mut command_line())));
    let environment = Environment::capture();
    let mut default_filter =
        "warn,runner_cli::supervise=info,runner_engine::worker=info,runner_engine::reaper=info,runner_cli::reload=info".to_owned();
    if matches!(arguments.command, Command::Up) {
        // The log of a service has to name its runs. With other commands, a person sees the run.
        default_filter.push_str(",sandbox=info");
    }
    telemetry::init(environment.get(name::env::SLUICE_LOG).or(Some(&default_filter)));
    let outcome = dispatch(arguments, environment).unwrap_or_else(|error| {
        let exit = error.exit_code();
        // The reader of the pipe has enough. Other programs say nothing then, either.
        if exit != Exit::ClosedPipe {
            error_format.report(&error);
        }
        exit
    });
    ExitCode::from(outcome.number())
}

fn dispatch(arguments: Arguments, environment: Environment) -> Result<Exit, Error> {
    let Arguments { config, set, command } = arguments;
    match command {
        Command::Completions { shell } => {
            // Writing to standard output directly would panic if its reader has left.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "sluice", &mut script);
            io::stdout().write_all(&script)?;
            return Ok(Exit::Success);
        }
        Command::Man { ref directory } => return man::write(directory),
        Command::Api(ref command) => return api::api(command),
        Command::Config(config::Command::Schema) => return config::schema(),
        Command::Demo(ref arguments) => return demo::demo(environment, arguments),
        Command::Init(arguments) if set.is_empty() => return init::init(config, environment, arguments),
        Command::Init(_) => {
            let problem = "`sluice init` writes a file, and --set changes none: leave it out";
            return Err(Misused(problem.to_owned()).into());
        }
        _ => {}
    }
    if let Some(point) = environment.get(name::env::SLUICE_FAILPOINT) {
        failpoint::arm(point)?;
    }
    let context = Context::read(config, set, environment, command.purpose())?;
    create_runtime()?.block_on(async {
        match command {
            Command::Up => Box::pin(up::up(&context)).await,
            Command::Run(arguments) => Box::pin(run::run(&context, *arguments)).await,
            Command::Chat(arguments) => Box::pin(chat::chat(&context, arguments)).await,
            Command::Runs(command) => runs::runs(&context, command).await,
            Command::Git(command) => git::git(&context, command).await,
            Command::Backup(arguments) => backup::backup(&context, arguments).await,
            Command::Restore(arguments) => backup::restore(&context, arguments).await,
            Command::Store(command) => store::store(&context, command).await,
            Command::Agents(arguments) => agents::agents(&context, arguments).await,
            Command::Images(command) => images::images(&context, command).await,
            Command::Gateway(command) => gateway::gateway(&context, command).await,
            Command::Repo(command) => repo::repo(&context, command).await,
            Command::Tools(command) => tools::tools(&context, command).await,
            Command::Connections(command) => connections::connections(&context, command).await,
            Command::Doctor(arguments) => doctor::doctor(&context, arguments).await,
            Command::Audit(command) => audit::audit(&context, command).await,
            Command::Billing(command) => billing::billing(&context, command).await,
            Command::Token(command) => token::token(&context, command).await,
            Command::Principals(command) => principals::principals(&context, command).await,
            Command::Dashboard(arguments) => dashboard::dashboard(&context, arguments).await,
            Command::Freeze(arguments) => freeze::freeze(&context, arguments).await,
            Command::Thaw(arguments) => freeze::thaw(&context, arguments).await,
            Command::Usage(arguments) => usage::usage(&context, arguments).await,
            Command::Limit(arguments) => limit::limit(&context, arguments).await,
            Command::Metrics => metrics::metrics(&context).await,
            Command::Reload(arguments) => reload::reload(&context, arguments).await,
            Command::Models(arguments) => models::models(&context, arguments).await,
            Command::Config(command) => config::config(&context, command),
            Command::Api(_)
            | Command::Completions { .. }
            | Command::Man { .. }
            | Command::Init(_)
            | Command::Demo(_) => Ok(Exit::Success),
        }
    })
}
