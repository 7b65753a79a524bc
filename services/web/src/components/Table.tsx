/** Table with aligned columns. Below 640 px each row becomes a card with the names of its columns. */
import { type KeyboardEvent, type MouseEvent, type ReactNode, useRef } from "react";
import { useShortcuts } from "../base/keys";

/** Column: its name, its cell, and whether it holds numbers. */
export interface Column<T> {
  id: string;
  label: string;
  cell: (row: T) => ReactNode;
  isNumeric?: boolean;
  /** Takes the whole width of a card, there without the name of its column unless it is `labelled`. */
  isWide?: boolean | "labelled";
}

/** Properties: rows keep their focus by `keyOf`, also when others are added above. */
export interface TableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string;
  /** Opens a row by Enter, or by a click beside its links. Rows can then be walked by j and k. */
  onOpen?: (row: T) => void;
}

/** Renders the table. */
export function Table<T>({ label, columns, rows, keyOf, onOpen }: TableProps<T>) {
  const body = useRef<HTMLTableSectionElement>(null);
  return (
    <div className="table-scroll">
      {onOpen !== undefined && <RowKeys body={body} />}
      <table aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.id} scope="col" className={column.isNumeric === true ? "num" : undefined}>
                {column.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((row) => (
            <Row key={keyOf(row)} row={row} columns={columns} {...(onOpen === undefined ? {} : { onOpen })} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row<T>({ row, columns, onOpen }: { row: T; columns: Column<T>[]; onOpen?: (row: T) => void }) {
  const open = (event: KeyboardEvent) => {
    if (event.key === "Enter" && event.target === event.currentTarget) onOpen?.(row);
  };
  const click = (event: MouseEvent) => {
    const isControl = event.target instanceof Element && event.target.closest("a, button, input, select, summary") !== null;
    // A text that a person marks is not a click.
    if (!isControl && window.getSelection()?.isCollapsed !== false) onOpen?.(row);
  };
  const isRow = onOpen !== undefined;
  return (
    <tr tabIndex={isRow ? 0 : undefined} className={isRow ? "row-open" : undefined} onKeyDown={open} onClick={isRow ? click : undefined}>
      {columns.map((column) => (
        <td key={column.id} data-label={column.label} className={classOf(column)}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
}

function classOf<T>({ isNumeric, isWide }: Column<T>): string | undefined {
  const wide = isWide === "labelled" ? ["wide", "labelled"] : isWide === true ? ["wide"] : [];
  const names = [...(isNumeric === true ? ["num"] : []), ...wide];
  return names.length > 0 ? names.join(" ") : undefined;
}

function RowKeys({ body }: { body: React.RefObject<HTMLTableSectionElement | null> }) {
  const move = (step: number) => {
    const rows = [...(body.current?.children ?? [])] as HTMLElement[];
    const at = rows.findIndex((row) => row.contains(document.activeElement));
    const next = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + step))];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  useShortcuts([
    { key: "j", label: "Next row", run: () => move(1) },
    { key: "k", label: "Row before", run: () => move(-1) },
    { key: "Enter", label: "Open the row", run: () => undefined },
  ]);
  return null;
}
