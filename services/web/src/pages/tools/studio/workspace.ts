/** Names the files of an agent: the parts of a path, what an entry is, and its address. Pure. */
import { type Schemas, buildPath, encodePart } from "../../../api/client";

/** Entry of a directory. */
export type Entry = Schemas["GatewayAgentDirectoryEntry"];

/** Session with a directory; null is the agent with its own files. */
export type FilesOf = string | null;

/** Directory on the way to another one. */
export interface Crumb {
  name: string;
  dir: string;
}

/** What the API puts where bytes of a name are no text. */
const REPLACED = "\ufffd";
/** Kinds that the API gives out; it follows no link. */
const OPENED = ["file", "directory"];
const KINDS = new Map([["file", "file"], ["directory", "directory"], ["link", "link, not followed"], ["special", "special, not read"]]);

/** Returns the directory that an address names; that of the agent itself is empty. The server judges its parts. */
export function readDir(text: string | null): string {
  return (text ?? "").split("/").filter((part) => part !== "").join("/");
}

/** Returns the directories from that of the agent, or of its session, to `dir`. */
export function crumbs(dir: string, of: FilesOf): Crumb[] {
  const parts = dir === "" ? [] : dir.split("/");
  const top = { name: of === null ? "Files of the agent" : "Files of the session", dir: "" };
  return [top, ...parts.map((name, index) => ({ name, dir: parts.slice(0, index + 1).join("/") }))];
}

/** Returns the directory that a path lies in. */
export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** Returns the name of an entry, with a `/` behind that of a directory. */
export function nameOf({ path, type }: Pick<Entry, "path" | "type">): string {
  return path.slice(path.lastIndexOf("/") + 1) + (type === "directory" ? "/" : "");
}

/** Returns the directories, and behind them the others, in their order. */
export function directoriesFirst(entries: Entry[]): Entry[] {
  const rank = ({ type }: Entry) => (type === "directory" ? 0 : 1);
  return [...entries].sort((a, b) => rank(a) - rank(b));
}

/** Returns whether the API can be asked for an entry. A name that is not UTF-8 comes with replaced bytes, and finds nothing. */
export function canOpen({ path, type }: Pick<Entry, "path" | "type">): boolean {
  return OPENED.includes(type) && !path.includes(REPLACED);
}

/** Returns what an entry is, in words for people, and why it is not opened. */
export function kindOf({ path, type }: Pick<Entry, "path" | "type">): string {
  const kind = KINDS.get(type) ?? type;
  return path.includes(REPLACED) && OPENED.includes(type) ? `${kind}, not opened: its name is not UTF-8` : kind;
}

/** Returns the address of a directory, on the page of its agent. */
export function dirLink(dir: string, of: FilesOf): string {
  const session = of === null ? "" : `&session=${encodePart(of)}`;
  return `?tab=files${session}${dir === "" ? "" : `&dir=${encodePart(dir)}`}`;
}

/** Returns the address of a file's bytes. */
export function fileAddress({ gateway, id }: { gateway: string; id: string }, of: FilesOf, path: string): string {
  const files = buildPath("/api/v1/gateways/{gateway}/agents/{agent}/workspace", { gateway, agent: id });
  return `${files}/${path.split("/").map(encodePart).join("/")}${of === null ? "" : `?session=${encodePart(of)}`}`;
}
