/** Asks for a typed confirmation before calls are frozen or thawed. */
import { announce } from "../../base/announce";
import { AgentText } from "../../components/AgentText";
import { Confirm } from "../../components/Dialog";
import { type FreezeAction, changeFreeze, nameTarget, wordFor } from "./changeFreeze";
import type { FreezeChange } from "./FreezeNote";
import type { Freeze } from "./freezes";

/** Properties: `onDone` gets what was done. */
export interface FreezeConfirmProps {
  action: FreezeAction;
  target: Freeze;
  onDone: (change: FreezeChange) => void;
  onClose: () => void;
}

/** Renders the question. */
export default function FreezeConfirm({ action, target, onDone, onClose }: FreezeConfirmProps) {
  const confirm = async () => {
    const change = await changeFreeze(action, target);
    announce(change.text);
    onDone(change);
  };
  const verb = action === "freeze" ? "Freeze" : "Thaw";
  return (
    <Confirm
      title={`${verb} ${target.kind === "all" ? "all calls" : `this ${target.kind}`}`} action={verb}
      tone={action === "freeze" ? "danger" : "normal"} typed={wordFor(action, target)} onConfirm={confirm} onClose={onClose}
    >
      <p>
        {action === "freeze" ? "Refuses new " : "Allows again "}
        <AgentText text={nameTarget(target)} form="inline" />
        {action === "freeze" ? ", and cuts those in flight, at once. It holds until it is thawed." : "."}
      </p>
    </Confirm>
  );
}
