/** Says below a failed run what to do, and links to what shows the cause. */
import type { ReactNode } from "react";
import { encodePart } from "../api/encode";
import { Link } from "../base/router";
import { AgentText } from "./AgentText";
import { OF_LIMITS, causeTab, failureHelp } from "./failures";

/** Properties: `run` is the address of the run's page, null without a run; `children` replace the general advice. */
export interface FailureHelpProps {
  code: string;
  account: string;
  run: string | null;
  children?: ReactNode;
}

/** Renders the advice. */
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
