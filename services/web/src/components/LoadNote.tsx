/** Says why a page shows no data, or older data: it loads, that failed, or the session has another role. */
import type { ReactNode } from "react";
import type { Loaded } from "../api/useLoad";
import { type Role, useSession } from "../base/session";
import { EmptyState, ErrorNote, Skeleton } from "./Notes";

/** Properties: `rows` is the number of grey rows; `children` go into the note of a failure. */
export interface LoadNoteProps {
  loaded: Loaded<unknown>;
  rows?: number;
  children?: ReactNode;
}

/** Renders grey rows at first, a failure with the age of what is shown, and nothing if the data is there and current. */
export function LoadNote({ loaded: { data, error, staleSince, reload }, rows = 6, children }: LoadNoteProps) {
  if (error === null) return data === null ? <Skeleton rows={rows} /> : null;
  return (
    <ErrorNote error={error} staleSince={data === null ? null : staleSince} onRetry={reload}>
      {children}
    </ErrorNote>
  );
}

/** Says in place of a page that it takes a role that the session does not have. */
export function RoleNote({ role }: { role: Role }) {
  const { state } = useSession();
  const own = state.kind === "signedIn" ? state.session.role : "none";
  return (
    <EmptyState title={`This page takes the role ${role}`}>
      You have the role {own}. Sign in with the token of another principal:{" "}
      <code>sluice principals add NAME --account ACCOUNT --role {role}</code> makes one.
    </EmptyState>
  );
}
