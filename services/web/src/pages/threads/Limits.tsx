/** Shows what the account has left, and what helps once a limit is used up. */
import { useEffect, useRef } from "react";
import { api, encodePart } from "../../api/client";
import { useLoad } from "../../api/useLoad";
import { Link } from "../../base/router";
import { visibleText } from "../../base/text/marks";
import { AgentText } from "../../components/AgentText";
import { StateChip } from "../../components/StateChip";
import { limitLines } from "./limits";

const text = (words: string) => <AgentText text={words} form="inline" />;

const LOW = 0.1;
const SHOWN = 3;

/** Renders the nearest limits of `account`. They are read anew whenever `round` changes. */
export function Limits({ account, round }: { account: string; round: number }) {
  const { data, error, reload } = useLoad(`account ${account}`, (signal) =>
    api.get("/api/v1/accounts/{account}", { path: { account }, signal }));
  const first = useRef(round);
  useEffect(() => {
    if (first.current !== round) reload();
    first.current = round;
  }, [round, reload]);
  if (data === null && error === null) return null;
  if (data === null) return <p className="chat-limits"><span>Limits are not known now: {text(error?.message ?? "")}</span></p>;
  const lines = limitLines(data);
  if (lines.length === 0) return <p className="chat-limits"><span>Account {text(account)}: no limit</span></p>;
  return (
    <ul className="chat-limits" aria-label={visibleText(`Limits of account ${account}`)}>
      {lines.slice(0, SHOWN).map((line) => (
        <li key={line.id}>
          {line.label} <b className="num">{line.left}</b> of {line.allowed} left
          {line.share === 0 && <StateChip state="used up" tone="bad" />}
          {line.share > 0 && line.share < LOW && <StateChip state="nearly used up" tone="warn" />}
          {line.share === 0 && <span className="chat-limit-help">{text(line.help)}</span>}
        </li>
      ))}
      <li>
        <Link to={`/accounts/${encodePart(account)}`}>All limits</Link>
      </li>
    </ul>
  );
}
