-- How many records of a list an account has: of its SIMs (sim) and its subscribers
-- (sim_subscriber). Pages of these lists need no count of the whole then.
DROP TABLE sim_block;
CREATE TABLE sim_count (
  account BIGINT NOT NULL,
  list TEXT NOT NULL,
  n BIGINT NOT NULL,
  PRIMARY KEY (account, list)
) {clustered} {busy};
INSERT INTO sim_count (account, list, n)
SELECT account, 'sim', count(*)
FROM sim
GROUP BY account;
INSERT INTO sim_count (account, list, n)
SELECT account, 'sim_subscriber', count(*)
FROM sim_subscriber
GROUP BY account;
