/** Says how the loading of a page's data stands: grey rows at first, and a failure with the age of what is shown. */
import type { ReactNode } from "react";
import type { Loaded } from "../api/useLoad";
import { ErrorNote } from "./ErrorNote";
import { Skeleton } from "./Skeleton";

/** Properties: `rows` is the number of grey rows; `children` go into the note of a failure. */
export interface LoadNoteProps {
  loaded: Loaded<unknown>;
  rows?: number;
  children?: ReactNode;
}

/** Renders nothing if the data is there and current. */
export function LoadNote({ loaded: { data, error, staleSince, reload }, rows = 6, children }: LoadNoteProps) {
  if (error === null) return data === null ? <Skeleton rows={rows} /> : null;
  return (
    <ErrorNote error={error} staleSince={data === null ? null : staleSince} onRetry={reload}>
      {children}
    </ErrorNote>
  );
}
