/** Filters of the list. They are kept in the address, so a filtered list can be sent to others. */
import { type FormEvent, type RefObject, useEffect, useRef } from "react";
import { useShortcuts } from "../../../base/keys";
import { useLocation } from "../../../base/router";
import { useSession } from "../../../base/session";
import { type RunFilter, STATE_GROUPS, toggleGroup } from "./filter";

/** Renders the filters. `agents` are offered while a person types. */
export function Filters({ filter, agents }: { filter: RunFilter; agents: string[] }) {
  const { setQuery } = useLocation();
  const { may } = useSession();
  const id = useRef<HTMLInputElement>(null);
  useShortcuts([{ key: "/", label: "Find runs by the beginning of their id", run: () => id.current?.focus() }]);
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
      {may("operator") && <Field name="account" label="Account" value={filter.account} />}
      <Field name="id" label="Run id" value={filter.id} hint="begins with" input={id} />
    </div>
  );
}

interface FieldProps {
  name: string;
  label: string;
  value: string;
  hint?: string;
  options?: string[];
  input?: RefObject<HTMLInputElement | null>;
}

function Field({ name, label, value, hint = "all", options = [], input }: FieldProps) {
  const { setQuery } = useLocation();
  const own = useRef<HTMLInputElement>(null);
  const field = input ?? own;
  // The address can change without this field. A new field instead would lose the focus.
  useEffect(() => {
    if (field.current !== null) field.current.value = value;
  }, [field, value]);
  const apply = () => {
    const next = field.current?.value.trim() ?? "";
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
        id={`filter-${name}`} ref={field} defaultValue={value} placeholder={hint} list={`options-${name}`}
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
