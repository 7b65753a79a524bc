//! text composes title and body of a pull request from what an agent wrote. Pure.
//!
//! The agent's text is a quotation: each line of it begins with `> `. So nothing in it, not even a code block without an
//! end, reaches the relay's own words below it. [`disarm()`] takes the effects out of the quoted text. A text that holds a secret
//! is refused.

#[cfg(test)]
mod tests;
#[cfg(test)]
mod triggers;

use platform_core::id::{AccountId, AgentId, ExternalId, ProposalId, RunId};
use runner_git::{SecretScan, TextKind, disarm, plain};

/// Most characters of a title.
const MAX_TITLE: usize = 72;
/// Most bytes of a body. GitHub takes 65,536 characters.
const MAX_BODY: usize = 60_000;
/// Most bytes that are read of an agent's text: more do not fit into a body.
const MAX_SOURCE: usize = MAX_BODY;
/// Beginning of a quoted line.
const QUOTE: &str = "> ";
/// Mark of something that was cut off.
const CUT: char = '…';
/// Note below a text that was cut.
const CUT_NOTE: &str = "\n\nThe text was longer; the rest is cut off.";
/// Text where the agent wrote none.
const NO_TEXT: &str = "The agent wrote no description.";

/// Texts of an agent about its work.
#[derive(Debug, Clone, Copy)]
pub struct AgentText<'t> {
    /// Content of the file that is for this: its first line is the title, the rest is the body.
    pub file: Option<&'t str>,
    /// Answer of the agent, for a run without such a file.
    pub answer: &'t str,
}

/// Origin of a pull request, below its body.
#[derive(Debug, Clone, Copy)]
pub struct RunFooter<'t> {
    /// The run.
    pub run: &'t RunId,
    /// Its agent.
    pub agent: &'t AgentId,
    /// Account that paid for it, if readers may know.
    pub account: Option<&'t AccountId>,
}

/// Proposal of a person, for the repository of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct ProposalText<'t> {
    /// Kind of the addition, such as `agent` or `skill`.
    pub kind: &'t str,
    /// Name of the addition.
    pub name: &'t str,
    /// Path of the file that it changes.
    pub path: &'t str,
    /// Person or program who asked for it.
    pub principal: &'t ExternalId,
    /// The proposal.
    pub id: &'t ProposalId,
    /// Text that it adds.
    pub text: &'t str,
}

/// Error for a text that holds a secret, which must not be published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text holds a {secret}")]
pub struct HoldsSecret {
    /// Kind of the secret.
    pub secret: &'static str,
}

/// Title and body of a pull request, in which no word of an agent has an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestText {
    title: String,
    body: String,
}

/// Text of a comment, in which no word of an agent has an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentText(String);

impl CommentText {
    /// Composes the comment of a run's agent.
    ///
    /// # Errors
    /// If `secrets` finds one in the text.
    pub fn compose(text: &str, footer: &RunFooter<'_>, secrets: &SecretScan) -> Result<Self, HoldsSecret> {
        check(text, secrets)?;
        let note = if text.len() > MAX_SOURCE { CUT_NOTE } else { "" };
        let read = &text[..text.floor_char_boundary(MAX_SOURCE)];
        Ok(Self(body(&markdown(read), note, &footer.render())))
    }

    /// Returns the comment in Markdown, of at most 60,000 bytes.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.0
    }
}

impl PullRequestText {
    /// Composes title and body of a run's pull request.
    ///
    /// # Errors
    /// If `secrets` finds one in the agent's text.
    pub fn compose(
        source: AgentText<'_>,
        footer: &RunFooter<'_>,
        secrets: &SecretScan,
    ) -> Result<Self, HoldsSecret> {
        let file = source.file.filter(|file| !file.trim().is_empty());
        let whole = file.unwrap_or(source.answer);
        check(whole, secrets)?;
        let read = whole[..whole.floor_char_boundary(MAX_SOURCE)].trim_start();
        let first_line = read.split(['\n', '\r']).next().unwrap_or_default();
        let title = title(first_line);
        // The first line of the file is the title alone; that of an answer belongs to the text.
        let text = if file.is_some() && title.is_some() { &read[first_line.len()..] } else { read };
        let note = if whole.len() > MAX_SOURCE { CUT_NOTE } else { "" };
        let title = title.unwrap_or_else(|| own_title(footer));
        Ok(Self { title, body: body(&markdown(text), note, &footer.render()) })
    }

    /// Composes title and body of a pull request after the agent's text was left out.
    #[must_use]
    pub fn without(left_out: HoldsSecret, footer: &RunFooter<'_>) -> Self {
        let note = format!("The agent's text is left out: {left_out}.");
        Self { title: own_title(footer), body: format!("{note}{}", footer.render()) }
    }

    /// Composes title and body of a proposal's pull request.
    ///
    /// # Errors
    /// If `secrets` finds one in the proposal's text.
    pub fn of_proposal(proposal: &ProposalText<'_>, secrets: &SecretScan) -> Result<Self, HoldsSecret> {
        check(proposal.text, secrets)?;
        let note = if proposal.text.len() > MAX_SOURCE { CUT_NOTE } else { "" };
        let read = &proposal.text[..proposal.text.floor_char_boundary(MAX_SOURCE)];
        let own = markdown(&proposal.subject());
        let title = title(&own).unwrap_or(own);
        Ok(Self { title, body: body(&markdown(read), note, &proposal.render()) })
    }

    /// Returns the title: one line of at most 72 characters.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the body in Markdown, of at most 60,000 bytes.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }
}

impl ProposalText<'_> {
    /// Returns what it does, in a line.
    #[must_use]
    pub fn subject(&self) -> String {
        format!("Add {} {}", self.kind, self.name)
    }

    fn render(&self) -> String {
        format!(
            "\n\n---\n\nPuts {} {} into {}. Proposed by {} as {}; the quoted text is the proposal's. \
             Merged, it takes effect once the installation has the file: by its deployment, or by `sluice reload` there.",
            self.kind,
            code(self.name),
            code(self.path),
            code(self.principal.as_str()),
            code(self.id.as_str()),
        )
    }
}

impl RunFooter<'_> {
    fn render(&self) -> String {
        let account = self.account.map(|account| format!(" for account {}", code(account.as_str())));
        format!(
            "\n\n---\n\nMade by agent {} in run {}{}. The quoted text is the agent's.",
            code(self.agent.as_str()),
            code(self.run.as_str()),
            account.unwrap_or_default()
        )
    }
}

/// Checks that a text holds no secret, in what is seen of it.
fn check(text: &str, secrets: &SecretScan) -> Result<(), HoldsSecret> {
    secrets.find_in_text(text.as_bytes()).map_or(Ok(()), |secret| Err(HoldsSecret { secret }))
}

fn markdown(text: &str) -> String {
    disarm(text, TextKind::Markdown)
}

fn own_title(footer: &RunFooter<'_>) -> String {
    markdown(&format!("Changes of run {}", footer.run))
}

/// Returns a name as code.
fn code(name: &str) -> String {
    // Ids of applications may have backticks; other names have none.
    format!("`{}`", markdown(&name.replace('`', "'")))
}

/// Returns the title in a line; none if the line has no letter and no digit.
fn title(line: &str) -> Option<String> {
    let line = plain(line);
    // Marks of a heading, a list or a quotation.
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || "#>*+-=_~`".contains(c));
    let line = markdown(line);
    let words: Vec<&str> = line.split_whitespace().collect();
    let line = words.join(" ");
    if !line.contains(char::is_alphanumeric) {
        return None;
    }
    Some(match line.char_indices().nth(MAX_TITLE) {
        Some(_) => line.chars().take(MAX_TITLE - 1).chain([CUT]).collect(),
        None => line,
    })
}

/// Quotes a disarmed text as far as it fits, above the footer. Adds a note if it does not fit.
fn body(text: &str, mut note: &'static str, footer: &str) -> String {
    // One cut line always fits.
    let cut_line = QUOTE.len() + CUT.len_utf8() + 1;
    let room = MAX_BODY - footer.len() - CUT_NOTE.len() - cut_line;
    let mut quoted = String::new();
    for line in text.trim_end().trim_start_matches('\n').lines() {
        let left = room.saturating_sub(quoted.len() + cut_line);
        if line.len() > left {
            quoted.push_str(QUOTE);
            quoted.push_str(&line[..line.floor_char_boundary(left)]);
            quoted.push(CUT);
            note = CUT_NOTE;
            break;
        }
        quoted.push_str(if line.is_empty() { QUOTE.trim_end() } else { QUOTE });
        quoted.push_str(line);
        quoted.push('\n');
    }
    let quoted = if quoted.is_empty() { NO_TEXT } else { quoted.trim_end() };
    format!("{quoted}{note}{footer}")
}
