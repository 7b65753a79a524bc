/** Says what a person can do about a failed run, by the code of its failure. */

const HELP = new Map<string, string>([
  ["quota_exhausted", "Too little is left of a limit. An operator sets it: sluice limit --account ACCOUNT"],
  ["balance_exhausted", "Give the account credits: sluice billing credit --account ACCOUNT CREDITS"],
  ["model_busy", "The model has too much to do. Regenerate in a moment."],
  ["model_unavailable", "The model cannot be reached. Regenerate in a moment; sluice doctor says what is wrong."],
  ["model_refused", "The refusal names the setting that decides."],
  ["context_overflow", "The conversation is too long for the model. Begin a new chat."],
  ["timeout", "The run took longer than run_timeout of its agent allows."],
  ["no_answer", "The agent ended without an answer. Regenerate, or look at its output on the run's page."],
  ["image_missing", "The agent's image is not on the host. The page Agents says how to get it."],
]);

/** Codes that are about what the account may use. */
export const OF_LIMITS: ReadonlySet<string> = new Set(["quota_exhausted", "balance_exhausted", "limits_exceeded"]);

/** Codes of runs that ended after a call of theirs was refused. */
export const REFUSED: ReadonlySet<string> = new Set(["quota_exhausted", "model_refused", "model_busy", "model_unpriced"]);

/** Returns the advice for `code`, for a run of `account`. */
export function failureHelp(code: string, account: string): string {
  return (HELP.get(code) ?? "The run's page has the cause.").replace("ACCOUNT", account);
}

const OPTIONS = new Map([
  ["cost", "--cost DOLLARS"], ["total_tokens", "--total-tokens N"], ["input_tokens", "--input-tokens N"],
  ["output_tokens", "--output-tokens N"], ["requests", "--requests N"],
]);

/**
 * Returns the advice for a run that the limit `rule` has stopped, or null if the rule is no limit. A run has the limits of its
 * agent, or lower ones of its order; its account has its own.
 */
export function limitHelp(rule: string, agent: string | null, account: string): string | null {
  const [owner, limit = ""] = rule.split(".", 2);
  if (owner === "run") return `The run's own limit. If its order set none, an operator sets ${limit} in [agents."${agent ?? "AGENT"}"]`;
  const option = OPTIONS.get(limit);
  if (owner !== "account" || option === undefined) return null;
  return `A limit of the account. An operator sets it: sluice limit --account ${account} ${option}`;
}
