/** Says that a page or an action takes a role that the session does not have. */
import { type Role, useSession } from "../base/session";
import { EmptyState } from "./EmptyState";

/** Renders the note in place of a page. */
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
