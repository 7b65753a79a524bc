/** Filters of the list. They are kept in the address, so a filtered list can be sent to others. */
import { encodePart } from "../../api/encode";
import { type FormEvent, useRef } from "react";
import { useShortcuts } from "../../app/keys";
import { useLocation } from "../../app/router";
import { useSession } from "../../app/session";
import { type RunFilter, STATE_GROUPS, toggleGroup } from "./filter";

/** Renders the filters. `agents` are offered while a person types. */
export function Filters({ filter, agents }: { filter: RunFilter; agents: string[] }) {
  const { setQuery, navigate } = useLocation();
  const { may } = useSession();
  const run = useRef<HTMLInputElement>(null);
  useShortcuts([{ key: "/", label: "Open a run by its id", run: () => run.current?.focus() }]);
  const open = (event: FormEvent) => {
    event.preventDefault();
    const id = run.current?.value.trim() ?? "";
    if (id !== "") navigate(`/sandbox/${encodePart(id)}`);
  };
  return (
    <div className="filters">
      <div className="toggles" role="group" aria-label="States">
        {STATE_GROUPS.map((group) => (
          <button
            key={group.label} type="button" className="toggle"
            aria-pressed={group.states.every((state) => filter.states.includes(state))}
            onClick={() => setQuery({ state: toggleGroup(filter.states, group).join(","), cursor: null })}
          >
            {group.label}
          </button>
        ))}
      </div>
      <Field name="agent" label="Agent" value={filter.agent} options={agents} />
      {may("operator") && <Field name="account" label="Account" value={filter.account} options={[]} />}
      <Field name="id" label="Id begins with" value={filter.id} options={[]} />
      <form className="field" onSubmit={open}>
        <label htmlFor="open-run">Open a run</label>
        <input id="open-run" ref={run} placeholder="its id" autoComplete="off" spellCheck={false} />
      </form>
    </div>
  );
}

function Field({ name, label, value, options }: { name: string; label: string; value: string; options: string[] }) {
  const { setQuery } = useLocation();
  const input = useRef<HTMLInputElement>(null);
  const apply = () => {
    const next = input.current?.value.trim() ?? "";
    if (next !== value) setQuery({ [name]: next, cursor: null });
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    apply();
  };
  return (
    <form className="field" onSubmit={submit}>
      <label htmlFor={`filter-${name}`}>{label}</label>
      <input
        key={value} id={`filter-${name}`} ref={input} defaultValue={value} placeholder="all" list={`options-${name}`}
        onBlur={apply} autoComplete="off" spellCheck={false}
      />
      <datalist id={`options-${name}`}>
        {options.map((option) => (
          <option key={option} value={option} />
        ))}
      </datalist>
    </form>
  );
}
