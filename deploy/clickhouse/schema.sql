-- Events of gcollect in ClickHouse:
--   clickhouse-client --multiquery < deploy/clickhouse/schema.sql
--   gcollect events --json | clickhouse-client --date_time_input_format best_effort --query 'INSERT INTO gswitch.events FORMAT JSONEachRow'
-- An event has the same id whoever found it: what is inserted twice is there once (FINAL, or after a merge).
CREATE DATABASE IF NOT EXISTS gswitch;

CREATE TABLE IF NOT EXISTS gswitch.events
(
    id       String,
    kind     LowCardinality(String),         -- loss, lossy, trace, pause, flow
    at       DateTime64(9, 'UTC'),           -- of the first packet
    until    DateTime64(9, 'UTC'),           -- of the last one
    known    DateTime64(9, 'UTC'),           -- when the collector had the report that says so
    what     LowCardinality(String),         -- cause of a loss, what became of a packet or of a flow, pause or resume
    where    LowCardinality(String),         -- link or switch
    toward   LowCardinality(String) DEFAULT '',
    reason   LowCardinality(String) DEFAULT '',
    path     String DEFAULT '',
    times    String DEFAULT '',              -- of a packet at each switch of path, in ns since the first
    src      IPv4 DEFAULT '0.0.0.0',
    dst      IPv4 DEFAULT '0.0.0.0',
    src_port UInt16 DEFAULT 0,
    dst_port UInt16 DEFAULT 0,
    protocol UInt8 DEFAULT 0,
    packets  UInt64 DEFAULT 0,
    classes  UInt8 DEFAULT 0
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMMDD(at)
ORDER BY (kind, where, at, id)
TTL toDateTime(at) + INTERVAL 90 DAY;
