/** One choice among a few, each with what it means. */
import { type ReactNode, useId } from "react";

/** Properties: an option has its value, its label and its meaning; `children` stand below the options. */
export interface ChoiceProps<T extends string> {
  legend: string;
  options: readonly (readonly [T, string, string])[];
  value: T;
  onChange: (value: T) => void;
  children?: ReactNode;
}

/** Renders the choice as radio buttons. */
export function Choice<T extends string>({ legend, options, value, onChange, children }: ChoiceProps<T>) {
  const name = useId();
  return (
    <fieldset className="choice">
      <legend>{legend}</legend>
      {options.map(([id, label, meaning]) => (
        <label key={id}>
          <input type="radio" name={name} value={id} checked={id === value} onChange={() => onChange(id)} />
          {label}: <span className="muted">{meaning}</span>
        </label>
      ))}
      {children}
    </fieldset>
  );
}
