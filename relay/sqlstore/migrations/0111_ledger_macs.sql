-- An entry is the position-th of its token's, up to which there are so many claims. The MAC
-- covers the row, and the MAC of the token's entry before it.
ALTER TABLE ledger_entry ADD COLUMN position BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_entry ADD COLUMN claims BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ledger_entry ADD COLUMN mac BYTEA NOT NULL DEFAULT '';
