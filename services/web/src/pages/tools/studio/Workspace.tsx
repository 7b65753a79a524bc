/** Files of an agent, one directory at a time. They are read here, and never written. */
import { useEffect, useMemo, useRef, useState } from "react";
import { type Schemas, api } from "../../../api/client";
import { type Loaded, useLoad } from "../../../api/useLoad";
import { Link, useLocation } from "../../../base/router";
import { formatBytes, plural } from "../../../base/text/format";
import { AgentText } from "../../../components/AgentText";
import { LoadNote } from "../../../components/LoadNote";
import { EmptyState } from "../../../components/Notes";
import { type Column, Table } from "../../../components/Table";
import type { GatewayAgent } from "./agents";
import {
  type Entry, type FilesOf, canOpen, crumbs, dirLink, directoriesFirst, fileAddress, kindOf, nameOf, parentOf, readDir,
} from "./workspace";

/** Rows that are shown before a person asks for all. */
const FIRST_ROWS = 500;

/** Properties: `gateway` is null while `isPending`, and if it could not be had. */
export interface WorkspaceProps {
  agent: GatewayAgent;
  gateway: Schemas["Gateway"] | null;
  isPending: boolean;
}

/** Loads and renders the directory of the address. */
export default function Workspace({ agent, gateway, isPending }: WorkspaceProps) {
  const { query } = useLocation();
  const [dir, of] = [readDir(query.get("dir")), query.get("session")];
  const isElsewhere = gateway !== null && !gateway.managed;
  const path = { gateway: agent.gateway, agent: agent.id };
  const key = `workspace ${path.gateway} ${path.agent} ${of ?? ""} ${dir}`;
  const loaded = useLoad(isPending || isElsewhere ? null : key, (signal) => {
    const place = { ...(dir === "" ? {} : { path: dir }), ...(of === null ? {} : { session: of }) };
    return api.get("/api/v1/gateways/{gateway}/agents/{agent}/workspace", { path, query: place, signal });
  });
  if (isElsewhere) {
    return <EmptyState title="Its files are on another host">The gateway runs there, and so do its agents.</EmptyState>;
  }
  return (
    <>
      <p className="hint">The agent writes these files. Here they can only be read.</p>
      <div className="bar-line">
        <Crumbs dir={dir} of={of} />
        <button type="button" onClick={loaded.reload} disabled={loaded.isLoading}>Read again</button>
      </div>
      {of !== null && <Link to={dirLink("", null)}>Show the agent’s own files</Link>}
      <Directory key={dir} {...{ agent, dir, of, loaded }} />
    </>
  );
}

/** Renders the way to `dir`. Its end gets the focus when another directory is opened: the link that opened it has gone. */
function Crumbs({ dir, of }: { dir: string; of: FilesOf }) {
  const end = useRef<HTMLSpanElement>(null);
  const last = useRef(dir);
  useEffect(() => {
    if (last.current !== dir) end.current?.focus();
    last.current = dir;
  }, [dir]);
  return (
    <nav aria-label="Directories">
      <ol className="studio-crumbs">
        {crumbs(dir, of).map((crumb) => {
          const name = <AgentText text={crumb.name} form="inline" />;
          if (crumb.dir !== dir) return <li key={crumb.dir}><Link to={dirLink(crumb.dir, of)}>{name}</Link></li>;
          return <li key={crumb.dir}><span ref={end} tabIndex={-1} aria-current="page">{name}</span></li>;
        })}
      </ol>
    </nav>
  );
}

interface DirectoryProps {
  agent: GatewayAgent;
  dir: string;
  of: FilesOf;
  loaded: Loaded<Schemas["GatewayAgentDirectory"]>;
}

function Directory({ agent, dir, of, loaded }: DirectoryProps) {
  const { data, error } = loaded;
  if (error?.status === 404) return <NoDirectory dir={dir} of={of} />;
  if (data === null) return <LoadNote loaded={loaded} />;
  return (
    <>
      <LoadNote loaded={loaded} />
      {data.entries.length === 0 && !data.isCut && <EmptyState title="The directory is empty" />}
      {data.entries.length > 0 && <Entries agent={agent} of={of} entries={data.entries} />}
      {data.isCut && <p className="note">The directory has more entries, which are not listed.</p>}
    </>
  );
}

function NoDirectory({ dir, of }: { dir: string; of: FilesOf }) {
  if (dir === "") {
    return (
      <EmptyState title="There are no files yet">
        {of === null ? "The gateway makes an agent’s directory once it knows the agent." : "The session works in its agent’s directory."}
      </EmptyState>
    );
  }
  return (
    <EmptyState title="There is no such directory">
      The agent may have removed it. <Link to={dirLink(parentOf(dir), of)}>Show the directory above it</Link>
    </EmptyState>
  );
}

function Entries({ agent, of, entries }: { agent: GatewayAgent; of: FilesOf; entries: Entry[] }) {
  const [isAll, setAll] = useState(false);
  const columns = useMemo(() => entryColumns(agent, of), [agent, of]);
  const sorted = useMemo(() => directoriesFirst(entries), [entries]);
  const hidden = isAll ? 0 : Math.max(0, sorted.length - FIRST_ROWS);
  return (
    <>
      <Table label="Files" columns={columns} rows={sorted.slice(0, sorted.length - hidden)} keyOf={(entry) => entry.path} />
      {hidden > 0 && <button type="button" onClick={() => setAll(true)}>Show {plural(hidden, "more row")}</button>}
    </>
  );
}

function entryColumns(agent: GatewayAgent, of: FilesOf): Column<Entry>[] {
  return [
    { id: "name", label: "Name", isWide: true, cell: (entry) => <Name {...{ agent, of, entry }} /> },
    { id: "kind", label: "Kind", cell: (entry) => <AgentText text={kindOf(entry)} form="inline" /> },
    {
      id: "size", label: "Size", isNumeric: true,
      cell: ({ size }) => (size === null ? <span className="none">–</span> : formatBytes(size)),
    },
  ];
}

function Name({ agent, of, entry }: { agent: GatewayAgent; of: FilesOf; entry: Entry }) {
  const name = <AgentText text={nameOf(entry)} form="inline" />;
  if (!canOpen(entry)) return name;
  if (entry.type === "directory") return <Link to={dirLink(entry.path, of)}>{name}</Link>;
  return <a href={fileAddress(agent, of, entry.path)} download>{name}</a>;
}
