-- What a list is now: a random number, given anew by each change of the list, in
-- its first block. What a gateway remembers of a list holds while it is the same.
ALTER TABLE sim_block ADD COLUMN version BIGINT NOT NULL DEFAULT 0;
