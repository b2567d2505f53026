-- How often something changed, for those who remember it.
CREATE TABLE version (
  name TEXT NOT NULL PRIMARY KEY,
  n BIGINT NOT NULL
) {clustered};
