/** Names the files that say how an agent behaves. Pure. */
import type { Schemas } from "../../../api/client";

/** Name of a behaviour file. */
export type FileName = Schemas["BehaviourFileName"];

/** Files that a person writes, each with what it is for. */
export const FILES = [
  { name: "AGENTS.md", hint: "Instructions, which the agent reads at the beginning of each session." },
  { name: "SOUL.md", hint: "Personality: how it speaks, and what it cares about." },
  { name: "USER.md", hint: "Facts about the people that it works for." },
  { name: "MEMORY.md", hint: "What it remembers. The agent may have changed its own copy; to save replaces that." },
] as const satisfies { name: FileName; hint: string }[];

/** Largest file, in bytes. */
const MAX_BYTES = 256 * 1024;

/** Returns the stored text of a file, which is empty if nothing is stored. */
export function storedText(files: Pick<Schemas["GatewayAgentFile"], "name" | "content">[], name: FileName): string {
  return files.find((file) => file.name === name)?.content ?? "";
}

/** Returns the revision of a file, which is 0 if nothing is stored. */
export function storedRevision(files: Pick<Schemas["GatewayAgentFile"], "name" | "revision">[], name: FileName): number {
  return files.find((file) => file.name === name)?.revision ?? 0;
}

/** Returns the bytes of a text as it is sent. */
export function sizeOf(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** Returns whether a text is larger than a file may be. */
export function isTooLarge(text: string): boolean {
  return sizeOf(text) > MAX_BYTES;
}
