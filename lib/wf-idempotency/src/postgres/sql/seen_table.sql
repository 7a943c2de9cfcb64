-- What was seen when. Whole partitions are dropped when their time is over: no row is ever deleted by itself.
-- A unique constraint on a partitioned table must contain the column that it is partitioned by, as each partition checks
-- only its own index. So this primary key does not keep a key from standing in two partitions; the advisory lock of
-- `mark_seen` does.
CREATE TABLE IF NOT EXISTS {table} (
  key text NOT NULL,
  seen_ms int8 NOT NULL,
  PRIMARY KEY (key, seen_ms)
) PARTITION BY RANGE (seen_ms);
