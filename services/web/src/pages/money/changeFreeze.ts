/** Freezes and thaws calls. A change that holds but could not be stored is a warning, not a failure. */
import { type Schemas, api } from "../../api/client";
import { toApiError } from "../../api/problem";
import type { FreezeChange } from "./FreezeNote";
import type { Freeze } from "./freezes";

/** Direction of a change. */
export type FreezeAction = "freeze" | "thaw";

/** Returns what calls a target has, in words. */
export function nameTarget({ kind, name = "" }: Freeze): string {
  if (kind === "all") return "all calls";
  return kind === "account" ? `calls of the account ${name}` : `calls of the model ${name}`;
}

/** Returns the text that a person types to confirm a change. */
export function wordFor(action: FreezeAction, { kind, name }: Freeze): string {
  return kind === "all" || name === undefined ? `${action} all` : name;
}

/** Makes the change, and returns what to say of it. */
export async function changeFreeze(action: FreezeAction, target: Freeze): Promise<FreezeChange> {
  const what = nameTarget(target);
  const done = action === "freeze" ? `Frozen: ${what}.` : `Thawed: ${what}.`;
  try {
    const answer = await (action === "freeze" ? put(target) : remove(target));
    return { text: `${done}${doubt(answer)}`, isWarning: doubt(answer) !== "" };
  } catch (thrown) {
    const error = toApiError(thrown);
    if (error.code !== "not_stored") throw error;
    return { text: `${done} It holds, but a restart may lose it: free the data plane's disk.`, isWarning: true };
  }
}

function doubt(answer: Schemas["FreezeAnswer"] | Schemas["ThawAnswer"]): string {
  if ("unknown" in answer && answer.unknown.length > 0) {
    return " No run, call or configuration has that name, so it may be mistyped. It is frozen all the same.";
  }
  return "notFrozen" in answer && answer.notFrozen.length > 0 ? " It was not frozen." : "";
}

function put({ kind, name = "" }: Freeze): Promise<Schemas["FreezeAnswer"]> {
  if (kind === "all") return api.put("/api/v1/freezes/all");
  if (kind === "account") return api.put("/api/v1/freezes/accounts/{account}", { path: { account: name } });
  return api.put("/api/v1/freezes/models/{model}", { path: { model: name } });
}

function remove({ kind, name = "" }: Freeze): Promise<Schemas["ThawAnswer"]> {
  if (kind === "all") return api.delete("/api/v1/freezes/all");
  if (kind === "account") return api.delete("/api/v1/freezes/accounts/{account}", { path: { account: name } });
  return api.delete("/api/v1/freezes/models/{model}", { path: { model: name } });
}
