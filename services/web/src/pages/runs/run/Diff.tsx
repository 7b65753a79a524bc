/** Files that a run changed, with the differences in git's format. */
import { useMemo } from "react";
import { type Schemas, api } from "../../../api/client";
import { useLoad } from "../../../api/useLoad";
import { readDiff } from "../../../base/text/diff";
import { formatCount } from "../../../base/text/format";
import { AgentText } from "../../../components/AgentText";
import { EmptyState, ErrorNote, Skeleton } from "../../../components/Notes";
import { Table } from "../../../components/Table";
import { VirtualList } from "../../../components/VirtualList";

const LINE_PX = 20;
const LINE_CHARS = 1_000;
const FEW = 10;
const MAX_LISTED = 500;

/** Loads and renders the differences of the run with the id `runId`. */
export function Diff({ runId }: { runId: string }) {
  const loaded = useLoad(runId, (signal) => api.get("/api/v1/runs/{run}/diff", { path: { run: runId }, signal }));
  const lines = useMemo(() => numbered(loaded.data?.diff ?? ""), [loaded.data]);
  if (loaded.data === null) {
    if (loaded.error === null) return <Skeleton rows={6} />;
    if (loaded.error.code === "no_files") {
      return <EmptyState title="No files are kept"><AgentText text={loaded.error.message} form="inline" /></EmptyState>;
    }
    return <ErrorNote error={loaded.error} onRetry={loaded.reload} />;
  }
  const { files } = loaded.data;
  const others = leftOut(loaded.data);
  if (files.length === 0) {
    if (others.length === 0) return <EmptyState title="The run changed no file" />;
    return (
      <>
        <p className="hint">The run changed no other file.</p>
        <LeftOut lists={others} />
      </>
    );
  }
  return (
    <>
      <LeftOut lists={others} />
      <Table
        label="Changed files" rows={files} keyOf={(file) => pathText(file.path)}
        columns={[
          { id: "path", label: "File", isWide: true, cell: (file) => <AgentText text={pathText(file.path)} form="inline" /> },
          { id: "change", label: "Change", cell: (file) => <AgentText text={file.change.replaceAll("_", " ")} form="inline" /> },
          { id: "added", label: "Added", isNumeric: true, cell: (file) => (file.insertions === undefined ? "–" : `+${file.insertions}`) },
          { id: "removed", label: "Removed", isNumeric: true, cell: (file) => (file.deletions === undefined ? "–" : `−${file.deletions}`) },
        ]}
      />
      <VirtualList
        label="Differences" items={lines} keyOf={(line) => String(line.number)} estimate={LINE_PX}
        render={(line) => (
          <div className={`diff-line diff-${line.kind}`}>
            <AgentText text={line.text} firstChars={LINE_CHARS} />
          </div>
        )}
      />
    </>
  );
}

function numbered(diff: string) {
  return readDiff(diff).map((line, number) => ({ ...line, number }));
}

function LeftOut({ lists }: { lists: LeftOutList[] }) {
  return lists.map(({ title, entries }) => (
    <details key={title} className="panel" open={entries.length <= FEW}>
      <summary>{title}: {formatCount(entries.length)}</summary>
      <ul>
        {entries.slice(0, MAX_LISTED).map((entry, index) => <li key={index}><AgentText text={entry} form="inline" /></li>)}
      </ul>
      {entries.length > MAX_LISTED && <p className="hint">{formatCount(entries.length - MAX_LISTED)} more are not listed here.</p>}
    </details>
  ));
}

/** List of entries that the differences do not have. */
export interface LeftOutList {
  title: string;
  entries: string[];
}

/** Returns what the differences do not have: entries that cannot be read, and those that are not looked into. */
export function leftOut({ hidden, unreadable }: Pick<Schemas["RunDiff"], "hidden" | "unreadable">): LeftOutList[] {
  const lists = [
    { title: "Not known what the run did to", entries: unreadable.map(({ path, reason }) => `${pathText(path)} ${reason}`) },
    { title: "Directories of git, which are not compared", entries: hidden.gitDirs.map(pathText) },
    { title: "New files that the run’s ignore rules name, which are not compared", entries: hidden.ignored.map(pathText) },
  ];
  return lists.filter(({ entries }) => entries.length > 0);
}

/** Returns a path as text. A path that is not UTF-8 is a list of bytes, which are shown escaped. */
export function pathText(path: Schemas["FilePath"]): string {
  if (typeof path === "string") return path;
  const escaped = (byte: number) => `\\x${byte.toString(16).padStart(2, "0")}`;
  return path.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : escaped(byte))).join("");
}
