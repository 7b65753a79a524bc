-- Proposals of agents and skills for the repository of the configuration. `content` is what was ordered, and never changes;
-- `document` is how far it is, in a form that the store does not read. A proposal without `due` has ended.

CREATE TABLE proposals (
  installation TEXT NOT NULL,
  proposal TEXT NOT NULL,
  account TEXT NOT NULL,
  principal TEXT NOT NULL,
  content TEXT NOT NULL,
  state TEXT NOT NULL,
  document TEXT NOT NULL,
  due BIGINT,
  version BIGINT NOT NULL,
  created BIGINT NOT NULL,
  changed BIGINT NOT NULL,
  PRIMARY KEY (installation, proposal)
);
CREATE INDEX proposals_due ON proposals (installation, due) WHERE due IS NOT NULL;
CREATE INDEX proposals_created ON proposals (installation, created, proposal);
