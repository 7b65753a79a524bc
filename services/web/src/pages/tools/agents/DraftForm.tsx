/** Fields of a draft. */
import { useId } from "react";
import { FixText } from "../../../components/FixText";
import { AGENT_ID, type DraftFields } from "./draft-fields";

/** Properties of the fields. */
export interface DraftFormProps {
  fields: DraftFields;
  /** Lines of the other settings that cannot be read. */
  mistakes: string[];
  onChange: (fields: DraftFields) => void;
}

type Text = Exclude<keyof DraftFields, "argv" | "prompt" | "others" | "protocol">;
/** Field of one line: its label, an example, and what the browser checks. */
type TextField = { name: Text; label: string; example: string; pattern?: string; title?: string; isRequired?: boolean };

const FIRST: TextField[] = [
  {
    name: "agentId", label: "Id, required", example: "team:reviewer", isRequired: true, pattern: AGENT_ID,
    title: "Small letters, digits and -, with one colon: team:reviewer",
  },
  { name: "image", label: "Image, required", example: "reviewer:1", isRequired: true },
  { name: "name", label: "Name for people", example: "Reviewer" },
  { name: "description", label: "Description", example: "Reviews a change" },
];
const LATER: TextField[] = [
  { name: "model", label: "Model that it asks", example: "the default model" },
  { name: "models", label: "Models it may ask", example: "any; divided by commas" },
  { name: "runTimeout", label: "Longest run", example: "10m" },
  {
    name: "totalTokens", label: "Most tokens of a run", example: "no limit", pattern: "[0-9][0-9,_ ]*",
    title: "A whole number, such as 200,000",
  },
  { name: "cost", label: "Most dollars of a run", example: "0.50" },
];

/** Renders the fields. Two are required, and the others have defaults. */
export function DraftForm({ fields, mistakes, onChange }: DraftFormProps) {
  const set = (name: keyof DraftFields) => (value: string) => onChange({ ...fields, [name]: value });
  const inputs = (group: TextField[]) =>
    group.map((field) => <Input key={field.name} field={field} value={fields[field.name]} onChange={set(field.name)} />);
  return (
    <div className="form-grid">
      {inputs(FIRST)}
      <Lines
        label="Command, one argument a line" value={fields.argv} example={"/usr/bin/review\n--model={model}"} onChange={set("argv")}
      />
      <label className="field">
        <span>Protocol of its output</span>
        <select value={fields.protocol} onChange={(event) => set("protocol")(event.target.value)}>
          <option value="">the default</option>
          <option value="text">text: its output is the answer</option>
          <option value="envelope">envelope: one object at its end</option>
          <option value="events">events: one object a line</option>
        </select>
      </label>
      {inputs(LATER)}
      <Lines
        label="Instructions, which come before each conversation" value={fields.prompt} example="Review the change …"
        onChange={set("prompt")}
      />
      <Lines
        label="Other settings, one a line" value={fields.others} example={'host_tools = ["core__get_current_time"]\nmemory = "1 GiB"'}
        onChange={set("others")} mistakes={mistakes}
      />
    </div>
  );
}

function Input({ field, value, onChange }: { field: TextField; value: string; onChange: (value: string) => void }) {
  return (
    <label className="field">
      <span>{field.label}</span>
      <input
        value={value} placeholder={field.example} required={field.isRequired === true} pattern={field.pattern} title={field.title}
        autoComplete="off" spellCheck={field.name === "description"} onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}

interface LinesProps {
  label: string;
  value: string;
  example: string;
  onChange: (value: string) => void;
  mistakes?: string[];
}

function Lines({ label, value, example, onChange, mistakes = [] }: LinesProps) {
  const id = useId();
  return (
    <div className="field field-wide">
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id} rows={3} value={value} placeholder={example} spellCheck={false} className="mono"
        aria-invalid={mistakes.length > 0} aria-describedby={`${id}-mistakes`} onChange={(event) => onChange(event.target.value)}
      />
      <div id={`${id}-mistakes`} className="field-error" aria-live="polite">
        {mistakes.map((mistake, index) => <p key={index}><FixText text={mistake} /></p>)}
      </div>
    </div>
  );
}
