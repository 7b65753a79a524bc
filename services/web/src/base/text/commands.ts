/** Makes commands to paste into a shell. Ids are quoted here: an account may be `auth0|acct-7`. Pure. */

const PLAIN = /^[\w@%+:,./][\w@%+=:,./-]*$/;

/** Returns `text` as one word of a shell. */
export function shellWord(text: string): string {
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const SETTABLE = new Set(["cost", "total-tokens", "input-tokens", "output-tokens", "requests"]);

/** Returns the command that sets `limit`, such as `total_tokens` or `totalTokens`; null if no command does. */
export function limitCommand(account: string, limit: string): string | null {
  const option = limit.replace(/_|(?=[A-Z])/g, "-").toLowerCase();
  if (!SETTABLE.has(option)) return null;
  return `${limitsCommand(account)} --${option} ${option === "cost" ? "DOLLARS" : "N"}`;
}

/** Returns the begin of each command that sets limits. */
export function limitsCommand(account: string): string {
  return `sluice limit --account ${shellWord(account)}`;
}

/** Returns the command that gives credits. */
export function creditCommand(account: string): string {
  return `sluice billing credit --account ${shellWord(account)} CREDITS`;
}
