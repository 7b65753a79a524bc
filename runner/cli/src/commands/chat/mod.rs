//! Implements `sluice chat`: a conversation with an agent, one run for each message.
//!
//! On a terminal, a person edits lines, and a line that begins with `/` may be a command. Ctrl-C cancels the answer in
//! progress, and ends the conversation at the prompt. Without a terminal, each line of standard input is a message, and
//! standard output carries the answers.

mod command;
mod messages;

use std::io::{self, IsTerminal, Write};

use platform_core::{
    grant::Correlation,
    id::{AccountId, AgentId, ExternalId, ModelName},
    priority::Priority,
};
use platform_runtime::{
    random, report,
    settings::DEFAULT_AGENT,
    shutdown::{RunBy, signalled},
    terminal,
};
use runner_audit::advice;
use runner_control_client::DataPlane;
use runner_engine::{
    context::EngineHandles,
    gateway_agent_choice::GatewayAgentOrder,
    relay::{OrderSource, RepoChoice},
    run_order::{OrderLimits, OrderedAgent, RunOrder},
    run_request::Keep,
    thread::{ThreadOrder, WhenBusy, read_thread_key},
};
use runner_store::Store;
use tokio_util::sync::CancellationToken;

use self::{
    command::{Command, HELP, Typed},
    messages::Messages,
};
use super::{
    Context, Error,
    exit::Exit,
    preflight,
    run::{connect, execute_request, parse_agent},
    run_reference::new_run_id,
    show::OutputArguments,
};

/// Earlier turns of a thread that are shown at the start.
const SHOWN_TURNS: u32 = 5;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice chat                                   talk to the default agent
  sluice chat --agent claude-code --thread docs  begin a thread of this name, or go on with it
  printf 'Hi\\nAnd then?\\n' | sluice chat        one message a line, from standard input

On a terminal, these lines are commands and cost no call: /model [MODEL], /agent [AGENT], /help, /quit.
Pasted lines are one message.")]
pub(super) struct Arguments {
    /// Agent to talk to; `claude-code` is short for `sandbox:claude-code`
    #[arg(long, default_value = DEFAULT_AGENT, value_name = "AGENT", value_parser = parse_agent)]
    agent: AgentId,
    /// Model to ask [default: the agent's, else upstream.default_model]
    #[arg(long, value_name = "MODEL")]
    model: Option<ModelName>,
    /// Account that pays, and to which the thread belongs
    #[arg(long, default_value = "local", value_name = "ACCOUNT")]
    account: AccountId,
    /// Thread to continue [default: a new one]
    #[arg(long, value_name = "KEY", value_parser = read_thread_key)]
    thread: Option<ExternalId>,
    /// Print the agent's text unchanged, including escape sequences
    #[arg(long)]
    raw: bool,
}

/// Conversation with an agent.
struct Chat<'c> {
    context: &'c Context,
    engine: &'c EngineHandles,
    arguments: Arguments,
    thread: ExternalId,
    /// True if a person types the messages.
    is_watched: bool,
}

pub(super) async fn chat(context: &Context, mut arguments: Arguments) -> Result<Exit, Error> {
    let settings = &context.settings;
    // Before a person is asked for a message.
    OrderedAgent::find(settings, &arguments.agent, arguments.model.clone())?;
    if let Some(model) = &arguments.model {
        let data_plane = DataPlane::at(&settings.proxy.control_socket());
        preflight::check_model(settings, &data_plane, model).await?;
    }
    let thread = match arguments.thread.take() {
        Some(thread) => thread,
        None => ExternalId::parse(&format!("chat-{:08x}", random::bits() & 0xffff_ffff))?,
    };
    let store = context.serving_store().await?;
    let (engine, _export) = connect(context, store).await?;
    let is_watched = io::stdin().is_terminal();
    let mut chat = Chat { context, engine: &engine, arguments, thread, is_watched };
    chat.show_history(&engine.store).await?;
    chat.show_banner()?;
    let exit = Box::pin(chat.answer_all()).await?;
    if is_watched {
        // The last line has the prompt.
        writeln!(io::stderr(), "\nto go on: {}", terminal::safe(&chat.command()))?;
    }
    Ok(exit)
}

impl Chat<'_> {
    /// Answers each message; returns the exit code of the last one.
    async fn answer_all(&mut self) -> Result<Exit, Error> {
        let mut messages = if self.is_watched { Messages::typed()? } else { Messages::piped()? };
        let mut exit = Exit::Success;
        loop {
            let stop = signalled(RunBy::Person)?;
            // A read that is dropped gives the terminal back with `messages`.
            let message = tokio::select! {
                message = messages.next() => message,
                () = stop => None,
            };
            let Some(message) = message else { return Ok(exit) };
            match self.typed(&message) {
                Typed::Nothing => {}
                Typed::Message => exit = self.answer(message).await?,
                Typed::Command(Command::Quit) => return Ok(exit),
                Typed::Command(command) => self.follow(command).await?,
                Typed::Unusable(reason) => tell(&reason)?,
            }
        }
    }

    /// Returns the command that continues this conversation. A thread belongs to its account, and its next answer is that of
    /// the named agent and model, so a command without them would begin another conversation.
    fn command(&self) -> String {
        let Arguments { agent, model, account, .. } = &self.arguments;
        let [agent, thread, account] =
            [agent.as_str(), self.thread.as_str(), account.as_str()].map(advice::shell);
        let model = model.as_ref().map(|model| format!(" --model {}", advice::shell(model.as_str())));
        let model = model.unwrap_or_default();
        format!("sluice chat --agent {agent} --thread {thread} --account {account}{model}")
    }

    /// Reads what was typed. In a pipe there are no commands.
    fn typed(&self, message: &str) -> Typed {
        match Typed::read(message) {
            Typed::Command(_) | Typed::Unusable(_) if !self.is_watched => Typed::Message,
            typed => typed,
        }
    }

    /// Follows a command of a person. The agent and the model of later messages change only if they fit each other.
    async fn follow(&mut self, command: Command) -> Result<(), Error> {
        let (agent, model) = match command {
            Command::Help | Command::Quit => return Ok(io::stderr().write_all(HELP.as_bytes())?),
            Command::Model(None) | Command::Agent(None) => return self.show_banner(),
            Command::Model(model) => (self.arguments.agent.clone(), model),
            // Another agent has its own model.
            Command::Agent(Some(agent)) => (agent, None),
        };
        let settings = &self.context.settings;
        if let Err(error) = OrderedAgent::find(settings, &agent, model.clone()) {
            return tell(&report::chain(&error));
        }
        if let Some(model) = &model
            && let Err(error) = preflight::check_model(settings, &self.engine.data_plane, model).await
        {
            return tell(&report::chain(&error));
        }
        (self.arguments.agent, self.arguments.model) = (agent, model);
        self.show_banner()
    }

    /// Shows a person who answers, and how to learn more.
    fn show_banner(&self) -> Result<(), Error> {
        if !self.is_watched {
            return Ok(());
        }
        let Arguments { agent, model, .. } = &self.arguments;
        let OrderedAgent { model, .. } = OrderedAgent::find(&self.context.settings, agent, model.clone())?;
        let thread = terminal::safe(self.thread.as_str());
        writeln!(io::stderr(), "agent {agent}, model {model}, thread {thread}; /help lists commands")?;
        Ok(())
    }

    async fn answer(&self, question: String) -> Result<Exit, Error> {
        let settings = &self.context.settings;
        let request = self.order(question)?.request(settings, &self.engine.store).await?;
        preflight::check_shown_price(settings, &self.engine.data_plane, &request).await?;
        let output = OutputArguments { json: false, raw: self.arguments.raw };
        let cancel = CancellationToken::new();
        let stop = signalled(RunBy::Person)?;
        let running = Box::pin(execute_request(self.engine, request, output, &cancel));
        tokio::pin!(running);
        tokio::select! {
            exit = &mut running => return exit,
            () = stop => cancel.cancel(),
        }
        running.await
    }

    fn order(&self, question: String) -> Result<RunOrder, Error> {
        let Arguments { agent, model, account, .. } = &self.arguments;
        Ok(RunOrder {
            run_id: new_run_id()?,
            account: account.clone(),
            correlation: Correlation { session: Some(self.thread.clone()), ..Correlation::default() },
            agent_id: agent.clone(),
            model: model.clone(),
            image: None,
            limits: OrderLimits::default(),
            priority: Priority::default(),
            history: Vec::new(),
            question,
            thread: Some(ThreadOrder { busy: WhenBusy::Refuse, ..ThreadOrder::behind(self.thread.clone()) }),
            repo: RepoChoice { source: OrderSource::Shell, ..RepoChoice::default() },
            gateway_agent: GatewayAgentOrder::Unnamed,
            host_tools: None,
            keep: Keep::Nothing,
            hash: None,
        })
    }

    /// Shows the last turns of a thread that goes on.
    async fn show_history(&self, store: &Store) -> Result<(), Error> {
        let account = &self.arguments.account;
        let Some(last) = store.last_turn(account, &self.thread).await?.filter(|_| self.is_watched) else {
            return Ok(());
        };
        let turns = store.turns(account, &self.thread, &last.run.run_id, SHOWN_TURNS).await?;
        let mut err = io::stderr();
        for turn in &turns {
            writeln!(err, "> {}", terminal::safe(&turn.question))?;
            let answer = turn.answer.as_deref().unwrap_or("(no answer)");
            writeln!(err, "{}", terminal::safe(answer))?;
        }
        Ok(())
    }
}

/// Tells a person why a command was not followed.
fn tell(reason: &str) -> Result<(), Error> {
    writeln!(io::stderr(), "sluice: {}", terminal::safe(reason))?;
    Ok(())
}
