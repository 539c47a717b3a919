-- Who called an action off, and when: what ended because of that has not failed.
ALTER TABLE environment_actions ADD COLUMN cancelled_by TEXT;
ALTER TABLE environment_actions ADD COLUMN cancelled_at INTEGER;
