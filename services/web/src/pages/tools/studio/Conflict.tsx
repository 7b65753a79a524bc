/** Says that someone else has changed the agent meanwhile, and lets a person choose between both states. */
import { AgentText } from "../../../components/AgentText";
import { type Column, Table } from "../../../components/Table";
import type { GatewayAgent } from "./agents";
import { type ConflictRow, conflictRows, fieldsOf } from "./settings";
import type { SettingsUse } from "./useSettings";

/** Renders both states, and the choice. */
export function Conflict({ settings, current }: { settings: SettingsUse; current: GatewayAgent }) {
  const rows = conflictRows(settings.fields, fieldsOf(current));
  return (
    <div className="error-note" role="alert">
      <strong>Someone else has changed the agent meanwhile</strong>
      {rows.length === 0 ? (
        <p>Its settings are those that you want.</p>
      ) : (
        <Table label="Yours and the current settings" columns={COLUMNS} rows={rows} keyOf={(row) => row.field} />
      )}
      <div className="bar-line">
        <button type="button" disabled={settings.isBusy} onClick={settings.takeTheirs}>Take theirs</button>
        <button type="button" className="primary" disabled={settings.isBusy} onClick={settings.saveMine}>
          {settings.isBusy ? "Saving …" : "Save mine"}
        </button>
      </div>
    </div>
  );
}

const COLUMNS: Column<ConflictRow>[] = [
  { id: "field", label: "Setting", cell: (row) => row.field },
  { id: "yours", label: "Yours", cell: (row) => <AgentText text={row.yours} isExact={row.field === "Allowed commands"} /> },
  { id: "current", label: "Current", cell: (row) => <AgentText text={row.current} isExact={row.field === "Allowed commands"} /> },
];
