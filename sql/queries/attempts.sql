-- The attempts at a document, and what stands of it now.

-- name: attempts_of(transaksi_id)
-- Oldest first. A correction of many lines stands in several rows, one after another; only the first names problems.
SELECT id, n, dag_run_id, outcome, code, input_hash, problems, replaced_lines, created_at
FROM posting_attempts
WHERE transaksi_id = :transaksi_id
ORDER BY id;

-- name: done_by_people(transaksi_id)
-- What people did with it, corrections with the header before and after.
SELECT created_at, actor, action, reason, before_value, after_value
FROM audit_log
WHERE transaksi_id = :transaksi_id
ORDER BY id;
