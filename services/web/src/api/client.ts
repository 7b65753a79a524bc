/**
 * Sends requests to the HTTP API, typed by its OpenAPI document. The browser adds the session's cookie; no token passes
 * through here but that of a sign-in.
 */
import { isAbort, readProblem, unreachable } from "./problem";
import type { components, paths } from "./schema";

/** Names of the schemas of the API with their types. */
export type Schemas = components["schemas"];

type Method = "get" | "post" | "put" | "delete";
type PathsOf<M extends Method> = {
  [P in keyof paths]: Exclude<paths[P][M], undefined> extends never ? never : P;
}[keyof paths];
type Operation<P extends keyof paths, M extends Method> = Exclude<paths[P][M], undefined>;
type Part<O, K extends "path" | "query"> = O extends { parameters: { [N in K]?: infer V } }
  ? Exclude<V, undefined> & object
  : never;
type Body<O> = O extends { requestBody?: infer R } 
  ? Exclude<R, undefined> extends { content: infer C }
    ? C[keyof C]
    : never
  : never;
type Json<R> = R extends { content: { "application/json": infer J } } ? J : undefined;
type Success<O> = O extends { responses: infer R } ? Json<R[Extract<keyof R, 200 | 201 | 202>]> : undefined;

/** Parameters of a request: parts of its path, its query, its body, and what ends it early. */
export interface RequestOptions<O> {
  path?: Part<O, "path">;
  query?: Part<O, "query">;
  body?: Body<O>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

type Listener = () => void;
const unauthenticatedListeners = new Set<Listener>();

/** Calls `listener` whenever an answer says that there is no session. Returns the function that ends this. */
export function onUnauthenticated(listener: Listener): () => void {
  unauthenticatedListeners.add(listener);
  return () => unauthenticatedListeners.delete(listener);
}

/** Reports that an answer said 401; streams use it, too. */
export function reportUnauthenticated(): void {
  for (const listener of unauthenticatedListeners) listener();
}

/** Returns `template` with `{name}` replaced by the escaped values of `parts`, and with `query` appended. */
export function buildPath(template: string, parts: object = {}, query: object = {}): string {
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodePart(String(Reflect.get(parts, name))));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** Sends one request. Throws `ApiError` for each answer that is not a success, and `AbortError` if `signal` ended it. */
export async function send(method: Method, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("accept", headers.get("accept") ?? "application/json");
  // With a session, the API takes no change without this type, so that no form of another page can send one.
  if (method !== "get") headers.set("content-type", "application/json");
  let response: Response;
  try {
    response = await fetch(path, { ...init, method: method.toUpperCase(), headers, credentials: "same-origin" });
  } catch (thrown) {
    if (isAbort(thrown)) throw thrown;
    throw unreachable();
  }
  if (response.ok) return response;
  const problem = await readProblem(response);
  if (problem.status === 401) reportUnauthenticated();
  throw problem;
}

/** Sends a request to a route that the OpenAPI document may not have, and reads its JSON as `T`. */
export async function sendJson<T>(method: Method, path: string, init: RequestInit = {}): Promise<T> {
  const response = await send(method, path, init);
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

function typed<M extends Method>(method: M) {
  return <P extends PathsOf<M>>(path: P, options: RequestOptions<Operation<P, M>> = {}) => {
    const init: RequestInit = {};
    if (options.headers !== undefined) init.headers = options.headers;
    if (options.signal !== undefined) init.signal = options.signal;
    if (options.body !== undefined) init.body = JSON.stringify(options.body);
    const { path: parts, query }: { path?: object; query?: object } = options;
    return sendJson<Success<Operation<P, M>>>(method, buildPath(path, parts, query), init);
  };
}

/** Client of the API: one function for each method, whose first argument is a path of the OpenAPI document. */
export const api = { get: typed("get"), post: typed("post"), put: typed("put"), delete: typed("delete") };

/** Returns `text` as a part of an address. Halves of characters, which have no form there, are replaced. */
export function encodePart(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd"));
}

/** Returns an id of 128 random bits that begins with `prefix`. */
export function randomId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return prefix + [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
