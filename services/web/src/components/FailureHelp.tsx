/** Says what a person can do about a failed run, by the code of its failure, and which part of its page shows the cause. */
import type { ReactNode } from "react";
import { encodePart } from "../api/client";
import { Link } from "../base/router";
import { creditCommand, limitCommand } from "../base/text/commands";
import { AgentText } from "./AgentText";

/** Tab of a run's page. */
export interface CauseTab {
  id: string;
  label: string;
}

const TABS = { refusals: "Refusals", calls: "Model calls", output: "Output", timeline: "Timeline", events: "Events" };

type Advice = [help: string | ((account: string) => string), tab: keyof typeof TABS];

const ADVICE = new Map<string, Advice>([
  ["quota_exhausted", ["Too little is left of a limit of the run or its account. The refusal says which and what to do.", "refusals"]],
  ["balance_exhausted", [(account) => `Give the account credits: ${creditCommand(account)}`, "refusals"]],
  ["model_busy", ["The model is overloaded. Try again in a moment.", "refusals"]],
  ["model_unavailable", ["The model cannot be reached. Try again in a moment; sluice doctor says what is wrong.", "calls"]],
  ["model_refused", ["The refusal names the setting that decides.", "refusals"]],
  ["model_unpriced", ["The refusal names the setting that decides.", "refusals"]],
  ["context_overflow", ["The conversation is too long for the model. Begin a new one.", "refusals"]],
  ["timeout", ["The run took longer than run_timeout of its agent allows.", "timeline"]],
  ["container_failed", ["The agent's program ended early. The last lines of its output say why, in most cases.", "output"]],
  ["oom_killed", ["The agent used all memory that it has. An operator gives it more.", "output"]],
  ["no_answer", ["The agent ended without an answer. Try again, or look at its output.", "output"]],
  ["image_missing", ["The agent's image is not on the host. The page Agents says how to get it.", "events"]],
]);

/** Codes that are about what the account may use. */
export const OF_LIMITS: ReadonlySet<string> = new Set(["quota_exhausted", "balance_exhausted", "limits_exceeded"]);

/** Returns the advice for `code`, for a run of `account`. */
export function failureHelp(code: string, account: string): string {
  const help = ADVICE.get(code)?.[0] ?? "The events of the run say how far it came.";
  return typeof help === "string" ? help : help(account);
}

/** Returns the tab that shows the cause of a failure with `code`. */
export function causeTab(code: string): CauseTab {
  const id = ADVICE.get(code)?.[1] ?? "events";
  return { id, label: TABS[id] };
}

/**
 * Returns the advice for a run that the limit `rule` has stopped, or null if the rule is not a limit. A run has the limits of its
 * agent, or lower ones of its order; its account has its own.
 */
export function limitHelp(rule: string, agent: string | null, account: string): string | null {
  const [owner, limit = ""] = rule.split(".", 2);
  if (owner === "run") return `The run's own limit. If its order set none, an operator sets ${limit} in [agents."${agent ?? "AGENT"}"]`;
  const command = owner === "account" ? limitCommand(account, limit) : null;
  return command === null ? null : `A limit of the account. An operator sets it: ${command}`;
}

/** Properties: `run` is the address of the run's page, null without a run; `children` replace the general advice. */
export interface FailureHelpProps {
  code: string;
  account: string;
  run: string | null;
  children?: ReactNode;
}

/** Says below a failed run what to do, and links to what shows the cause. */
export function FailureHelp({ code, account, run, children }: FailureHelpProps) {
  const tab = causeTab(code);
  return (
    <div className="error-help">
      To do: {children ?? <AgentText text={failureHelp(code, account)} form="inline" />}{" "}
      {OF_LIMITS.has(code) && <Link to={`/accounts/${encodePart(account)}`}>Limits of the account</Link>}{" "}
      {run !== null && <Link to={`${run}?tab=${tab.id}`}>{tab.label} of the run</Link>}
    </div>
  );
}
