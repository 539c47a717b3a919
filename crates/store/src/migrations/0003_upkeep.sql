-- Since when a machine has not served: repair waits for it. What was seen before has no such time
-- until it is seen again.
ALTER TABLE observations ADD COLUMN since INTEGER;
