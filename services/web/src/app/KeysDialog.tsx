/** Lists the shortcuts that hold on the shown page. */
import { useRegisteredShortcuts } from "../base/keys";
import { Dialog } from "../components/Dialog";

/** Shows the list. */
export default function KeysDialog({ onClose }: { onClose: () => void }) {
  const shortcuts = useRegisteredShortcuts();
  return (
    <Dialog title="Shortcuts" onClose={onClose}>
      <dl className="keys">
        {shortcuts.map((shortcut) => (
          <div key={`${shortcut.key}${shortcut.label}`}>
            <dt>
              <kbd>{shortcut.key}</kbd>
            </dt>
            <dd>{shortcut.label}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>Leave a field or a dialog</dd>
        </div>
      </dl>
    </Dialog>
  );
}
