-- What the rows say for Prometheus. Every count ends at :cap and walks an index from its beginning, so that a look costs
-- the same on a table of millions. Instants are UTC.

-- name: open_jobs(cap)
SELECT j.kind, j.worker_status, COUNT(*) AS jobs
FROM (
    (SELECT IF(transaksi_id IS NULL, 'workflow', 'document') AS kind, worker_status
     FROM rabbit_publish_shadow WHERE worker_status = 'PENDING' LIMIT :cap)
    UNION ALL
    (SELECT IF(transaksi_id IS NULL, 'workflow', 'document'), worker_status
     FROM rabbit_publish_shadow WHERE worker_status = 'PROCESSING' LIMIT :cap)
    UNION ALL
    (SELECT IF(transaksi_id IS NULL, 'workflow', 'document'), worker_status
     FROM rabbit_publish_shadow WHERE worker_status = 'WAITING' LIMIT :cap)
    UNION ALL
    (SELECT IF(transaksi_id IS NULL, 'workflow', 'document'), worker_status
     FROM rabbit_publish_shadow WHERE worker_status = 'FAILED' LIMIT :cap)
) j
GROUP BY j.kind, j.worker_status;

-- name: oldest_job(worker_status)$
-- The last news of the job that has had none for longest.
SELECT MIN(worker_at) FROM rabbit_publish_shadow WHERE worker_status = :worker_status AND worker_at IS NOT NULL;

-- name: oldest_foreign_job(cap)$
-- Nobody has touched it since another program wrote it, in the zone of that program.
SELECT MIN(j.created_at)
FROM (
    SELECT created_at FROM rabbit_publish_shadow
    WHERE worker_status = 'PENDING' AND worker_at IS NULL ORDER BY worker_at, id LIMIT :cap
) j;

-- name: ended_jobs(worker_status, cap)$
SELECT COUNT(*)
FROM (
    SELECT 1 FROM rabbit_publish_shadow
    WHERE worker_status = :worker_status AND worker_at >= UTC_TIMESTAMP(6) - INTERVAL 1 HOUR LIMIT :cap
) j;

-- name: failed_jobs(cap)
SELECT COALESCE(j.error_code, 0) AS code, COUNT(*) AS jobs
FROM (
    SELECT error_code FROM rabbit_publish_shadow WHERE worker_status = 'FAILED' ORDER BY worker_at DESC LIMIT :cap
) j
GROUP BY COALESCE(j.error_code, 0);

-- name: letters_owed(cap)$
-- Among the newest failures: a fault, a minute old, and nobody has written the letter.
SELECT COUNT(*)
FROM (
    SELECT id, workflow_id, error_code, dead_lettered_at, worker_at
    FROM rabbit_publish_shadow WHERE worker_status = 'FAILED' ORDER BY worker_at DESC LIMIT :cap
) j
LEFT JOIN workflow_runs r ON r.id = j.workflow_id
WHERE j.dead_lettered_at IS NULL AND (j.error_code IS NULL OR j.error_code <> 403)
  AND j.worker_at NOT BETWEEN UTC_TIMESTAMP(6) - INTERVAL 60 SECOND AND UTC_TIMESTAMP(6) + INTERVAL 60 SECOND
  AND (j.workflow_id IS NULL OR (r.status = 'failed' AND r.carrier_shadow_id = j.id));

-- name: outbox_due(cap)^
-- A row that the broker did not take waits a little longer each time, up to a minute; it is due all the same.
SELECT COUNT(*) AS messages,
       COALESCE(TIMESTAMPDIFF(MICROSECOND, MIN(o.due_at), UTC_TIMESTAMP(6)) / 1000000, 0) AS oldest_s
FROM (
    SELECT IF(attempts = 0, available_at, created_at) AS due_at
    FROM outbox
    WHERE published_at IS NULL AND available_at <= UTC_TIMESTAMP(6) + INTERVAL 60 SECOND
      AND (available_at <= UTC_TIMESTAMP(6) OR attempts > 0)
    ORDER BY available_at
    LIMIT :cap
) o;

-- name: outbox_later(cap)$
SELECT COUNT(*)
FROM (
    SELECT 1 FROM outbox
    WHERE published_at IS NULL AND available_at > UTC_TIMESTAMP(6) AND attempts = 0 LIMIT :cap
) o;

-- name: heartbeats()
-- A heartbeat that is still to come is no sign of life: a clock that was ahead left it, and nobody has written since.
SELECT name, MIN(ABS(TIMESTAMPDIFF(MICROSECOND, seen_at, UTC_TIMESTAMP(6)))) / 1000000 AS age_s,
       SUM(seen_at BETWEEN UTC_TIMESTAMP(6) - INTERVAL 30 SECOND AND UTC_TIMESTAMP(6) + INTERVAL 30 SECOND
           AND COALESCE(JSON_UNQUOTE(JSON_EXTRACT(detail, '$.state')), '') <> 'stopped') AS instances
FROM process_heartbeats
GROUP BY name;

-- name: audit_findings(cap)
SELECT f.invariant, COUNT(*) AS findings
FROM (SELECT invariant FROM audit_findings WHERE resolved_at IS NULL AND diakui_oleh IS NULL LIMIT :cap) f
GROUP BY f.invariant;

-- name: audits(cap)
-- Each invariant among the newest audits, and how long ago it was last looked at to the end. One that could not be
-- looked at grows old as one that nobody started does.
SELECT a.invariant,
       TIMESTAMPDIFF(
           MICROSECOND,
           COALESCE(MAX(IF(a.outcome IN ('CLEAN', 'FINDINGS'), a.finished_at, NULL)), MIN(a.started_at)),
           UTC_TIMESTAMP(6)
       ) / 1000000 AS age_s
FROM (SELECT invariant, outcome, started_at, finished_at FROM audit_runs ORDER BY id DESC LIMIT :cap) a
GROUP BY a.invariant;

-- name: installed_since()$
-- Seconds since this schema was made; where nothing was ever audited, so long nobody looked.
SELECT COALESCE(TIMESTAMPDIFF(SECOND, MIN(applied_at), UTC_TIMESTAMP(6)), 0) FROM schema_migrations;

-- name: newest_event()$
SELECT COALESCE(MAX(id), 0) FROM workflow_events;

-- name: events_up_to(after_id, cap)$
SELECT COALESCE(MAX(e.id), :after_id)
FROM (SELECT id FROM workflow_events WHERE id > :after_id ORDER BY id LIMIT :cap) e;

-- name: retried_steps(after_id, upto_id)
-- Tries that failed and are followed by another, by the class of what was raised.
SELECT COALESCE(JSON_UNQUOTE(JSON_EXTRACT(detail, '$.type')), 'unknown') AS error, COUNT(*) AS tries
FROM workflow_events
WHERE id > :after_id AND id <= :upto_id AND event = 'retried'
GROUP BY COALESCE(JSON_UNQUOTE(JSON_EXTRACT(detail, '$.type')), 'unknown');
