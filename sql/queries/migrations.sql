-- What the migration runner remembers, and what it asks the server before it changes anything.

-- name: create_memory()!
-- One row per migration file. `statements` counts those done; applied_at NULL = the file is half applied.
-- checksum covers the text up to the last statement done, so a half-applied file may still be mended below it.
CREATE TABLE IF NOT EXISTS schema_migrations (
    version INT NOT NULL,
    name VARCHAR(200) NOT NULL,
    checksum CHAR(64) NOT NULL,
    statements INT NOT NULL DEFAULT 0,
    applied_at DATETIME(6) NULL,
    PRIMARY KEY (version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- name: remembered()
SELECT version, name, checksum, statements, applied_at IS NOT NULL AS done FROM schema_migrations ORDER BY version;

-- name: remember(version, name, checksum, statements)!
INSERT INTO schema_migrations (version, name, checksum, statements)
VALUES (:version, :name, :checksum, :statements)
ON DUPLICATE KEY UPDATE name = VALUES(name), checksum = VALUES(checksum), statements = VALUES(statements);

-- name: finish(version, checksum)!
UPDATE schema_migrations SET checksum = :checksum, applied_at = UTC_TIMESTAMP(6) WHERE version = :version;

-- name: tolerate_zero_dates()!
-- Any ALTER of a table is refused while one of its columns has the default '0000-00-00', which older tables do have.
SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';

-- name: bound_lock_waits()!
-- The server's own default waits up to a year for a table that another session has open, and everybody else behind it.
SET SESSION lock_wait_timeout = 3;

-- name: take_turn(lock_name, seconds)$
SELECT GET_LOCK(:lock_name, :seconds);

-- name: end_turn(lock_name)$
SELECT RELEASE_LOCK(:lock_name);

-- name: server()^
SELECT VERSION() AS version, @@log_bin AS log_bin, @@log_bin_trust_function_creators AS trusts_triggers;

-- name: relations()
SELECT table_name AS name, table_type AS kind, engine AS engine, table_collation AS collation
FROM information_schema.tables WHERE table_schema = DATABASE();

-- name: checks_of(table_name)
SELECT constraint_name AS name FROM information_schema.table_constraints
WHERE table_schema = DATABASE() AND table_name = :table_name AND constraint_type = 'CHECK';

-- name: key_columns(table, key)$
-- The columns of a key, None if there is no such key.
SELECT GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR ', ')
FROM information_schema.statistics
WHERE table_schema = DATABASE() AND table_name = :table AND index_name = :key;

-- name: has_column(table, column)$
SELECT COUNT(*)
FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name = :table AND column_name = :column;
