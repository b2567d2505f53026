-- The secrets of tokens, sealed. The rest of a token stays readable: a gateway without the
-- master key accepts posts and keeps them in its journal.
ALTER TABLE token ADD COLUMN secret TEXT NOT NULL DEFAULT '';
