-- A table for those who have none of their own. Take any type for the key that can be ordered.
CREATE TABLE IF NOT EXISTS {table} (
  {key} text PRIMARY KEY,
  payload jsonb NOT NULL DEFAULT 'null'
);
