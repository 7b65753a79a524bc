/** Names the limit that ended a run, and the setting behind it. Calls are listed moments after they end, so it asks twice. */
import { useEffect } from "react";
import { readCalls } from "../../api/calls";
import { useLoad } from "../../api/useLoad";
import { AgentText } from "../../components/AgentText";
import { failureHelp, limitHelp } from "../../components/FailureHelp";

/** Properties: the run that ended, its agent, the account that pays, and the code of its failure. */
export interface DecidedByProps {
  runId: string;
  agentId: string | null;
  account: string;
  code: string;
}

const LISTED_MS = 2_500;

/** Reads the rule of the last refused call: all pages, because the oldest calls come first. */
async function readLastRule(runId: string, signal: AbortSignal): Promise<{ rule: string | null }> {
  let rule: string | null = null;
  let cursor: string | undefined;
  do {
    const page = await readCalls(runId, cursor, signal);
    rule = page.calls.findLast((call) => call.refusal !== null)?.rule ?? rule;
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return { rule };
}

/** Renders the advice; the general one until the call is known that was refused. */
export function DecidedBy({ runId, agentId, account, code }: DecidedByProps) {
  const { data, reload } = useLoad(runId, (signal) => readLastRule(runId, signal));
  const rule = data?.rule ?? null;
  const isMissing = data !== null && rule === null;
  useEffect(() => {
    if (!isMissing) return;
    const timer = setTimeout(reload, LISTED_MS);
    return () => clearTimeout(timer);
  }, [isMissing, reload]);
  return <AgentText text={(rule === null ? null : limitHelp(rule, agentId, account)) ?? failureHelp(code, account)} form="inline" />;
}
