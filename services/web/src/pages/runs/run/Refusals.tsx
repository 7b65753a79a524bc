/** Calls that were refused or cut: the setting that decided, and the command that would change it. */
import { useLoadOn } from "../../../api/usePages";
import { shellWord } from "../../../base/text/commands";
import { formatCount } from "../../../base/text/format";
import { AgentText } from "../../../components/AgentText";
import { CopyText } from "../../../components/CopyButton";
import { More } from "../../../components/More";
import { EmptyState } from "../../../components/Notes";
import { Time } from "../../../components/Time";
import { type RefusalGroup, groupRefusals, useCalls } from "./calls";
import { OutcomeChip } from "./Calls";
import type { RunDetails } from "./useRun";

const MAX_READ = 5_000;

/** Renders the refused calls of `run`. */
export function Refusals({ run }: { run: RunDetails }) {
  const calls = useCalls(run);
  const refused = calls.items?.filter((call) => call.refusal !== null || call.timeout !== null) ?? [];
  const read = calls.items?.length ?? 0;
  // The oldest calls come first, and a run ends by one of the last.
  const expected = run.usage?.refusedCalls ?? 0;
  const found = refused.reduce((sum, call) => sum + (call.refusal === null ? 0 : call.calls), 0);
  const isShort = calls.more !== null && found < Math.max(1, expected);
  useLoadOn(calls, isShort && read < MAX_READ);
  return (
    <>
      {isShort && read > 0 && (
        <p className="hint">
          {formatCount(read)} of the calls were looked at, the oldest first. Refused in all: {formatCount(expected)}.
        </p>
      )}
      {calls.items !== null && refused.length === 0 && calls.more === null && (
        <EmptyState title="Nothing was refused">Each call that a rule stops is shown here with the setting that decided.</EmptyState>
      )}
      {groupRefusals(refused).map((group) => (
        <Refusal key={group.call.callId} group={group} />
      ))}
      <More pages={calls} />
    </>
  );
}

function Refusal({ group: { call, count, last } }: { group: RefusalGroup }) {
  const advice = call.advice ?? null;
  const commands = advice === null ? [`sluice audit show ${shellWord(call.callId)}`] : advice.commands;
  return (
    <article className="panel refusal">
      <div className="bar-line">
        <OutcomeChip call={call} />
        <Time at={call.at} />
        {count > 1 && <strong>{formatCount(count)} times, the last at <Time at={last} /></strong>}
        <AgentText text={call.modelAsked ?? call.route} form="inline" />
      </div>
      {advice !== null && (
        <div className="prose">
          <AgentText text={advice.why} />
        </div>
      )}
      <dl className="facts">
        {call.rule !== null && (
          <div>
            <dt>Decided by</dt>
            <dd><code><AgentText text={call.rule} form="inline" /></code></dd>
          </div>
        )}
        {advice?.settings.map((setting) => (
          <div key={`${setting.section}.${setting.key}`}>
            <dt><AgentText text={`[${setting.section}]`} form="inline" /></dt>
            <dd><code><AgentText text={`${setting.key} = ${setting.value ?? "…"}`} form="inline" /></code></dd>
          </div>
        ))}
      </dl>
      {commands.length > 0 ? (
        <div className="stack commands">
          <p className="commands-title">{advice === null ? "For the fix, on the host" : "To change it"}</p>
          {commands.map((command) => (
            <CopyText key={command} text={command} />
          ))}
        </div>
      ) : (
        <p className="hint">An operator sees the command that would change this.</p>
      )}
    </article>
  );
}
