/** Frame of the pages that draft something: a form, and below it the last draft. Operators alone draft. */
import type { ReactNode } from "react";
import { Link } from "../../../base/router";
import { useSession } from "../../../base/session";
import { RoleNote } from "../../../components/LoadNote";
import { ErrorNote } from "../../../components/Notes";
import type { Drafting } from "./useDraft";
import "./agents.css";

/** Properties: what the page says above the form, the fields and further buttons of the form, and how a draft is shown. */
export interface DraftPageProps<T> {
  title: string;
  hint: ReactNode;
  drafting: Drafting<T>;
  fields: ReactNode;
  buttons?: ReactNode;
  show: (draft: T) => ReactNode;
}

/** Renders the page. */
export function DraftPage<T>({ title, hint, drafting, fields, buttons, show }: DraftPageProps<T>) {
  const { may } = useSession();
  const { draft, error, isBusy, heading, submit } = drafting;
  if (!may("operator")) return <RoleNote role="operator" />;
  return (
    <>
      <div className="page-head">
        <h1>{title}</h1>
        <Link to="/agents">All agents</Link>
      </div>
      <p className="hint">{hint}</p>
      <form className="panel stack" onSubmit={submit}>
        {fields}
        <div className="bar-line">
          <button type="submit" className="primary" disabled={isBusy}>{isBusy ? "Drafting …" : "Draft"}</button>
          {buttons}
        </div>
      </form>
      {error !== null && <ErrorNote error={error} />}
      {draft !== null && (
        <section className="stack" aria-labelledby="drafted">
          <h2 id="drafted" ref={heading} tabIndex={-1}>Drafted</h2>
          {show(draft)}
        </section>
      )}
    </>
  );
}
