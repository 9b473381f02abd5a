-- Rows of workflow runs and steps, and the shadow rows of their senders. Every writer locks the run row first.

-- name: get_run(run_id)^
-- One run.
SELECT id, workflow, version, definition_hash, idempotency_key, payload, state, status, current_step, visit, n, dag_id,
       dag_run_id, carrier_shadow_id, transitions, recovered, compensation, error_code, error, failed_n, failed_attempt,
       finished_at
FROM workflow_runs
WHERE id = :run_id;

-- name: lock_run(run_id)^
-- One run, held until the transaction ends.
SELECT id, workflow, version, definition_hash, idempotency_key, payload, state, status, current_step, visit, n, dag_id,
       dag_run_id, carrier_shadow_id, transitions, recovered, compensation, error_code, error, failed_n, failed_attempt,
       finished_at
FROM workflow_runs
WHERE id = :run_id
FOR UPDATE;

-- name: find_run(workflow, idempotency_key)$
-- The run that holds a key.
SELECT id FROM workflow_runs WHERE workflow = :workflow AND idempotency_key = :idempotency_key;

-- name: insert_run(workflow, version, definition_hash, idempotency_key, payload, state, status, current_step, visit, n, dag_id, dag_run_id, carrier_shadow_id)!
-- A new run; where the key is taken, LAST_INSERT_ID() becomes the id of the run that holds it.
INSERT INTO workflow_runs
    (workflow, version, definition_hash, idempotency_key, payload, state, status, current_step, visit, n, dag_id,
     dag_run_id, carrier_shadow_id, created_at, updated_at)
VALUES
    (:workflow, :version, :definition_hash, :idempotency_key, :payload, :state, :status, :current_step, :visit, :n,
     :dag_id, :dag_run_id, :carrier_shadow_id, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id);

-- name: save_run(run_id, state, status, current_step, visit, n, dag_run_id, carrier_shadow_id, transitions, recovered, error_code, error, failed_n, failed_attempt, finished_at)!
-- The changeable part of a run; the caller holds its lock.
UPDATE workflow_runs
SET state = :state, status = :status, current_step = :current_step, visit = :visit, n = :n, dag_run_id = :dag_run_id,
    carrier_shadow_id = :carrier_shadow_id, transitions = :transitions, recovered = :recovered,
    error_code = :error_code, error = :error, failed_n = :failed_n, failed_attempt = :failed_attempt,
    finished_at = :finished_at, updated_at = UTC_TIMESTAMP(6)
WHERE id = :run_id;

-- name: begin_attempt(run_id, step, visit, branch, n)!
-- Raises the attempt counter of a step in a visit; the newest attempt owns the right to commit.
INSERT INTO workflow_steps (workflow_id, step, visit, branch, status, attempt, n, started_at)
VALUES (:run_id, :step, :visit, :branch, 'running', 1, :n, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE
    attempt = attempt + 1, n = VALUES(n), status = 'running', error = NULL, started_at = UTC_TIMESTAMP(6),
    finished_at = NULL;

-- name: get_step(run_id, step, visit, branch)^
-- The record of a step in a visit.
SELECT step, visit, branch, status, attempt, n, output
FROM workflow_steps
WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND branch = :branch;

-- name: finish_step(run_id, step, visit, branch, status, output, error)!
-- How a step's newest attempt ended.
UPDATE workflow_steps
SET status = :status, output = :output, error = :error, finished_at = UTC_TIMESTAMP(6)
WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND branch = :branch;

-- name: add_event(run_id, event, step, visit, attempt, n, detail)!
-- One line of a run's history.
INSERT INTO workflow_events (workflow_id, event, step, visit, attempt, n, detail, created_at)
VALUES (:run_id, :event, :step, :visit, :attempt, :n, :detail, UTC_TIMESTAMP(6));

-- name: get_shadow(shadow_id)^
-- What the engine reads of a shadow row.
SELECT id, transaksi_id, nomer_nota, workflow_id, worker_status, dag_run_id, n
FROM rabbit_publish_shadow
WHERE id = :shadow_id;

-- name: lock_shadow(shadow_id)^
-- The same, held until the transaction ends.
SELECT id, transaksi_id, nomer_nota, workflow_id, worker_status, dag_run_id, n
FROM rabbit_publish_shadow
WHERE id = :shadow_id
FOR UPDATE;

-- name: insert_shadow(transaksi_id, nomer_nota, workflow_id, payload, dag_id)!
-- A new job; its announcement follows in the same transaction.
INSERT INTO rabbit_publish_shadow
    (transaksi_id, nomer_nota, workflow_id, payload, publish_status, worker_status, worker_at, dag_id, created_at,
     updated_at)
VALUES
    (:transaksi_id, :nomer_nota, :workflow_id, :payload, 'PENDING', 'PENDING', UTC_TIMESTAMP(6), :dag_id,
     UTC_TIMESTAMP(6), UTC_TIMESTAMP(6));

-- name: link_shadow(shadow_id, workflow_id)!
-- A foreign row learns which run it belongs to.
UPDATE rabbit_publish_shadow SET workflow_id = :workflow_id WHERE id = :shadow_id AND workflow_id IS NULL;

-- name: set_shadow(shadow_id, worker_status, current_step, response, error_code, error)!
-- The status of one job, unless it is final.
UPDATE rabbit_publish_shadow
SET worker_status = :worker_status, worker_at = UTC_TIMESTAMP(6), current_step = :current_step, response = :response,
    error_code = :error_code, error = :error
WHERE id = :shadow_id AND worker_status NOT IN ('COMPLETED', 'CANCELLED');

-- name: set_shadows(workflow_id, worker_status, current_step, response, error_code, error)!
-- The status of all jobs of a run that are not final.
UPDATE rabbit_publish_shadow
SET worker_status = :worker_status, worker_at = UTC_TIMESTAMP(6), current_step = :current_step, response = :response,
    error_code = :error_code, error = :error
WHERE workflow_id = :workflow_id AND worker_status NOT IN ('COMPLETED', 'CANCELLED')
ORDER BY id;

-- name: announce(shadow_id, worker_status, current_step, dag_id, dag_run_id, n)!
-- The carrier learns the DAG run that is announced or owns the workflow now.
UPDATE rabbit_publish_shadow
SET worker_status = :worker_status, worker_at = UTC_TIMESTAMP(6), current_step = :current_step, response = NULL,
    error_code = NULL, error = NULL, dag_id = :dag_id, dag_run_id = :dag_run_id, n = :n, dead_lettered_at = NULL,
    handed_over_at = NULL, handed_over_body = NULL, requeued = 0, requeued_at = NULL
WHERE id = :shadow_id AND worker_status NOT IN ('COMPLETED', 'CANCELLED');

-- name: let_others_wait(workflow_id, carrier_id, current_step)!
-- The other jobs of a workflow that is at work again.
UPDATE rabbit_publish_shadow
SET worker_status = 'WAITING', worker_at = UTC_TIMESTAMP(6), current_step = :current_step, response = NULL,
    error_code = NULL, error = NULL
WHERE workflow_id = :workflow_id AND id <> :carrier_id AND worker_status NOT IN ('COMPLETED', 'CANCELLED')
ORDER BY id;

-- name: shadow_outcome(shadow_id)^
-- What a job shows of its end.
SELECT worker_status, response, error_code, error FROM rabbit_publish_shadow WHERE id = :shadow_id;
