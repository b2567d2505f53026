-- The head of a log once more, sealed by a key of its account, in base64.
ALTER TABLE ledger_log ADD COLUMN sealed_head TEXT NOT NULL DEFAULT '';

-- The entries of a token in their order: its history, and its last claim.
CREATE INDEX ledger_entry_token ON ledger_entry (account, token, sequence);
