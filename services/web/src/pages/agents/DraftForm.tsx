/** Fields of a draft. */
import { AGENT_ID, type DraftFields } from "./draft-fields";

/** Properties of the fields. */
export interface DraftFormProps {
  fields: DraftFields;
  onChange: (fields: DraftFields) => void;
}

type Text = Exclude<keyof DraftFields, "argv" | "protocol">;

/** Renders the fields. Two are required, and the others have defaults. */
export function DraftForm({ fields, onChange }: DraftFormProps) {
  const set = (name: keyof DraftFields) => (value: string) => onChange({ ...fields, [name]: value });
  const text = (name: Text, label: string, placeholder: string) => (
    <label className="field">
      <span>{label}</span>
      <input
        value={fields[name]} placeholder={placeholder} autoComplete="off" spellCheck={name === "description"}
        onChange={(event) => set(name)(event.target.value)}
      />
    </label>
  );
  return (
    <div className="form-grid">
      <label className="field">
        <span>Id, required</span>
        <input
          value={fields.agentId} required pattern={AGENT_ID} title="Small letters, digits and -, with one colon: team:reviewer"
          placeholder="team:reviewer" autoComplete="off" spellCheck={false} className="mono"
          onChange={(event) => set("agentId")(event.target.value)}
        />
      </label>
      <label className="field">
        <span>Image, required</span>
        <input
          value={fields.image} required placeholder="reviewer:1" autoComplete="off" spellCheck={false} className="mono"
          onChange={(event) => set("image")(event.target.value)}
        />
      </label>
      {text("name", "Name for people", "Reviewer")}
      {text("description", "Description", "Reviews a change")}
      <label className="field field-wide">
        <span>Command, one argument a line</span>
        <textarea
          rows={3} value={fields.argv} placeholder={"/usr/bin/review\n--model={model}"} spellCheck={false} className="mono"
          onChange={(event) => set("argv")(event.target.value)}
        />
      </label>
      <label className="field">
        <span>Protocol of its output</span>
        <select value={fields.protocol} onChange={(event) => set("protocol")(event.target.value)}>
          <option value="">the default</option>
          <option value="text">text: its output is the answer</option>
          <option value="envelope">envelope: one object at its end</option>
          <option value="events">events: one object a line</option>
        </select>
      </label>
      {text("model", "Model that it asks", "the default model")}
      {text("models", "Models it may ask", "any; divided by commas")}
      {text("runTimeout", "Longest run", "10m")}
      <label className="field">
        <span>Most tokens of a run</span>
        <input
          value={fields.totalTokens} inputMode="numeric" pattern="[0-9][0-9,_ ]*" title="A whole number, such as 200,000"
          placeholder="no limit" autoComplete="off" onChange={(event) => set("totalTokens")(event.target.value)}
        />
      </label>
      {text("cost", "Most dollars of a run", "0.50")}
    </div>
  );
}
