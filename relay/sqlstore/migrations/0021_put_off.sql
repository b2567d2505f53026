-- The events that were put off are taken up again account by account.
CREATE INDEX event_mark_account ON event_mark (node, kind, state, account, seq);
