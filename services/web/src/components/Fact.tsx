/** Entry of a list of facts, `<dl className="facts">`. */
import type { ReactNode } from "react";
import { AgentText } from "./AgentText";

/** Properties: a text is shown as one of an agent, and null as a dash. */
export interface FactProps {
  name: string;
  children: ReactNode;
}

/** Renders the fact. */
export function Fact({ name, children }: FactProps) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{show(children)}</dd>
    </div>
  );
}

function show(value: ReactNode): ReactNode {
  if (value === null) return <span className="none">–</span>;
  return typeof value === "string" ? <AgentText text={value} form="inline" /> : value;
}
