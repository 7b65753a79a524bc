-- Workspaces of threads: the one that the runs of a thread and an agent share, and the run that has it now or had it last.

CREATE TABLE thread_workspaces (
  installation TEXT NOT NULL,
  account TEXT NOT NULL,
  thread TEXT NOT NULL,
  agent TEXT NOT NULL,
  workspace TEXT NOT NULL,
  run TEXT NOT NULL,
  changed BIGINT NOT NULL,
  PRIMARY KEY (installation, account, thread, agent)
);

CREATE INDEX thread_workspaces_workspace ON thread_workspaces (workspace);
