/** Reads and compares the settings of an agent, as the form has them. Pure. */
import type { Schemas } from "../../../api/client";
import { type GatewayAgent, nameMistake } from "./agents";

/** Body of a change. */
export type SettingsBody = Schemas["GatewayAgentSettings"];

/** Fields of the form. An empty avatar is the name's, and an empty model that of the ordered agent. */
export interface Fields {
  name: string;
  avatar: string;
  model: string;
  commands: SettingsBody["commands"];
  web: SettingsBody["web"];
  files: SettingsBody["files"];
  allowedCommands: string[];
}

/** Fields with the state of the agent from which they were edited. */
export interface Edit {
  base: GatewayAgent;
  fields: Fields;
}

/** Difference between what a person wants and what someone else has set meanwhile. */
export interface ConflictRow {
  field: string;
  yours: string;
  current: string;
}

const LABELS: [keyof Fields, string][] = [
  ["name", "Name"], ["avatar", "Avatar"], ["model", "Model"], ["commands", "Commands"], ["web", "Web"], ["files", "Files"],
  ["allowedCommands", "Allowed commands"],
];

/** Returns the fields of an agent. A word of a later version is taken for the strictest one. */
export function fieldsOf(agent: GatewayAgent): Fields {
  const { name, avatar, model, commands, web, files, allowedCommands } = agent;
  return {
    name, avatar: avatar ?? "", model: model ?? "", allowedCommands,
    commands: commands === "auto" || commands === "ask" ? commands : "off",
    web: web === "on" ? "on" : "off",
    files: files === "on" ? "on" : "off",
  };
}

/** Returns the body that sets `fields` on top of `revision`. */
export function bodyOf(fields: Fields, revision: number): SettingsBody {
  const { avatar, model, name, ...others } = fields;
  const text = (value: string) => (value.trim() === "" ? null : value.trim());
  return { ...others, revision, name: name.trim(), avatar: text(avatar), model: text(model) };
}

/** Returns the settings that differ, in the order of the form. Blanks around a text are not a difference. */
export function conflictRows(yours: Fields, current: Fields): ConflictRow[] {
  const rows = LABELS.map(([id, field]) => ({ field, yours: textOf(yours, id), current: textOf(current, id) }));
  return rows.filter((row) => row.yours !== row.current);
}

/** Returns whether the fields differ from what is set. */
export function isChanged({ base, fields }: Edit): boolean {
  return conflictRows(fields, fieldsOf(base)).length > 0;
}

/**
 * Returns the form for `agent` as it is now. What a person typed stays; its base moves on if nothing of the settings has changed
 * meanwhile, as when a file was written.
 */
export function rebase(edit: Edit | null, agent: GatewayAgent): Edit {
  if (edit === null || !isChanged(edit)) return { base: agent, fields: fieldsOf(agent) };
  const isSame = conflictRows(fieldsOf(edit.base), fieldsOf(agent)).length === 0;
  return isSame && agent.revision > edit.base.revision ? { base: agent, fields: edit.fields } : edit;
}

/** Returns whether the form can be sent. */
export function isReady(edit: Edit): boolean {
  return isChanged(edit) && nameMistake(edit.fields.name) === null;
}

function textOf(fields: Fields, id: keyof Fields): string {
  if (id === "allowedCommands") return fields.allowedCommands.length === 0 ? "none" : [...fields.allowedCommands].sort().join("\n");
  const text = fields[id].trim();
  if (text !== "") return text;
  return id === "model" ? "that of the ordered agent" : id === "avatar" ? "that of the name" : "";
}
