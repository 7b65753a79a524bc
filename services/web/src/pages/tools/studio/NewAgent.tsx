/** Makes an agent in a gateway. The id that it gets is shown before it is made. */
import { useState } from "react";
import { api } from "../../../api/client";
import { toApiError } from "../../../api/problem";
import { announce } from "../../../base/announce";
import { Link } from "../../../base/router";
import { randomSeed } from "../../../components/Avatar";
import { Confirm } from "../../../components/Dialog";
import { AvatarField, NameField } from "./NameFields";
import { type GatewayAgent, nameMistake, pagePath, slugOf } from "./agents";

/** Properties: `onDone` gets the agent that was made. */
export interface NewAgentProps {
  gateway: string;
  onDone: (agent: GatewayAgent) => void;
  onClose: () => void;
}

/** Renders the form. */
export default function NewAgent({ gateway, onDone, onClose }: NewAgentProps) {
  const [name, setName] = useState("");
  const [avatar, setAvatar] = useState(randomSeed);
  const [taken, setTaken] = useState<string | null>(null);
  const id = slugOf(name);
  const mistake = nameMistake(name);
  const create = async () => {
    setTaken(null);
    const seed = avatar.trim();
    const body = { name: name.trim(), ...(seed === "" ? {} : { avatar: seed }) };
    try {
      const made = await api.post("/api/v1/gateways/{gateway}/agents", { path: { gateway }, body });
      announce(`${made.name} was made.`);
      onDone(made);
    } catch (thrown) {
      const { code } = toApiError(thrown);
      if (code === "gateway_agent_exists" || code === "gateway_agent_fixed") setTaken(id);
      throw thrown;
    }
  };
  return (
    <Confirm title="New agent" action="Make the agent" isReady={mistake === null} onConfirm={create} onClose={onClose}>
      <p className="hint">It may run commands, reach the web and use files, as far as the policy of its gateway allows.</p>
      <NameField name={name} mistake={mistake} onChange={setName}>
        {id !== "" && <>Its id will be <code>{id}</code>. The id does not change later.</>}
      </NameField>
      <AvatarField avatar={avatar} name={name} onChange={setAvatar} />
      {taken !== null && (
        <p className="note" role="status">
          The gateway has an agent with the id <code>{taken}</code>: <Link to={pagePath(gateway, taken)}>show it</Link>, or choose
          another name.
        </p>
      )}
    </Confirm>
  );
}
