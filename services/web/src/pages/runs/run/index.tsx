/** One run: its head with actions, and what it did in tabs. The shown tab is in the address. */
import { lazy } from "react";
import { useLocation } from "../../../base/router";
import { ErrorNote, Skeleton } from "../../../components/Notes";
import { StreamNote } from "../../../components/StreamNote";
import { type Tab, Tabs } from "../../../components/Tabs";
import { isActive } from "../figures";
import { Answer } from "./Answer";
import { Head, RunTitle } from "./Head";
import type { Source } from "./Nothing";
import { type FollowedRun, type RunDetails, useRun } from "./useRun";
import "./run.css";

// Tabs that many visits never show are loaded when they are.
const Calls = lazy(() => import("./Calls").then((module) => ({ default: module.Calls })));
const Events = lazy(() => import("./Events").then((module) => ({ default: module.Events })));
const Output = lazy(() => import("./Output").then((module) => ({ default: module.Output })));
const Git = lazy(() => import("./Git").then((module) => ({ default: module.Git })));
const Receipts = lazy(() => import("./Receipts").then((module) => ({ default: module.Receipts })));
const Refusals = lazy(() => import("./Refusals").then((module) => ({ default: module.Refusals })));
const Timeline = lazy(() => import("./Timeline").then((module) => ({ default: module.Timeline })));
const Tools = lazy(() => import("./Tools").then((module) => ({ default: module.Tools })));

/** Shows the run of the address. */
export default function Run() {
  const { params } = useLocation();
  const followed = useRun(params["run"] ?? "");
  const { loaded, stream } = followed;
  if (loaded.data === null) {
    return (
      <>
        <RunTitle id={params["run"] ?? ""} />
        {loaded.error === null ? <Skeleton rows={10} /> : <ErrorNote error={loaded.error} onRetry={loaded.reload} />}
      </>
    );
  }
  return (
    <>
      <Head run={loaded.data} onChange={followed.refresh}>
        <StreamNote state={stream.state} onRetry={stream.retryNow} />
      </Head>
      {loaded.error !== null && <ErrorNote error={loaded.error} onRetry={loaded.reload} staleSince={loaded.staleSince} />}
      <RunTabs run={loaded.data} followed={followed} />
    </>
  );
}

function RunTabs({ run, followed }: { run: RunDetails; followed: FollowedRun }) {
  const { query, setQuery } = useLocation();
  const { log, version, stream } = followed;
  const source: Source = { log, version, stream: stream.state, phase: isActive(run) ? "active" : "ended" };
  const refused = run.usage?.refusedCalls ?? 0;
  const tabs: Tab[] = [
    { id: "answer", label: "Answer", render: () => <Answer run={run} answer={log.answer} /> },
    { id: "events", label: "Events", count: log.rows.length, render: () => <Events source={source} /> },
    { id: "output", label: "Output", render: () => <Output runId={run.runId} source={source} /> },
    { id: "calls", label: "Model calls", count: run.usage?.calls, render: () => <Calls run={run} /> },
    { id: "tools", label: "Tool calls", render: () => <Tools run={run} source={source} /> },
    { id: "refusals", label: "Refusals", ...(refused > 0 ? { count: refused } : {}), render: () => <Refusals run={run} /> },
    { id: "receipts", label: "Receipts", count: run.receipts?.count, render: () => <Receipts run={run} /> },
    { id: "git", label: "Git", count: run.commits?.commits, render: () => <Git run={run} /> },
    { id: "timeline", label: "Timeline", render: () => <Timeline run={run} source={source} /> },
  ];
  return (
    <Tabs
      label="Parts of the run" tabs={tabs} shown={query.get("tab") ?? "answer"}
      onShow={(id) => setQuery({ tab: id === "answer" ? null : id, kind: null, find: null })}
    />
  );
}
