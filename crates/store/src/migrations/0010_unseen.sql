-- Since when nobody could look at an environment; what was last seen of it stays beside that.
ALTER TABLE environment_checks ADD COLUMN unseen_since INTEGER;
