/**
 * Shows text that an agent, a model or a user of the API wrote. It becomes text nodes only: no HTML, no images, no Markdown.
 * Links do nothing until a person opens them and sees the host.
 */
import { Fragment, useMemo, useState } from "react";
import { formatBytes } from "../base/text/format";
import { findLinks } from "../base/text/links";
import { type Piece, findMarks } from "../base/text/marks";

/** Properties of a text. `form` is `block` for texts of several lines, and `inline` for names and ids. */
export interface AgentTextProps {
  text: string;
  form?: "block" | "inline";
  /** Bytes that the server left out at the end. */
  cutBytes?: number | undefined;
  /** Marks each invisible character, also those that belong to emoji and separate words: for texts that a person decides about. */
  isExact?: boolean;
  /** Characters that are shown before a person asks for more. */
  firstChars?: number;
}

const FIRST_CHARS = 20_000;
const MORE_CHARS = 200_000;
const INLINE_CHARS = 300;

/** Renders `text`. Of long texts the beginning is shown, and more on request. */
export function AgentText({ text, form = "block", cutBytes = 0, isExact = false, firstChars = FIRST_CHARS }: AgentTextProps) {
  const [limit, setLimit] = useState(form === "inline" ? INLINE_CHARS : firstChars);
  const shown = useMemo(() => cutAt(text, limit), [text, limit]);
  const hidden = text.length - shown.length;
  const body = <Pieces text={shown} hasLinks={form === "block"} isExact={isExact} />;
  if (form === "inline") {
    return (
      <bdi className="agent-text agent-text-inline">
        {body}
        {hidden > 0 && "…"}
      </bdi>
    );
  }
  return (
    <div className="agent-text agent-text-block" dir="auto">
      {body}
      {hidden > 0 && (
        <button type="button" className="more" onClick={() => setLimit(limit + MORE_CHARS)}>
          Show more: {hidden.toLocaleString("en")} characters follow
        </button>
      )}
      {cutBytes > 0 && <p className="cut">{formatBytes(cutBytes)} more were not stored.</p>}
    </div>
  );
}

/** Returns at most `limit` units of `text`, without half of a character at the end. */
export function cutAt(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const last = text.charCodeAt(limit - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit);
}

function Pieces({ text, hasLinks, isExact }: { text: string; hasLinks: boolean; isExact: boolean }) {
  const pieces = useMemo(() => findMarks(text, isExact), [text, isExact]);
  return pieces.map((piece, index) => <PieceView key={index} piece={piece} hasLinks={hasLinks} />);
}

function PieceView({ piece, hasLinks }: { piece: Piece; hasLinks: boolean }) {
  if (piece.kind === "mark") {
    return (
      <span className="mark" title={piece.title}>
        {piece.label}
      </span>
    );
  }
  if (!hasLinks) return piece.text;
  return findLinks(piece.text).map((part, index) =>
    part.kind === "text" ? <Fragment key={index}>{part.text}</Fragment> : <InertLink key={index} {...part} />,
  );
}

function InertLink({ text, href, host }: { text: string; href: string; host: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <span className="inert-link">{text}</span>
      {isOpen ? (
        <a className="open-link" href={href} target="_blank" rel="noopener noreferrer nofollow">
          go to {host}
        </a>
      ) : (
        <button type="button" className="open-link" onClick={() => setOpen(true)} aria-label={`open the link to ${host}`}>
          open
        </button>
      )}
    </>
  );
}
