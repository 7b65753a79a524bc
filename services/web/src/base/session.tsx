/** Knows for whom the dashboard acts. A token passes through `signIn` once, and is kept nowhere. */
import { type ReactNode, createContext, useCallback, useContext, useEffect, useMemo, useState } from "react";
import { type Schemas, api, onUnauthenticated, sendJson } from "../api/client";
import { type ApiError, toApiError } from "../api/problem";

/** Roles in the order of their rights: each may do what those before it may. */
export const ROLES = ["viewer", "member", "operator", "admin"] as const;

/** Role of a principal. */
export type Role = (typeof ROLES)[number];

/** Session as far as it is known. */
export type SessionState =
  | { kind: "loading" }
  | { kind: "unreachable"; error: ApiError }
  | { kind: "signedOut"; reason: "none" | "ended" }
  | { kind: "signedIn"; session: Schemas["Session"] };

/** State of the session, and what changes it. */
export interface SessionAccess {
  state: SessionState;
  /** Begins a session with a token. */
  signIn: (token: string) => Promise<void>;
  /** Begins a session with the code of a one-time link. */
  signInByLink: (code: string) => Promise<void>;
  signOut: () => Promise<void>;
  /** Returns whether the role is at least `role`. */
  may: (role: Role) => boolean;
  reload: () => void;
}

const SessionContext = createContext<SessionAccess | null>(null);

/** Returns the session. */
export function useSession(): SessionAccess {
  const access = useContext(SessionContext);
  if (access === null) throw new Error("useSession outside of SessionProvider");
  return access;
}

/** Returns whether a principal with the role `has` may do what takes `needs`. */
export function isAtLeast(has: string, needs: Role): boolean {
  return ROLES.findIndex((role) => role === has) >= ROLES.indexOf(needs);
}

/** Gives the session to everything below it. */
export function SessionProvider({ children }: { children: ReactNode }) {
  const [state, setState] = useState<SessionState>({ kind: "loading" });
  const read = useCallback(async () => {
    try {
      setState({ kind: "signedIn", session: await api.get("/api/v1/session") });
    } catch (thrown) {
      const error = toApiError(thrown);
      setState(error.status === 401 ? { kind: "signedOut", reason: "none" } : { kind: "unreachable", error });
    }
  }, []);
  useEffect(() => void read(), [read]);
  useEffect(
    () => onUnauthenticated(() => setState((last) => (last.kind === "signedIn" ? { kind: "signedOut", reason: "ended" } : last))),
    [],
  );
  const access = useMemo<SessionAccess>(() => {
    const begin = async (path: string, init: RequestInit) => {
      await sendJson<unknown>("post", path, { ...init, cache: "no-store" });
      await read();
    };
    return {
      state,
      signIn: (token) => begin("/api/v1/session", { headers: { authorization: `Bearer ${token}` } }),
      signInByLink: (code) => begin("/api/v1/session/link", { body: JSON.stringify({ code }) }),
      signOut: async () => {
        try {
          await api.delete("/api/v1/session");
        } catch (thrown) {
          setState({ kind: "unreachable", error: toApiError(thrown) });
          return;
        }
        // A fresh document: nothing that was shown stays in memory.
        window.location.replace("/signin");
      },
      may: (role) => state.kind === "signedIn" && isAtLeast(state.session.role, role),
      reload: () => void read(),
    };
  }, [state, read]);
  return <SessionContext value={access}>{children}</SessionContext>;
}
