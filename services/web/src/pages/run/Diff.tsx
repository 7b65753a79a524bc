/** Files that a run changed, with the differences in git's format. */
import { useMemo } from "react";
import { type Schemas, api } from "../../api/client";
import { useLoad } from "../../api/useLoad";
import { AgentText } from "../../components/agent-text/AgentText";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Skeleton } from "../../components/Skeleton";
import { Table } from "../../components/Table";
import { VirtualList } from "../../components/VirtualList";

const LINE_PX = 20;
const LINE_CHARS = 1_000;

/** Loads and renders the differences of the run with the id `runId`. */
export function Diff({ runId }: { runId: string }) {
  const loaded = useLoad(runId, (signal) => api.get("/api/v1/runs/{run}/diff", { path: { run: runId }, signal }));
  const lines = useMemo(() => toLines(loaded.data?.diff ?? ""), [loaded.data]);
  if (loaded.data === null) {
    if (loaded.error === null) return <Skeleton rows={6} />;
    if (loaded.error.code === "no_files") {
      return <EmptyState title="No files are kept"><AgentText text={loaded.error.message} form="inline" /></EmptyState>;
    }
    return <ErrorNote error={loaded.error} onRetry={loaded.reload} />;
  }
  const { files } = loaded.data;
  if (files.length === 0) return <EmptyState title="The run changed no file" />;
  return (
    <>
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

interface DiffLine {
  number: number;
  kind: "head" | "hunk" | "added" | "removed" | "same";
  text: string;
}

function toLines(diff: string): DiffLine[] {
  return diff.split("\n").map((text, number) => ({ number, text, kind: kindOf(text) }));
}

function kindOf(line: string): DiffLine["kind"] {
  if (/^(diff |index |--- |\+\+\+ |new |deleted |old |similarity |rename )/.test(line)) return "head";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "same";
}

/** Returns a path as text. A path that is not UTF-8 is a list of bytes, which are shown escaped. */
export function pathText(path: Schemas["FilePath"]): string {
  if (typeof path === "string") return path;
  const escaped = (byte: number) => `\\x${byte.toString(16).padStart(2, "0")}`;
  return path.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : escaped(byte))).join("");
}
