/** List of accounts, the nearest to a limit first, and what is frozen. */
import { Suspense, lazy, useMemo } from "react";
import { type Schemas, api, encodePart } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { useLoad } from "../../../api/useLoad";
import { usePoll } from "../../../api/usePoll";
import { useShortcuts } from "../../../base/keys";
import { useLocation } from "../../../base/router";
import { useSession } from "../../../base/session";
import { formatCount, formatDollars } from "../../../base/text/format";
import { LoadNote } from "../../../components/LoadNote";
import { EmptyState, Skeleton } from "../../../components/Notes";
import { AccountLink } from "../../../components/ObjectLink";
import { type Column, Table } from "../../../components/Table";
import { type Freeze, FreezeChips, freezesOf } from "../freezes";
import { type LimitRow, formatShare, nearestLimit, nearestShare, nearnessOf } from "../limits";
import { UseBar } from "../UseBar";
import "../accounts.css";

const FreezePanel = lazy(() => import("../FreezePanel"));

type Account = Schemas["Account"] & { share: number; freezes: Freeze[] };

const FIRST_ROWS = 200;
const NAMES = new Intl.Collator("en", { numeric: true });

/** Shows the accounts that the principal may see. */
export default function Accounts() {
  const { query, setQuery, navigate } = useLocation();
  const { may } = useSession();
  const accounts = useLoad("accounts", (signal) => api.get("/api/v1/accounts", { signal }));
  const freezes = useLoad(may("operator") ? "freezes" : null, (signal) => api.get("/api/v1/freezes", { signal }));
  const seconds = useDashboard().pollSeconds.gateways;
  usePoll(accounts, seconds);
  usePoll(freezes, seconds);
  const search = query.get("q") ?? "";
  const isByName = query.get("sort") === "name";
  const isAll = query.get("all") === "1";
  const rows = useMemo(
    () => readAccounts(accounts.data?.accounts ?? [], freezes.data?.freezes ?? [], isByName),
    [accounts.data, freezes.data, isByName],
  ).filter(({ account }) => account.includes(search));
  useShortcuts([{ key: "/", label: "Go to the filter", run: () => document.getElementById("accounts-filter")?.focus() }]);
  const shown = isAll ? rows : rows.slice(0, FIRST_ROWS);
  return (
    <>
      <div className="page-head">
        <h1>Accounts</h1>
        <div className="bar-line">
          <input
            id="accounts-filter" type="search" aria-label="Filter by id" placeholder="Filter by id" value={search}
            onChange={(event) => setQuery({ q: event.target.value, all: null })}
          />
          <select aria-label="Order" value={isByName ? "name" : ""} onChange={(event) => setQuery({ sort: event.target.value })}>
            <option value="">nearest to a limit first</option>
            <option value="name">by id</option>
          </select>
        </div>
      </div>
      <LoadNote loaded={accounts} />
      {accounts.data !== null && rows.length === 0 && <NoAccounts search={search} onClear={() => setQuery({ q: null })} />}
      {shown.length > 0 && (
        <Table
          label="Accounts" columns={COLUMNS} rows={shown} keyOf={(row) => row.account}
          onOpen={(row) => navigate(`/accounts/${encodePart(row.account)}`)}
        />
      )}
      {shown.length < rows.length && (
        <button type="button" onClick={() => setQuery({ all: "1" })}>Show {formatCount(rows.length - shown.length)} more</button>
      )}
      {may("operator") ? (
        <Suspense fallback={<Skeleton rows={2} />}><FreezePanel freezes={freezes} /></Suspense>
      ) : (
        <p className="hint">Freezing and limits take the role operator.</p>
      )}
    </>
  );
}

function readAccounts(accounts: Schemas["Account"][], freezes: Freeze[], isByName: boolean): Account[] {
  const rows = accounts.map((account) => ({
    ...account, share: nearestShare(account.limits) ?? -1, freezes: freezesOf(freezes, account.account),
  }));
  return rows.sort((a, b) => (isByName ? 0 : b.share - a.share) || NAMES.compare(a.account, b.account));
}

const COLUMNS: Column<Account>[] = [
  {
    id: "account", label: "Account", isWide: true,
    cell: ({ account, freezes }) => (
      <span className="bar-line">
        <AccountLink id={account} />
        <FreezeChips freezes={freezes} />
      </span>
    ),
  },
  { id: "nearest", label: "Nearest limit", isWide: "labelled", cell: ({ limits }) => <Nearest row={nearestLimit(limits)} /> },
  { id: "cost", label: "Cost", isNumeric: true, cell: ({ limits }) => formatDollars(limits.cost.used) },
  { id: "tokens", label: "Tokens", isNumeric: true, cell: ({ limits }) => formatCount(limits.totalTokens.used) },
  { id: "requests", label: "Requests", isNumeric: true, cell: ({ limits }) => formatCount(limits.requests.used) },
  { id: "flight", label: "In flight", isNumeric: true, cell: ({ limits }) => formatCount(limits.callsInFlight.used) },
];

function Nearest({ row }: { row: LimitRow | null }) {
  if (row === null) return <span className="none">no limit</span>;
  return (
    <span className="use-cell">
      <UseBar row={row} />
      <span>
        <span className={`use-word-${nearnessOf(row.share)}`}>{formatShare(row.share ?? 0)}</span>{" "}
        of {row.allowed} {row.label.toLowerCase()}
      </span>
    </span>
  );
}

function NoAccounts({ search, onClear }: { search: string; onClear: () => void }) {
  const { may } = useSession();
  if (search !== "") {
    return (
      <EmptyState title="No account has such an id" onClear={onClear}>
        {may("operator") && <>Set up <AccountLink id={search} /> before its first run.</>}
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No account has been used yet">
      An account is there once it has a run, or an entry <code>[accounts."NAME"]</code> in the configuration.
    </EmptyState>
  );
}
