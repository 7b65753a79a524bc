/** Describes requests that fail: the problem details of the API, and failures to reach it. */
import type { components } from "./schema";

/** Problem details as the API sends them. */
export type Problem = components["schemas"]["Problem"];

/** Failed request. `code` is stable, and `help` says what would change the outcome. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly help: string;
  readonly retryAfterSeconds: number | null;

  constructor(problem: Pick<Problem, "status" | "code" | "detail" | "help">, retryAfterSeconds: number | null = null) {
    super(problem.detail);
    this.name = "ApiError";
    this.status = problem.status;
    this.code = problem.code;
    this.help = problem.help;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  /** Returns whether the same request may succeed later without a change. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Returns the error for a request that got no answer at all. */
export function unreachable(): ApiError {
  return new ApiError({
    status: 0,
    code: "unreachable",
    detail: "Sluicegate does not answer.",
    help: "check that `sluice up` runs and that this device has a network",
  });
}

/** Reads the problem details of an answer that is not a success. */
export async function readProblem(response: Response): Promise<ApiError> {
  const retryAfter = Number.parseInt(response.headers.get("retry-after") ?? "", 10);
  const retry = Number.isFinite(retryAfter) ? retryAfter : null;
  const body: unknown = await response.json().catch(() => null);
  const field = (name: string, otherwise: string): string => {
    const value: unknown = body !== null && typeof body === "object" ? Reflect.get(body, name) : undefined;
    return typeof value === "string" ? value : otherwise;
  };
  return new ApiError(
    {
      status: response.status,
      code: field("code", `http_${response.status}`),
      detail: field("detail", `The server answered with status ${response.status}.`),
      help: field("help", ""),
    },
    retry,
  );
}

/** Returns any thrown value as an error that pages can show. */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const detail = thrown instanceof Error ? thrown.message : "The page failed.";
  return new ApiError({ status: -1, code: "page_failed", detail, help: "reload the page" });
}

/** Returns whether `thrown` only says that its request was aborted by the page. */
export function isAbort(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === "AbortError";
}
