/** Replaces the limits of an account. What changes is shown before it is sent. */
import { useState } from "react";
import { type Schemas, api } from "../../../api/client";
import { announce } from "../../../base/announce";
import { Confirm } from "../../../components/Dialog";
import { LIMITS, type LimitId } from "../limits";
import { changesOf, fieldsOf, readLimitFields } from "./fields";

/** Properties: the account as it is now, and what gets the account with its new limits. */
export interface LimitsDialogProps {
  account: string;
  /** Null for an account that the data plane does not know yet. */
  limits: Schemas["AccountLimits"] | null;
  onDone: () => void;
  onClose: () => void;
}

/** Renders the form. */
export default function LimitsDialog({ account, limits, onDone, onClose }: LimitsDialogProps) {
  const [before] = useState(() => fieldsOf(limits));
  const [fields, setFields] = useState(before);
  const { body, errors } = readLimitFields(fields);
  const changes = changesOf(before, fields);
  const isReady = changes.length > 0 && Object.keys(errors).length === 0;
  const replace = async () => {
    await api.put("/api/v1/accounts/{account}/limits", { path: { account }, body });
    announce("The limits were replaced.");
    onDone();
  };
  return (
    <Confirm title="Set limits" action="Replace the limits" isReady={isReady} onConfirm={replace} onClose={onClose}>
      <p className="hint">
        An empty field is not a limit. The limits outlast restarts. They hold until the configuration of the account changes.
      </p>
      <div className="form-grid">
        {LIMITS.map(([id, label]) => (
          <LimitField
            key={id} id={id} label={id === "cost" ? "Cost, in dollars" : label} value={fields[id]} error={errors[id]}
            onChange={(value) => setFields({ ...fields, [id]: value })}
          />
        ))}
      </div>
      <div className="changes" aria-live="polite">
        {changes.length === 0 ? <p className="muted">Nothing changes yet.</p> : null}
        {changes.map(({ label, from, to }) => (
          <p key={label}>
            {label}: {from} → <strong>{to}</strong>
          </p>
        ))}
      </div>
    </Confirm>
  );
}

interface LimitFieldProps {
  id: LimitId;
  label: string;
  value: string;
  error: string | undefined;
  onChange: (value: string) => void;
}

function LimitField({ id, label, value, error, onChange }: LimitFieldProps) {
  return (
    <div className="field">
      <label htmlFor={`limit-${id}`}>{label}</label>
      <input
        id={`limit-${id}`} inputMode="decimal" value={value} placeholder="no limit" autoComplete="off"
        onChange={(event) => onChange(event.target.value)}
        aria-invalid={error !== undefined} aria-describedby={error === undefined ? undefined : `limit-${id}-error`}
      />
      {error !== undefined && <span className="field-error" id={`limit-${id}-error`}>{error}</span>}
    </div>
  );
}
