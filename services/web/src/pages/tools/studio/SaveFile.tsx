/** Asks before a file is saved or emptied. What is stored is read anew, so that changes of others are seen. */
import { useMemo } from "react";
import { api } from "../../../api/client";
import { useLoad } from "../../../api/useLoad";
import { announce } from "../../../base/announce";
import { compareLines } from "../../../base/text/lines";
import { Confirm } from "../../../components/Dialog";
import { DiffLines } from "../../../components/DiffLines";
import { LoadNote } from "../../../components/LoadNote";
import type { GatewayAgent } from "./agents";
import { type FileName, storedRevision, storedText } from "./files";

/** Properties: the file, and what gets the changed agent with the text that is stored now. */
export interface FileDialogProps {
  path: { gateway: string; agent: string };
  name: FileName;
  onSaved: (agent: GatewayAgent, text: string) => void;
  onClose: () => void;
}

const FILE = "/api/v1/gateways/{gateway}/agents/{agent}/files/{file}";

/** Shows what saving `text` changes. */
export function SaveFile({ path, name, text, onSaved, onClose }: FileDialogProps & { text: string }) {
  const files = useLoad("stored", (signal) => api.get("/api/v1/gateways/{gateway}/agents/{agent}/files", { path, signal }));
  const stored = files.data === null ? null : storedText(files.data.files, name);
  const lines = useMemo(() => (stored === null ? [] : compareLines(stored, text)), [stored, text]);
  const save = async () => {
    const revision = storedRevision(files.data?.files ?? [], name);
    try {
      onSaved(await api.put(FILE, { path: { ...path, file: name }, body: { content: text, revision } }), text);
    } catch (error) {
      // Someone else may have saved since: what is stored now is shown, and the person decides again.
      files.reload();
      throw error;
    }
    announce(`${name} was saved. The gateway is given it now.`);
  };
  return (
    <Confirm title={`Save ${name}`} action="Save" isReady={stored !== null} onConfirm={save} onClose={onClose}>
      <LoadNote loaded={files} rows={4} />
      {stored !== null && lines.length === 0 && <p>The file has this text already.</p>}
      {lines.length > 0 && (
        <div className="studio-diff" role="group" aria-label="What changes" tabIndex={0}><DiffLines lines={lines} /></div>
      )}
    </Confirm>
  );
}

/** Asks before the file is emptied. */
export function EmptyFile({ path, name, onSaved, onClose }: FileDialogProps) {
  const empty = async () => {
    onSaved(await api.delete(FILE, { path: { ...path, file: name } }), "");
    announce(`${name} was emptied.`);
  };
  return (
    <Confirm title={`Empty ${name}`} action="Empty" tone="danger" onConfirm={empty} onClose={onClose}>
      <p>The text is removed here and at the gateway. Nothing keeps it.</p>
    </Confirm>
  );
}
