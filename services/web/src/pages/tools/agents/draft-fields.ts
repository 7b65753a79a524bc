/** Reads the form of a draft into the body of its request. The server judges the values. Pure. */
import type { Schemas } from "../../../api/client";

/** Value of a setting in a draft. */
export type SettingValue = string | number | boolean | (string | number | boolean)[];
/** Body of `POST /api/v1/agents/draft`. The document says of the settings only that they are an object. */
export type AgentDraft = Omit<Schemas["AgentDraftOrder"], "settings"> & { settings: Record<string, SettingValue> };
/** Answer of `POST /api/v1/agents/draft`. */
export type DraftedAgent = Schemas["AgentDraft"];

/** Texts of the fields. `others` has settings without a field of their own, one a line. */
export interface DraftFields {
  agentId: string;
  image: string;
  argv: string;
  name: string;
  description: string;
  prompt: string;
  model: string;
  models: string;
  runTimeout: string;
  totalTokens: string;
  cost: string;
  protocol: string;
  others: string;
}

/** Request of a draft, and the lines that cannot be read. */
export interface ReadDraft {
  body: AgentDraft;
  mistakes: string[];
}

/** Form without any text. */
export const EMPTY_FIELDS: DraftFields = {
  agentId: "", image: "", argv: "", name: "", description: "", prompt: "", model: "", models: "", runTimeout: "", totalTokens: "",
  cost: "", protocol: "", others: "",
};

/** Pattern of ids of agents: a family and a name. Browsers read it with the flag `v`, which wants a `-` escaped. */
export const AGENT_ID = "[a-z0-9][a-z0-9\\-]*:[a-z0-9][a-z0-9\\-]*";

/** Fields whose text is the value of a setting, in the order of the entry. */
const TEXTS = [
  ["name", "name"], ["description", "description"], ["image", "image"], ["protocol", "protocol"], ["prompt", "prompt"],
  ["model", "model"], ["runTimeout", "run_timeout"], ["cost", "cost"],
] as const;

/** Returns the request for what was typed. Fields without a text are left out, so that the defaults apply. */
export function readDraft(fields: DraftFields): ReadDraft {
  const settings: Record<string, SettingValue> = {};
  for (const [field, setting] of TEXTS) {
    const text = fields[field].trim();
    if (text !== "") settings[setting] = text;
  }
  const argv = fields.argv.split("\n").map((line) => line.replace(/\r$/, "")).filter((line) => line !== "");
  if (argv.length > 0) settings["argv"] = argv;
  const models = fields.models.split(/[\n,]/).map((model) => model.trim()).filter((model) => model !== "");
  if (models.length > 0) settings["models"] = models;
  const tokens = fields.totalTokens.replace(/[,_ ]/g, "");
  if (/^\d+$/.test(tokens)) settings["total_tokens"] = Number(tokens);
  const mistakes = readOthers(fields.others, settings);
  return { body: { agentId: fields.agentId.trim(), settings }, mistakes };
}

/** Adds the settings of `text` to `settings`. Returns a line of explanation for each that cannot be read. */
function readOthers(text: string, settings: Record<string, SettingValue>): string[] {
  return text.split("\n").flatMap((line) => {
    if (line.trim() === "") return [];
    const [, name = "", value = ""] = /^\s*([a-z0-9_]+)\s*=\s*(.+)$/.exec(line) ?? [];
    const read = readValue(value.trim());
    if (name === "" || read === null) return [`\`${line.trim()}\`: write \`name = value\`; a text has quotes, a list has brackets`];
    if (Object.hasOwn(settings, name)) return [`\`${name}\` is given twice`];
    Object.defineProperty(settings, name, { value: read, enumerable: true, configurable: true, writable: true });
    return [];
  });
}

/** Reads a text, a whole number, a truth value or a list of these, which JSON and TOML write alike. */
function readValue(text: string): SettingValue | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const isPlain = (item: unknown) => typeof item === "string" || typeof item === "boolean" || Number.isSafeInteger(item);
  return isPlain(value) || (Array.isArray(value) && value.every(isPlain)) ? (value as SettingValue) : null;
}
