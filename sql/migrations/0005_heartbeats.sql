-- Which processes are there, and how they are: each writes its own row every few seconds. name: consumer, relay or
-- reconciler, instance: host:pid.

CREATE TABLE IF NOT EXISTS process_heartbeats (
    name VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    instance VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    started_at DATETIME(6) NOT NULL,
    seen_at DATETIME(6) NOT NULL,
    detail JSON NULL,
    PRIMARY KEY (name, instance),
    KEY ix_process_heartbeats_seen (seen_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
