/** Reads the form of a draft into the body of its request. The server judges the values. Pure. */
import type { AgentDraft } from "../system/types";

/** Texts of the fields. */
export interface DraftFields {
  agentId: string;
  image: string;
  argv: string;
  name: string;
  description: string;
  model: string;
  models: string;
  runTimeout: string;
  totalTokens: string;
  cost: string;
  protocol: string;
}

/** Form without any text. */
export const EMPTY_FIELDS: DraftFields = {
  agentId: "", image: "", argv: "", name: "", description: "", model: "", models: "", runTimeout: "", totalTokens: "", cost: "",
  protocol: "",
};

/** Pattern of ids of agents: a family and a name. Browsers read it with the flag `v`, which wants a `-` escaped. */
export const AGENT_ID = "[a-z0-9][a-z0-9\\-]*:[a-z0-9][a-z0-9\\-]*";

const TEXTS = ["name", "description", "model", "runTimeout", "cost", "protocol"] as const;

/** Returns the request for what was typed. Fields without a text are left out, so that the defaults apply. */
export function readDraft(fields: DraftFields): AgentDraft {
  const draft: AgentDraft = { agentId: fields.agentId.trim(), image: fields.image.trim() };
  const argv = lines(fields.argv);
  if (argv.length > 0) draft.argv = argv;
  const models = fields.models.split(/[\n,]/).map((model) => model.trim()).filter((model) => model !== "");
  if (models.length > 0) draft.models = models;
  for (const name of TEXTS) {
    const text = fields[name].trim();
    if (text !== "") draft[name] = text;
  }
  const tokens = fields.totalTokens.replace(/[,_ ]/g, "");
  if (/^\d+$/.test(tokens)) draft.totalTokens = Number(tokens);
  return draft;
}

/** Returns the arguments of a command, one a line. White space inside of a line belongs to its argument. */
function lines(text: string): string[] {
  return text.split("\n").map((line) => line.replace(/\r$/, "")).filter((line) => line !== "");
}

/** Kind of a line of a diff. */
export type DiffLine = { kind: "add" | "remove" | "head" | "same"; text: string };

/** Divides a diff into its lines. */
export function readDiff(diff: string): DiffLine[] {
  const all = diff.endsWith("\n") ? diff.slice(0, -1).split("\n") : diff.split("\n");
  return all.map((text, index) => {
    if (text.startsWith("@@") || (index < 2 && /^(---|\+\+\+) /.test(text))) return { kind: "head", text };
    if (text.startsWith("+")) return { kind: "add", text };
    return { kind: text.startsWith("-") ? "remove" : "same", text };
  });
}
