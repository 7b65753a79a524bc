/** Why a run failed, and what to do about it. */
import { AgentText } from "../../../components/AgentText";
import { FailureHelp } from "../../../components/FailureHelp";
import type { RunDetails } from "./useRun";

/** Renders the failure. */
export default function Failure({ error, account }: { error: NonNullable<RunDetails["error"]>; account: string }) {
  return (
    <div className="error-note">
      <strong>
        Failed:{" "}
        <code>
          <AgentText text={error.code} form="inline" />
        </code>
      </strong>
      <div className="prose">
        <AgentText text={error.message} firstChars={2_000} />
      </div>
      <FailureHelp code={error.code} account={account} run="" />
      {error.detail !== undefined && (
        <details>
          <summary>Cause, for operators</summary>
          <AgentText text={error.detail} />
        </details>
      )}
    </div>
  );
}
