-- One row per (scope, key). The primary key is what makes a request happen once; it cannot lie in a table partitioned by
-- time, where each day would have a key of its own.
CREATE TABLE IF NOT EXISTS {table} (
  scope text NOT NULL,
  key text NOT NULL,
  fingerprint bytea NOT NULL,
  mac_key_id int8 NOT NULL,
  created_ms int8 NOT NULL,
  expires_ms int8 NOT NULL,
  status int4 NOT NULL DEFAULT 204,
  header_names text[] NOT NULL DEFAULT '{}',
  header_values text[] NOT NULL DEFAULT '{}',
  body bytea NOT NULL DEFAULT '',
  PRIMARY KEY (scope, key)
);
CREATE INDEX IF NOT EXISTS {expiry} ON {table} (expires_ms);
