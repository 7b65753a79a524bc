/** Commands that an agent runs without asking. Each is one text and no other; a person takes it back here. */
import { visibleText } from "../../../base/text/marks";
import { AgentText } from "../../../components/AgentText";

const LABEL_CHARS = 80;

/** Properties: `isUsed` is true if the agent asks about commands, and false if the list does not matter. */
export interface AllowedCommandsProps {
  commands: string[];
  isUsed: boolean;
  canForbid: boolean;
  onChange: (commands: string[]) => void;
}

/** Renders the list. */
export function AllowedCommands({ commands, isUsed, canForbid, onChange }: AllowedCommandsProps) {
  return (
    <section className="stack" aria-label="Allowed commands">
      <h2>Allowed commands</h2>
      {commands.length === 0 ? (
        <p className="muted">None. To approve a command always, as a card of Approvals offers it, adds it here.</p>
      ) : (
        <ul className="studio-commands">
          {commands.map((command) => (
            <li key={command}>
              <AgentText text={command} isExact firstChars={Number.POSITIVE_INFINITY} />
              {canForbid && (
                <button
                  type="button" className="danger" aria-label={`Forbid ${visibleText(command.slice(0, LABEL_CHARS))}`}
                  onClick={() => onChange(commands.filter((other) => other !== command))}
                >
                  Forbid
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      {commands.length > 0 && !isUsed && <p className="hint">They count only while Commands is Ask.</p>}
    </section>
  );
}
