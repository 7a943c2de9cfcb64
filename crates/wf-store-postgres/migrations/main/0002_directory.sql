-- Where several databases share the tenants: the first one keeps which databases there are, and where each tenant lives.
-- In a database that is alone, and in all others, both stay empty.

CREATE TABLE onceflow.database (
    -- The database's own 'secret:database'.
    id              bytea PRIMARY KEY,
    -- For people: host, port and name, as they were when a node last started.
    address         text NOT NULL,
    first_partition integer NOT NULL UNIQUE,
    partitions      integer NOT NULL,
    -- Keys have 12 bits for the partition.
    CONSTRAINT database_has_numbers CHECK (first_partition > 0 AND partitions > 0 AND first_partition + partitions <= 4096)
);

CREATE TABLE onceflow.tenant (
    name     text COLLATE "C" PRIMARY KEY,
    database bytea NOT NULL REFERENCES onceflow.database (id)
);
CREATE INDEX tenant_by_database ON onceflow.tenant (database);
