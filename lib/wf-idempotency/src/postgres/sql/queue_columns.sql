-- What leasing needs beside the columns that the table has.
ALTER TABLE {table}
  ADD COLUMN IF NOT EXISTS lease_state text NOT NULL DEFAULT 'ready'
    CHECK (lease_state IN ('ready', 'leased', 'done', 'failed')),
  ADD COLUMN IF NOT EXISTS lease_priority int4 NOT NULL DEFAULT 0,
  -- ready: when it may be leased; leased: when the lease ends; done and failed: when that was.
  ADD COLUMN IF NOT EXISTS lease_at_ms int8 NOT NULL DEFAULT 0,
  -- Who has it, or had it last.
  ADD COLUMN IF NOT EXISTS lease_holder text,
  -- Grows with every lease and never shrinks: a fence that one holder's next lease does not pass either.
  ADD COLUMN IF NOT EXISTS lease_number int8 NOT NULL DEFAULT 0;
-- In the order in which work is taken; what is over is not in it.
CREATE INDEX IF NOT EXISTS {next} ON {table} (lease_priority DESC, {key}) WHERE lease_state IN ('ready', 'leased');
