/** Fields for the name of an agent, and for the text from which its picture is drawn. */
import { type ReactNode, useId } from "react";
import { Avatar, randomSeed } from "../../../components/Avatar";

const MAX_CHARS = 64;

/** Properties: `mistake` says what is wrong with the name, and is empty for an empty one; `children` stand below the field. */
export interface NameFieldProps {
  name: string;
  mistake: string | null;
  onChange: (name: string) => void;
  children?: ReactNode;
}

/** Renders the field of the name. */
export function NameField({ name, mistake, onChange, children }: NameFieldProps) {
  const id = useId();
  const isWrong = mistake !== null && mistake !== "";
  return (
    <div className="field">
      <label htmlFor={id}>Name</label>
      <input
        id={id} value={name} autoComplete="off" placeholder="Research Bot" required onChange={(event) => onChange(event.target.value)}
        aria-invalid={isWrong} aria-describedby={`${id}-note`}
      />
      <div id={`${id}-note`} className={isWrong ? "hint field-error" : "hint"} aria-live="polite">{isWrong ? mistake : children}</div>
    </div>
  );
}

/** Properties: without a text of its own, the picture is that of the name. */
export interface AvatarFieldProps {
  avatar: string;
  name: string;
  onChange: (avatar: string) => void;
}

/** Renders the field of the picture, with the picture. */
export function AvatarField({ avatar, name, onChange }: AvatarFieldProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>Avatar</label>
      <div className="studio-avatar">
        <Avatar seed={avatar.trim() === "" ? name.trim() : avatar.trim()} />
        <input
          id={id} className="grow" value={avatar} autoComplete="off" spellCheck={false} maxLength={MAX_CHARS}
          placeholder="drawn from the name" onChange={(event) => onChange(event.target.value)}
        />
        <button type="button" onClick={() => onChange(randomSeed())}>Shuffle</button>
      </div>
      <div className="hint">Any text. The same text is the same picture.</div>
    </div>
  );
}
