/** Sign-in: by a token, which leaves the field with the request, or by the code of a one-time link. */
import { type FormEvent, useEffect, useRef, useState } from "react";
import { ApiError, toApiError } from "../../../api/problem";
import { useLocation } from "../../../base/router";
import { type SessionState, useSession } from "../../../base/session";
import { ErrorNote } from "../../../components/Notes";

interface SignInProps {
  linkCode: string | null;
  /** Is called once the link was used or declined. */
  onLinkDone: () => void;
  /** Says whether a session has just ended. */
  reason: "none" | "ended";
}

/** Shows the sign-in. */
export default function SignIn({ linkCode, onLinkDone, reason }: SignInProps) {
  const { state, signIn, signInByLink } = useSession();
  const { path, navigate } = useLocation();
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const used = useRef(false);
  // As it was when the page was opened: the session that the link begins replaces nothing.
  const [replaced, setReplaced] = useState(() => replacedBy(linkCode, state));
  const begin = async (session: Promise<void>) => {
    setBusy(true);
    setError(null);
    try {
      await session;
      onLinkDone();
      if (path === "/signin") navigate("/", "replace");
    } catch (thrown) {
      setError(toApiError(thrown));
      setBusy(false);
    }
  };
  useEffect(() => {
    if (linkCode === null || replaced !== null || used.current) return;
    used.current = true;
    void begin(signInByLink(linkCode));
  });
  const isKnown = state.kind === "signedIn" && state.session.principal !== null;
  useEffect(() => {
    if (isKnown && linkCode === null) navigate("/", "replace");
  }, [isKnown, linkCode, navigate]);
  if (replaced !== null) {
    const stay = () => {
      onLinkDone();
      navigate("/", "replace");
    };
    return <LinkQuestion principal={replaced} onUse={() => setReplaced(null)} onStay={stay} />;
  }
  return (
    <main className="alone signin">
      <div className="brand">
        <span className="brand-gate" aria-hidden="true" />
        Sluicegate
      </div>
      <h1>Sign in</h1>
      {reason === "ended" && <p className="note">Your session has ended. Sign in to go on where you were.</p>}
      <TokenForm isBusy={isBusy} hasFailed={error !== null} onToken={(token) => void begin(signIn(token))} />
      {error !== null && <ErrorNote error={explain(error)} title="That did not let you in" />}
      <p className="hint">
        <code>sluice principals add NAME --account ACCOUNT</code> prints a token once. It is sent once, and kept nowhere in this
        browser.
      </p>
    </main>
  );
}

interface TokenFormProps {
  isBusy: boolean;
  hasFailed: boolean;
  onToken: (token: string) => void;
}

function TokenForm({ isBusy, hasFailed, onToken }: TokenFormProps) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (hasFailed && !isBusy) field.current?.focus();
  }, [hasFailed, isBusy]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const token = field.current?.value.trim() ?? "";
    // The field does not keep the token while the request is under way.
    if (field.current !== null) field.current.value = "";
    if (token !== "") onToken(token);
  };
  return (
    <form onSubmit={submit} autoComplete="off">
      <label htmlFor="token">Token of a principal</label>
      <input id="token" ref={field} type="password" autoComplete="off" spellCheck={false} autoFocus disabled={isBusy} />
      <button type="submit" className="primary" disabled={isBusy}>
        {isBusy ? "Signing in …" : "Sign in"}
      </button>
    </form>
  );
}

/** Says what a person at this page can do; the API speaks to programs. */
function explain(error: ApiError): ApiError {
  const { status, code } = error;
  if (code === "unauthenticated") {
    const detail = "This token is not valid: it is mistyped, or it was replaced or revoked.";
    return new ApiError({ status, code, detail, help: "`sluice principals rotate NAME` prints another one" });
  }
  if (code === "link_invalid") {
    const detail = "This link does not work any more: each works once, and for two minutes.";
    return new ApiError({ status, code, detail, help: "`sluice dashboard` prints another one" });
  }
  return error;
}

/** Returns the principal whose session the link would replace; null if it replaces none. */
export function replacedBy(linkCode: string | null, state: SessionState): string | null {
  if (linkCode === null || state.kind !== "signedIn") return null;
  return state.session.principal;
}

/**
 * Asks whether the link shall replace the session of `principal`. A page elsewhere can open a link of its own principal: without
 * the question a person would go on as that one, and give its account what they enter.
 */
export function LinkQuestion({ principal, onUse, onStay }: { principal: string; onUse: () => void; onStay: () => void }) {
  return (
    <main className="alone signin">
      <h1>Sign in by this link?</h1>
      <p>
        You are signed in as <strong>{principal}</strong>. The link signs you in anew, perhaps as another principal. Use it only if you
        have got it from <code>sluice dashboard</code> yourself.
      </p>
      <button type="button" className="primary" autoFocus onClick={onStay}>Stay signed in as {principal}</button>{" "}
      <button type="button" onClick={onUse}>Use the link</button>
    </main>
  );
}
