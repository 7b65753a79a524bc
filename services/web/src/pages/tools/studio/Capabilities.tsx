/** Settings of an agent: what people call it, and what it may do, with what applies where the gateway's policy is stricter. */
import type { FormEvent } from "react";
import { AgentText } from "../../../components/AgentText";
import { FixText } from "../../../components/FixText";
import { ErrorNote } from "../../../components/Notes";
import { AgentState } from "./AgentTable";
import { AllowedCommands } from "./AllowedCommands";
import { Choice } from "./Choice";
import { Conflict } from "./Conflict";
import { AvatarField, NameField } from "./NameFields";
import { fixedReason, isMoving, nameMistake } from "./agents";
import { isChanged, isReady } from "./settings";
import type { SettingsUse } from "./useSettings";

const COMMANDS = [
  ["off", "Off", "it runs none"], ["ask", "Ask", "a person decides about each that is not allowed below"], ["auto", "Auto", "it runs any"],
] as const;
const WEB = [["off", "Off", "it reaches none of it"], ["on", "On", "it searches and reads it"]] as const;
const FILES = [["off", "Off", "it reads and writes none"], ["on", "On", "it reads and writes those of its directory"]] as const;

/** Renders the form. */
export function Capabilities({ settings, mayChange }: { settings: SettingsUse; mayChange: boolean }) {
  const { base, fields, conflict, error, isBusy, set } = settings;
  const why = fixedReason(base, mayChange);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (conflict === null && isReady(settings)) settings.save();
  };
  return (
    <form className="panel stack" onSubmit={submit}>
      {why !== null && <p className="note">{why}</p>}
      <fieldset className="plain stack" disabled={why !== null || isBusy}>
        <Identity settings={settings} />
        <Choice legend="Commands" options={COMMANDS} value={fields.commands} onChange={(commands) => set({ commands })}>
          <Effect effect={base.effective.commands} />
        </Choice>
        <Choice legend="Web" options={WEB} value={fields.web} onChange={(web) => set({ web })}>
          <Effect effect={base.effective.web} />
        </Choice>
        <Choice legend="Files" options={FILES} value={fields.files} onChange={(files) => set({ files })}>
          <Effect effect={base.effective.files} />
        </Choice>
        <AllowedCommands
          commands={fields.allowedCommands} isUsed={fields.commands === "ask"} canForbid={why === null}
          onChange={(allowedCommands) => set({ allowedCommands })}
        />
      </fieldset>
      {conflict !== null && <Conflict settings={settings} current={conflict} />}
      {error !== null && <ErrorNote error={error} />}
      {why === null && conflict === null && <Foot settings={settings} />}
    </form>
  );
}

function Identity({ settings: { fields, set } }: { settings: SettingsUse }) {
  return (
    <div className="form-grid">
      <NameField name={fields.name} mistake={nameMistake(fields.name)} onChange={(name) => set({ name })}>
        The id stays as it is.
      </NameField>
      <AvatarField avatar={fields.avatar} name={fields.name} onChange={(avatar) => set({ avatar })} />
      <label className="field">
        <span>Model</span>
        <input
          value={fields.model} placeholder="that of the ordered agent" autoComplete="off" spellCheck={false}
          onChange={(event) => set({ model: event.target.value })}
        />
      </label>
    </div>
  );
}

function Effect({ effect: { value, reason } }: { effect: SettingsUse["base"]["effective"]["web"] }) {
  return (
    <p className="hint">
      Applies now: <strong><AgentText text={value} form="inline" /></strong>
      {reason !== null && <>. The policy is stricter: <FixText text={reason} /></>}
    </p>
  );
}

function Foot({ settings }: { settings: SettingsUse }) {
  const { base, isBusy, discard } = settings;
  const canDiscard = isChanged(settings) && !isBusy;
  return (
    <div className="bar-line">
      <button type="submit" className="primary" disabled={isBusy || !isReady(settings)}>{isBusy ? "Saving …" : "Save"}</button>
      {canDiscard && <button type="button" onClick={discard}>Discard the changes</button>}
      {!canDiscard && isMoving(base) && <AgentState agent={base} />}
    </div>
  );
}
