-- An SMSC may give one id to two messages. earlier has the parts that the id named
-- before, the newest first: account, message, part and number with blanks between,
-- and a comma behind each. Receipts in early may be kept while an id is bound:
-- those that are about none of its parts.
ALTER TABLE message_ref ADD COLUMN earlier TEXT NOT NULL DEFAULT '';
