-- The pages "Surat mati", "Persetujuan" and "Kesehatan". SELECTs only; every list has a LIMIT.

-- name: page_of_letters(before_id, nota, size)
-- Jobs that failed with a fault: each has its letter in the dead-letter queue, or gets it within seconds. A person's
-- refusal (403) has none.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, s.workflow_id, r.workflow, s.error_code, s.attempts,
       LEFT(COALESCE(IF(JSON_VALID(s.response), JSON_UNQUOTE(JSON_EXTRACT(s.response, '$.message')), NULL), s.error), 500)
           AS message,
       IF(JSON_VALID(s.response), JSON_EXTRACT(s.response, '$.said'), NULL) AS said,
       s.worker_at, s.dead_lettered_at,
       LEFT(COALESCE((SELECT o.body FROM outbox o WHERE o.shadow_id = s.id ORDER BY o.id DESC LIMIT 1), s.payload), 2000)
           AS body
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.worker_status = 'FAILED' AND COALESCE(s.error_code, 500) <> 403 AND s.id < :before_id
  AND (r.id IS NULL OR r.carrier_shadow_id IS NULL OR r.carrier_shadow_id = s.id)
  AND (:nota IS NULL OR s.nomer_nota LIKE :nota)
ORDER BY s.id DESC
LIMIT :size;

-- name: count_letters()$
-- How many of them there are.
SELECT COUNT(*)
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.worker_status = 'FAILED' AND COALESCE(s.error_code, 500) <> 403
  AND (r.id IS NULL OR r.carrier_shadow_id IS NULL OR r.carrier_shadow_id = s.id);

-- name: broken_letters(after_id, size)
-- Broken messages that lie in the dead-letter queue, as the relay last saw them.
SELECT id, LEFT(digest, 12) AS letter, reason, body, body_bytes, origin, copies, died_at, first_seen_at, last_seen_at, dropped_by, dropped_at
FROM broken_letters
WHERE gone_at IS NULL AND id > :after_id
ORDER BY id
LIMIT :size;

-- name: count_broken_letters()$
-- How many of them there are, each copy counted.
SELECT COALESCE(SUM(copies), 0) FROM broken_letters WHERE gone_at IS NULL;

-- name: broken_letter(letter_id)^
-- One of them, while it lies there.
SELECT LEFT(digest, 12) AS letter, reason, copies FROM broken_letters WHERE id = :letter_id AND gone_at IS NULL;

-- name: drop_broken_letter(letter_id, actor)!
-- The relay takes it out within a minute, all its copies.
UPDATE broken_letters SET dropped_by = :actor, dropped_at = UTC_TIMESTAMP(6)
WHERE id = :letter_id AND gone_at IS NULL AND dropped_at IS NULL;

-- name: named(shadow_id)^
-- What a person calls a job, and where it is looked at: as a document, or as a run of another module.
SELECT COALESCE(s.nomer_nota, CONCAT(r.workflow, ' #', r.id), CONCAT('#', s.id)) AS name, s.transaksi_id, s.workflow_id
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.id = :shadow_id;

-- name: waiting_workflows(after_id, size)
-- Runs of other modules that wait for somebody, the oldest first; after_id is the last run of the page before.
SELECT r.id, r.workflow, r.version, r.definition_hash, r.idempotency_key, r.current_step, r.waiting, r.payload, r.state,
       r.updated_at
FROM workflow_runs r
JOIN rabbit_publish_shadow s ON s.id = r.carrier_shadow_id
WHERE r.status = 'waiting_for_signal' AND s.transaksi_id IS NULL AND r.id > :after_id
ORDER BY r.id
LIMIT :size;

-- name: waiting_workflow(run_id)^
-- The same of one run.
SELECT r.id, r.workflow, r.version, r.definition_hash, r.idempotency_key, r.current_step, r.waiting, r.payload, r.state,
       r.updated_at
FROM workflow_runs r
JOIN rabbit_publish_shadow s ON s.id = r.carrier_shadow_id
WHERE r.id = :run_id AND r.status = 'waiting_for_signal' AND s.transaksi_id IS NULL;

-- name: heartbeats(size)
-- The processes that were seen in the last day, the newest first.
SELECT name, instance, started_at, seen_at, detail, UTC_TIMESTAMP(6) AS now
FROM process_heartbeats
WHERE seen_at > UTC_TIMESTAMP(6) - INTERVAL 1 DAY
ORDER BY seen_at DESC
LIMIT :size;

-- name: outbox_due()^
-- Messages that should be on their way already.
SELECT COUNT(*) AS n, MIN(available_at) AS oldest_at
FROM outbox
WHERE published_at IS NULL AND available_at <= UTC_TIMESTAMP(6);

-- name: ended_since(since)
-- How many jobs ended, by how.
SELECT worker_status, COUNT(*) AS n
FROM rabbit_publish_shadow
WHERE worker_status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND worker_at >= :since
GROUP BY worker_status;

-- name: oldest_by_status()
-- Since when the oldest document stands in each status that is not an end, and how many do: those that the list of
-- documents shows under that status.
SELECT s.worker_status, COUNT(*) AS n, MIN(COALESCE(s.worker_at, s.created_at)) AS oldest_at
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.transaksi_id IS NOT NULL AND s.worker_status IN ('PENDING', 'PROCESSING', 'WAITING')
  AND (r.id IS NULL OR r.carrier_shadow_id IS NULL OR r.carrier_shadow_id = s.id)
GROUP BY s.worker_status;

-- name: last_audits(invariants)
-- The newest finished audit of each invariant. One that runs right now has said nothing yet.
SELECT r.invariant, r.outcome, r.found, r.new_found, r.note, r.started_at, r.finished_at, r.actor,
       (SELECT COUNT(*) FROM audit_findings f
        WHERE f.invariant = r.invariant AND f.resolved_at IS NULL AND f.diakui_oleh IS NOT NULL) AS acknowledged
FROM (SELECT invariant, MAX(id) AS id FROM audit_runs WHERE outcome <> 'RUNNING' GROUP BY invariant) newest
JOIN audit_runs r ON r.id = newest.id
WHERE r.invariant IN :invariants
ORDER BY r.invariant;

-- name: standing_findings(size)
-- What stands unresolved, the newest first, with what a person said about it.
SELECT invariant, finding_key, pesan, detail, diakui_oleh, diakui_alasan, first_seen_at, last_seen_at
FROM audit_findings
WHERE resolved_at IS NULL
ORDER BY first_seen_at DESC, id DESC
LIMIT :size;

-- name: count_standing()$
-- How many of them nobody has acknowledged.
SELECT COUNT(*) FROM audit_findings WHERE resolved_at IS NULL AND diakui_oleh IS NULL;
