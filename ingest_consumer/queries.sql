-- Every statement of the consumer. Each status change is a compare-and-set: the old values stand in the WHERE.
-- Instants are UTC_TIMESTAMP(6), so the session's time zone never matters. Common subset of MariaDB 10.11 and MySQL 8.

-- name: get_shadow^
-- record_class: Shadow
-- A job and the workflow it belongs to (NULL while nobody linked it).
SELECT s.id, s.transaksi_id, s.nomer_nota, s.workflow_id, s.publish_status, s.worker_status, s.worker_at, s.attempts,
       s.current_step, s.response, s.error_code, s.error, COALESCE(s.dag_id, r.dag_id) AS dag_id, s.dag_run_id,
       s.n, s.dead_lettered_at, s.handed_over_at, s.created_at, s.published_at, r.workflow
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.id = :shadow_id;

-- name: get_shadows
-- record_class: Shadow
-- Many jobs at once, for the dead letters: without their responses, which may have megabytes each, and of an error what
-- a list shows.
SELECT s.id, s.transaksi_id, s.nomer_nota, s.workflow_id, s.publish_status, s.worker_status, s.worker_at, s.attempts,
       s.current_step, NULL AS response, s.error_code,
       LEFT(IF(COALESCE(s.error, '') <> '', s.error,
               IF(JSON_VALID(s.response), JSON_UNQUOTE(JSON_EXTRACT(s.response, '$.message')), NULL)), 2000) AS error,
       COALESCE(s.dag_id, r.dag_id) AS dag_id, s.dag_run_id,
       s.n, s.dead_lettered_at, s.handed_over_at, s.created_at, s.published_at, r.workflow
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.id IN :shadow_ids;

-- name: relatives
-- record_class: Relative
-- The workflow that began this one, and the first of those that it began: nested ones it stands at, and all since a
-- moment. n: the newest DAG run of each that a consumer has started, for one that is announced may never come.
(SELECT IF(r.parent_step IS NULL, 'started by', 'part of') AS relation, p.dag_id, p.dag_run_id, LEAST(p.n, s.attempts) AS n, p.id
 FROM workflow_runs r
 JOIN workflow_runs p ON p.id = r.parent_id
 JOIN rabbit_publish_shadow s ON s.id = p.carrier_shadow_id
 WHERE r.id = :workflow_id)
UNION ALL
(SELECT IF(c.parent_step IS NULL, 'started', 'runs') AS relation, c.dag_id, c.dag_run_id, LEAST(c.n, s.attempts) AS n, c.id
 FROM workflow_runs r
 JOIN workflow_runs c ON c.parent_id = r.id
 JOIN rabbit_publish_shadow s ON s.id = c.carrier_shadow_id
 WHERE r.id = :workflow_id
   AND (c.created_at >= :since OR (c.parent_step = r.current_step AND c.parent_visit = r.visit))
 ORDER BY c.id
 LIMIT :shown)
ORDER BY id;

-- name: claim!
-- PENDING -> PROCESSING by the run the row announces (NULL for a foreign row).
UPDATE rabbit_publish_shadow
SET worker_status = 'PROCESSING', worker_at = UTC_TIMESTAMP(6), attempts = attempts + 1,
    dag_id = :dag_id, dag_run_id = :dag_run_id, n = :n, dead_lettered_at = NULL, handed_over_at = NULL,
    handed_over_body = NULL
WHERE id = :shadow_id AND worker_status = 'PENDING' AND dag_run_id <=> :expected_dag_run_id;

-- name: respell!
-- The same status in our spelling. worker_at stays, for nothing happened; updated_at follows by itself.
UPDATE rabbit_publish_shadow SET worker_status = :meant WHERE id = :shadow_id AND worker_status = :found;

-- name: mark_dead_lettered!
-- The right to write the dead letter of this failure: whoever wins it rejects or publishes.
UPDATE rabbit_publish_shadow
SET dead_lettered_at = UTC_TIMESTAMP(6)
WHERE id = :shadow_id AND worker_status = 'FAILED' AND dag_run_id <=> :dag_run_id AND dead_lettered_at IS NULL;

-- name: hand_over!
-- The consumer lets go of a run still at work; the reconciler answers for its dead letter from here.
UPDATE rabbit_publish_shadow
SET handed_over_at = UTC_TIMESTAMP(6), handed_over_body = :body
WHERE id = :shadow_id AND worker_status = 'PROCESSING' AND dag_run_id = :dag_run_id;

-- name: enqueue!
INSERT INTO outbox (shadow_id, workflow_id, exchange, routing_key, body, headers, available_at)
VALUES (:shadow_id, :workflow_id, :exchange, :routing_key, :body, :headers, COALESCE(:available_at, UTC_TIMESTAMP(6)));

-- name: postpone!
-- The same message again, later; a copy that already waits for its turn is enough. One that is due does not wait: it may
-- be this very message, published and not marked yet.
INSERT INTO outbox (shadow_id, workflow_id, exchange, routing_key, body, available_at)
SELECT s.id, s.workflow_id, :exchange, :routing_key, :body, UTC_TIMESTAMP(6) + INTERVAL :seconds SECOND
FROM rabbit_publish_shadow s
WHERE s.id = :shadow_id
  AND NOT EXISTS (
      SELECT 1 FROM outbox o
      WHERE o.shadow_id = :shadow_id AND o.published_at IS NULL AND o.available_at > UTC_TIMESTAMP(6)
        AND o.exchange = :exchange AND o.body = :body
  );

-- name: spent_copies
-- Copies of this message that went out and came back.
SELECT id FROM outbox
WHERE shadow_id = :shadow_id AND published_at IS NOT NULL AND exchange = :exchange AND body = :body
LIMIT 100;

-- name: drop_spent!
DELETE FROM outbox WHERE id IN :ids AND published_at IS NOT NULL;

-- name: lock_run^
-- The run row is locked before any shadow row (state protocol, "Locks").
SELECT id, workflow, idempotency_key, status, n, dag_id, dag_run_id, compensation, error_code
FROM workflow_runs WHERE id = :workflow_id FOR UPDATE;

-- name: rerun_run!
-- The clock of a run that must complete within a time starts anew (everest.workflow.clock).
UPDATE workflow_runs
SET status = 'running', n = :n, dag_run_id = :dag_run_id, carrier_shadow_id = :shadow_id, recovered = 0,
    waiting = NULL, wakes_at = NULL, paused_status = NULL, error_code = NULL, error = NULL, failed_n = NULL,
    deadline_at = UTC_TIMESTAMP(6) + INTERVAL COALESCE(
        CAST(JSON_EXTRACT(counters, '$.clock_us') AS SIGNED), TIMESTAMPDIFF(MICROSECOND, created_at, deadline_at)
    ) MICROSECOND,
    failed_attempt = NULL, finished_at = NULL, updated_at = UTC_TIMESTAMP(6)
WHERE id = :workflow_id AND status = 'failed';

-- name: rerun_shadow!
-- The carrier of the new run.
UPDATE rabbit_publish_shadow
SET worker_status = 'PENDING', worker_at = UTC_TIMESTAMP(6), dag_id = :dag_id, dag_run_id = :dag_run_id, n = :n,
    error_code = NULL, error = NULL, response = NULL, dead_lettered_at = NULL, handed_over_at = NULL,
    handed_over_body = NULL, requeued = 0, requeued_at = NULL
WHERE id = :shadow_id AND worker_status = 'FAILED' AND workflow_id <=> :workflow_id AND dag_run_id <=> :old_dag_run_id;

-- name: rerun_followers!
-- The workflow's other rows wait for the outcome of the carrier.
UPDATE rabbit_publish_shadow
SET worker_status = 'WAITING', worker_at = UTC_TIMESTAMP(6), dag_id = :dag_id, dag_run_id = :dag_run_id, n = :n,
    error_code = NULL, error = NULL, response = NULL, dead_lettered_at = NULL, handed_over_at = NULL,
    handed_over_body = NULL, requeued = 0, requeued_at = NULL
WHERE workflow_id = :workflow_id AND id + 0 <> :shadow_id AND worker_status NOT IN ('COMPLETED', 'CANCELLED');

-- name: cancel_run!
-- What the run has done is undone from here on (the reconciler), unless that happened at its failure.
UPDATE workflow_runs
SET compensation = IF(compensation IS NULL AND EXISTS (
        SELECT 1 FROM workflow_compensations c WHERE c.workflow_id = :workflow_id AND c.status <> 'done'
    ), 'pending', compensation),
    status = 'cancelled', error_code = 499, error = :response, waiting = NULL, wakes_at = NULL,
    finished_at = UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6)
WHERE id = :workflow_id AND status = 'failed';

-- name: cancel_shadow!
UPDATE rabbit_publish_shadow
SET worker_status = 'CANCELLED', worker_at = UTC_TIMESTAMP(6), error_code = 499, error = :error, response = :response
WHERE id = :shadow_id AND worker_status = 'FAILED' AND workflow_id <=> :workflow_id;

-- name: cancel_followers!
UPDATE rabbit_publish_shadow
SET worker_status = 'CANCELLED', worker_at = UTC_TIMESTAMP(6), error_code = 499, error = :error, response = :response
WHERE workflow_id = :workflow_id AND id + 0 <> :shadow_id AND worker_status NOT IN ('COMPLETED', 'CANCELLED');

-- name: audit!
INSERT INTO audit_log (actor, action, transaksi_id, nomer_nota, shadow_id, workflow_id, reason, before_value, after_value)
VALUES (:actor, :action, :transaksi_id, :nomer_nota, :shadow_id, :workflow_id, :reason, :before_value, :after_value);

-- name: run_event!
-- The run's own history, beside the audit log.
INSERT INTO workflow_events (workflow_id, event, step, visit, n, detail, created_at)
SELECT id, :event, current_step, visit, n, :detail, UTC_TIMESTAMP(6) FROM workflow_runs WHERE id = :workflow_id;

-- name: get_lock$
-- 1 = ours now, 0 = another session holds it. Lives and dies with this connection.
SELECT GET_LOCK(:name, :wait_seconds);

-- name: owns_lock$
SELECT COALESCE(IS_USED_LOCK(:name) = CONNECTION_ID(), 0);

-- name: end_when_silent!
-- The server ends this session, and frees its lock, when nothing is heard of it for so many seconds.
SET SESSION wait_timeout = :seconds;

-- name: release_lock$
SELECT RELEASE_LOCK(:name);

-- name: due_of_waiting
-- Timers that came due while their job waits, among the rows that are published next.
SELECT o.body, s.id, s.dag_run_id
FROM (
    SELECT shadow_id, exchange, body FROM outbox
    WHERE published_at IS NULL AND available_at <= UTC_TIMESTAMP(6)
    ORDER BY available_at, id
    LIMIT :batch
) o
JOIN rabbit_publish_shadow s ON s.id = o.shadow_id
WHERE o.exchange = :exchange AND s.worker_status = 'WAITING';

-- name: waiting_runs
-- Of these jobs, those that wait, and the run each of them announces.
SELECT id, dag_run_id FROM rabbit_publish_shadow WHERE id IN :shadow_ids AND worker_status = 'WAITING';

-- name: runs_at_work
-- Of these jobs, those whose run is at work, and the run.
SELECT id, dag_run_id FROM rabbit_publish_shadow WHERE id IN :shadow_ids AND worker_status = 'PROCESSING';

-- name: wake!
UPDATE rabbit_publish_shadow
SET worker_status = 'PENDING', worker_at = UTC_TIMESTAMP(6)
WHERE id = :shadow_id AND worker_status = 'WAITING' AND dag_run_id = :dag_run_id;

-- name: take_due
-- The rows stay locked while they are published: a dead relay's rows are free at once, a second relay skips them.
-- waited_s: since it was due; of a row that was tried before, since it was written (its due time has moved).
SELECT id, shadow_id, exchange, routing_key, body, headers, attempts,
       TIMESTAMPDIFF(MICROSECOND, IF(attempts = 0, available_at, created_at), UTC_TIMESTAMP(6)) / 1e6 AS waited_s
FROM outbox
WHERE published_at IS NULL AND available_at <= UTC_TIMESTAMP(6)
ORDER BY available_at, id
LIMIT :batch
FOR UPDATE SKIP LOCKED;

-- name: mark_published!
UPDATE outbox SET published_at = UTC_TIMESTAMP(6), attempts = attempts + 1, last_error = NULL WHERE id IN :ids;

-- name: free_shadows
-- Of these jobs, those that nobody holds just now; they are ours until the commit.
SELECT id FROM rabbit_publish_shadow WHERE id IN :shadow_ids ORDER BY id FOR UPDATE SKIP LOCKED;

-- name: known_shadows
SELECT id FROM rabbit_publish_shadow WHERE id IN :shadow_ids;

-- name: mark_shadows_published!
UPDATE rabbit_publish_shadow SET publish_status = 'PUBLISHED', published_at = UTC_TIMESTAMP(6) WHERE id IN :shadow_ids;

-- name: unmarked_shadows
-- Jobs whose message went out lately and whose row does not say so: a relay ended in between.
SELECT DISTINCT s.id
FROM outbox o
JOIN rabbit_publish_shadow s ON s.id = o.shadow_id
WHERE o.published_at >= UTC_TIMESTAMP(6) - INTERVAL :lately_s SECOND AND o.exchange = :exchange AND s.publish_status = 'PENDING'
LIMIT :most;

-- name: mark_unpublished!
-- The row waits a little longer after each failure, so that it holds up nobody else; it is never dropped.
UPDATE outbox
SET attempts = attempts + 1, last_error = :error, available_at = UTC_TIMESTAMP(6) + INTERVAL :seconds SECOND
WHERE id = :outbox_id;

-- name: due_as_meant!
-- A clock that was ahead, and has been set right since, wrote these: they are as far from now as they were from it.
UPDATE outbox
SET available_at = TIMESTAMPADD(MICROSECOND, TIMESTAMPDIFF(MICROSECOND, created_at, available_at), UTC_TIMESTAMP(6)),
    created_at = UTC_TIMESTAMP(6)
WHERE published_at IS NULL AND created_at > UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE
  AND available_at > UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE;

-- name: due_again!
-- And these it has put off: nothing that was tried waits for longer than :most_s.
UPDATE outbox
SET available_at = UTC_TIMESTAMP(6)
WHERE published_at IS NULL AND attempts > 0 AND available_at > UTC_TIMESTAMP(6) + INTERVAL :most_s SECOND;

-- name: beat!
-- This process is alive, and how it is; the first beat of an instance is when it started.
INSERT INTO process_heartbeats (name, instance, started_at, seen_at, detail)
VALUES (:name, :instance, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), :detail)
ON DUPLICATE KEY UPDATE seen_at = UTC_TIMESTAMP(6), detail = :detail;

-- name: forget_heartbeats!
-- What died long ago; bounded, so that a process that starts never holds the table for long.
DELETE FROM process_heartbeats WHERE name = :name AND seen_at < UTC_TIMESTAMP(6) - INTERVAL :days DAY ORDER BY seen_at LIMIT 1000;

-- name: keep_broken_letter*!
-- A broken message that lies in the dead-letter queue. One that had gone and lies there again is a new one: whoever
-- dropped the old one has not seen it. (MySQL assigns from left to right: gone_at comes last.)
INSERT INTO broken_letters
    (digest, reason, body, body_bytes, origin, copies, died_at, first_seen_at, last_seen_at)
VALUES (:digest, :reason, :body, :body_bytes, :origin, :copies, :died_at, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE
    first_seen_at = IF(gone_at IS NULL, first_seen_at, UTC_TIMESTAMP(6)),
    dropped_by = IF(gone_at IS NULL, dropped_by, NULL), dropped_at = IF(gone_at IS NULL, dropped_at, NULL),
    reason = VALUES(reason), origin = VALUES(origin), copies = VALUES(copies), died_at = VALUES(died_at),
    last_seen_at = UTC_TIMESTAMP(6), gone_at = NULL;

-- name: lying_broken_letters(size)
-- Those that lay in the queue at the last look, and whether somebody wants them out.
SELECT id, digest, dropped_at IS NOT NULL FROM broken_letters WHERE gone_at IS NULL ORDER BY id LIMIT :size;

-- name: broken_letters_gone!
UPDATE broken_letters SET gone_at = UTC_TIMESTAMP(6) WHERE id IN :ids;

-- name: forget_broken_letters!
DELETE FROM broken_letters WHERE gone_at < UTC_TIMESTAMP(6) - INTERVAL :days DAY ORDER BY gone_at LIMIT 1000;
