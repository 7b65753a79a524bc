/** Lists what is frozen, and freezes or thaws more. For operators. */
import { Suspense, lazy, useState } from "react";
import type { Schemas } from "../../api/client";
import type { Loaded } from "../../api/useLoad";
import { visibleText } from "../../base/text/marks";
import { AgentText } from "../../components/AgentText";
import { LoadNote } from "../../components/LoadNote";
import { AccountLink } from "../../components/ObjectLink";
import { StateChip } from "../../components/StateChip";
import type { FreezeAction } from "./changeFreeze";
import { type FreezeChange, FreezeNote } from "./FreezeNote";
import type { Freeze } from "./freezes";

// Most visits freeze nothing.
const FreezeConfirm = lazy(() => import("./FreezeConfirm"));

type Asked = { action: FreezeAction; target: Freeze };

/** Renders the panel. `freezes` is loaded by the page, which may need it elsewhere, too. */
export default function FreezePanel({ freezes }: { freezes: Loaded<Schemas["FreezeList"]> }) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [change, setChange] = useState<FreezeChange | null>(null);
  const done = (made: FreezeChange) => {
    setChange(made);
    freezes.reload();
  };
  return (
    <section className="panel stack" aria-labelledby="freezes">
      <h2 id="freezes">Freezes</h2>
      <LoadNote loaded={freezes} rows={2} />
      {freezes.data !== null && <FreezeRows freezes={freezes.data.freezes} onThaw={(target) => setAsked({ action: "thaw", target })} />}
      <FreezeForm onAsk={(target) => setAsked({ action: "freeze", target })} />
      <FreezeNote change={change} />
      <Suspense fallback={null}>
        {asked !== null && <FreezeConfirm {...asked} onDone={done} onClose={() => setAsked(null)} />}
      </Suspense>
    </section>
  );
}

function FreezeRows({ freezes, onThaw }: { freezes: Freeze[]; onThaw: (target: Freeze) => void }) {
  if (freezes.length === 0) return <p className="muted">Nothing is frozen.</p>;
  return (
    <ul className="freeze-rows">
      {freezes.map((target) => (
        <li key={`${target.kind} ${target.name ?? ""}`}>
          <StateChip state={target.kind === "all" ? "all frozen" : `${target.kind} frozen`} tone="warn" />
          <Name target={target} />
          <button type="button" onClick={() => onThaw(target)} aria-label={visibleText(`Thaw ${target.kind} ${target.name ?? ""}`)}>
            Thaw
          </button>
        </li>
      ))}
    </ul>
  );
}

function Name({ target: { kind, name } }: { target: Freeze }) {
  if (name === undefined) return <span>every call</span>;
  return kind === "account" ? <AccountLink id={name} /> : <AgentText text={name} form="inline" />;
}

const KINDS: Freeze["kind"][] = ["account", "model", "all"];

function FreezeForm({ onAsk }: { onAsk: (target: Freeze) => void }) {
  const [kind, setKind] = useState<Freeze["kind"]>("account");
  const [name, setName] = useState("");
  const isNamed = kind !== "all";
  return (
    <form
      className="bar-line"
      onSubmit={(event) => {
        event.preventDefault();
        onAsk(isNamed ? { kind, name: name.trim() } : { kind });
      }}
    >
      <label className="field">
        <span>Freeze</span>
        <select value={kind} onChange={(event) => setKind(KINDS.find((other) => other === event.target.value) ?? "account")}>
          <option value="account">an account</option>
          <option value="model">a model</option>
          <option value="all">all calls</option>
        </select>
      </label>
      {isNamed && (
        <label className="field grow">
          <span>{kind === "account" ? "Its id" : "Its name, as calls request it"}</span>
          <input
            value={name} required maxLength={256} autoComplete="off" spellCheck={false}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
      )}
      <button type="submit" className="danger field-button">Freeze …</button>
    </form>
  );
}
