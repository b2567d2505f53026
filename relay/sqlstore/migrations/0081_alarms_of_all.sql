-- The list of the alarms of all accounts, newest first.
CREATE INDEX alarm_raised_of_all ON alarm (raised, id);
