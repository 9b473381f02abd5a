-- Workflows as people look at them, and what tidies up after them. Reads lock nothing; the purge writes.

-- name: run(run_id)^
-- One run, with the job that carries it.
SELECT r.*, s.worker_status, s.worker_at, s.transaksi_id, s.nomer_nota
FROM workflow_runs r
LEFT JOIN rabbit_publish_shadow s ON s.id = r.carrier_shadow_id
WHERE r.id = :run_id;

-- name: run_of_key(workflow, idempotency_key)$
-- The run that holds a key.
SELECT id FROM workflow_runs WHERE workflow = :workflow AND idempotency_key = :idempotency_key;

-- name: children(parent_id, batch)
-- Runs that a run began, nested or handed off.
SELECT id, workflow, version, status, current_step, parent_step, parent_index, compensation
FROM workflow_runs
WHERE parent_id = :parent_id
ORDER BY id
LIMIT :batch;

-- name: nested(parent_ids)
-- Runs that run_workflow steps of these began: a cancel takes them along.
SELECT id FROM workflow_runs WHERE parent_id IN :parent_ids AND parent_step IS NOT NULL ORDER BY id;

-- name: count_children(parent_id)
-- All of them by status.
SELECT status, COUNT(*) AS n FROM workflow_runs WHERE parent_id = :parent_id GROUP BY status ORDER BY status;

-- name: depends_on(run_id, step, visit, batch)
-- What an open wait for workflows waits for.
SELECT r.id, r.workflow, r.status
FROM workflow_items i
JOIN workflow_runs r ON r.id = i.depends_on_id
WHERE i.workflow_id = :run_id AND i.step = :step AND i.visit = :visit
ORDER BY r.id
LIMIT :batch;

-- name: steps(run_id, size)
-- What became of each step in each visit, the newest first.
SELECT s.step, s.visit, s.status, s.attempt, s.started_at, s.finished_at, s.error, r.status AS run_status
FROM workflow_steps s
JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.workflow_id = :run_id AND s.branch = ''
ORDER BY s.id DESC
LIMIT :size;

-- name: signals(run_id, size)
-- Signals and answers that came, the newest first.
SELECT name, correlation, payload, sent_by, created_at, consumed_step
FROM workflow_signals
WHERE workflow_id = :run_id
ORDER BY id DESC
LIMIT :size;

-- name: items(run_id, step, visit)
-- How the items of a for_each stand.
SELECT status, COUNT(*) AS n
FROM workflow_items
WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND depends_on_id IS NULL
GROUP BY status
ORDER BY status;

-- name: branches(run_id, step, visit)
-- Branches of a parallel group, slots of a for_each; the step as a whole has no branch.
SELECT branch, status, attempt, error
FROM workflow_steps
WHERE workflow_id = :run_id AND step = :step AND visit = :visit
ORDER BY id;

-- name: compensations(run_id)
-- What undoes the completed steps, in the order in which it runs: newest first.
SELECT sequence, step, visit, handler, status, attempts, error, created_at, finished_at
FROM workflow_compensations
WHERE workflow_id = :run_id
ORDER BY sequence DESC;

-- name: dag_runs(run_id, before_n, size)
-- The DAG runs a workflow went through, newest first, by what happened in each; before_n is the last of the page before.
SELECT n, MIN(created_at) AS first_at, MAX(created_at) AS last_at,
       SUM(event = 'started') AS started, SUM(event IN ('completed', 'branch_completed')) AS completed,
       SUM(event = 'failed') AS failed, SUM(event = 'taken_over') AS by_hand
FROM workflow_events
WHERE workflow_id = :run_id AND n < :before_n
GROUP BY n
ORDER BY n DESC
LIMIT :size;

-- name: announcements(run_id, since_n)
-- The names under which DAG runs were announced: the messages hold them.
SELECT DISTINCT IF(JSON_VALID(body), JSON_EXTRACT(body, '$.n'), NULL) AS n,
       IF(JSON_VALID(body), JSON_UNQUOTE(JSON_EXTRACT(body, '$.dag_run_id')), NULL) AS dag_run_id,
       IF(JSON_VALID(body), JSON_UNQUOTE(JSON_EXTRACT(body, '$.dag_id')), NULL) AS dag_id
FROM outbox
WHERE workflow_id = :run_id AND exchange = 'everest.jobs.x'
  AND IF(JSON_VALID(body), JSON_EXTRACT(body, '$.n'), NULL) >= :since_n;

-- name: outbox(run_id)
-- Messages of a run that are not published yet.
SELECT id, available_at, attempts, last_error
FROM outbox
WHERE workflow_id = :run_id AND published_at IS NULL
ORDER BY id;

-- name: page_of_runs(workflow, parent_id, created_before, created_since, before_id, size)
-- Runs, newest first; before_id is the last id of the page before. An error that names very many problems is told without
-- them: some megabytes for a line of the list.
SELECT r.id, r.workflow, r.version, r.idempotency_key, r.status, r.current_step, r.wakes_at, r.waiting, r.parent_id,
       r.n, r.error_code,
       IF(LENGTH(r.error) > 65535, JSON_REMOVE(r.error, '$.errors'), r.error) AS error,
       r.compensation, r.created_at, r.updated_at, r.finished_at, s.nomer_nota
FROM workflow_runs r
LEFT JOIN rabbit_publish_shadow s ON s.id = r.carrier_shadow_id
WHERE r.id < :before_id
  AND (:workflow IS NULL OR r.workflow = :workflow)
  AND (:parent_id IS NULL OR r.parent_id = :parent_id)
  AND (:created_before IS NULL OR r.created_at < :created_before)
  AND (:created_since IS NULL OR r.created_at >= :created_since)
ORDER BY r.id DESC
LIMIT :size;

-- name: page_of_runs_in(status, workflow, parent_id, created_before, created_since, before_id, size)
-- The same of one status: its index finds the few waiting or failed ones among many that are done.
SELECT r.id, r.workflow, r.version, r.idempotency_key, r.status, r.current_step, r.wakes_at, r.waiting, r.parent_id,
       r.n, r.error_code,
       IF(LENGTH(r.error) > 65535, JSON_REMOVE(r.error, '$.errors'), r.error) AS error,
       r.compensation, r.created_at, r.updated_at, r.finished_at, s.nomer_nota
FROM workflow_runs r
LEFT JOIN rabbit_publish_shadow s ON s.id = r.carrier_shadow_id
WHERE r.status = :status AND r.id < :before_id
  AND (:workflow IS NULL OR r.workflow = :workflow)
  AND (:parent_id IS NULL OR r.parent_id = :parent_id)
  AND (:created_before IS NULL OR r.created_at < :created_before)
  AND (:created_since IS NULL OR r.created_at >= :created_since)
ORDER BY r.id DESC
LIMIT :size;

-- name: page_of_events(run_id, after_id, size)
-- A run's history, oldest first; after_id is the last id of the page before.
SELECT id, event, step, visit, branch, attempt, n, detail, created_at
FROM workflow_events
WHERE workflow_id = :run_id AND id > :after_id
ORDER BY id
LIMIT :size;

-- name: purgeable(finished_before, with_cancelled, after_id, size)
-- Ended runs that nothing needs any more: no document of the books, nothing left to undo, no parent that is still at
-- work (it finds its children by their keys), and no open wait for them.
SELECT r.id
FROM workflow_runs r
WHERE r.id > :after_id
  AND (r.status = 'completed' OR (:with_cancelled AND r.status = 'cancelled'))
  AND r.finished_at < :finished_before
  AND (r.compensation IS NULL OR r.compensation = 'done')
  AND JSON_EXTRACT(r.payload, '$.transaksi_id') IS NULL
  AND NOT EXISTS (
      SELECT 1 FROM rabbit_publish_shadow s
      WHERE s.workflow_id = r.id AND (s.transaksi_id IS NOT NULL OR s.worker_status NOT IN ('COMPLETED', 'CANCELLED'))
  )
  AND NOT EXISTS (
      SELECT 1 FROM workflow_runs p
      WHERE p.id = r.parent_id AND p.status NOT IN ('completed', 'cancelled')
  )
  AND NOT EXISTS (
      SELECT 1 FROM workflow_items i
      JOIN workflow_runs w ON w.id = i.workflow_id
      WHERE i.depends_on_id = r.id AND w.status NOT IN ('completed', 'cancelled')
  )
ORDER BY r.id
LIMIT :size;

-- name: claim_purgeable(run_ids)
-- Two purges share the work; what another holds is left to it.
SELECT id FROM workflow_runs WHERE id IN :run_ids ORDER BY id FOR UPDATE SKIP LOCKED;

-- name: purge_steps(run_ids)!
DELETE FROM workflow_steps WHERE workflow_id IN :run_ids;

-- name: purge_items(run_ids)!
DELETE FROM workflow_items WHERE workflow_id IN :run_ids;

-- name: purge_signals(run_ids)!
DELETE FROM workflow_signals WHERE workflow_id IN :run_ids;

-- name: purge_chunks(run_ids)!
DELETE FROM workflow_chunks WHERE workflow_id IN :run_ids;

-- name: purge_compensations(run_ids)!
DELETE FROM workflow_compensations WHERE workflow_id IN :run_ids;

-- name: purge_events(run_ids)!
DELETE FROM workflow_events WHERE workflow_id IN :run_ids;

-- name: purge_outbox(run_ids)!
DELETE FROM outbox WHERE workflow_id IN :run_ids;

-- name: purge_jobs(run_ids)!
-- The senders' rows. The condition stands here once more: a row of a document is never deleted.
DELETE FROM rabbit_publish_shadow WHERE workflow_id IN :run_ids AND transaksi_id IS NULL;

-- name: purge_runs(run_ids)!
-- Last: with the run goes its idempotency key.
DELETE FROM workflow_runs WHERE id IN :run_ids;
