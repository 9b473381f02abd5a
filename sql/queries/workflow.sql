-- Rows of workflow runs and steps, and the shadow rows of their senders. Every writer locks the run row first.

-- name: get_run(run_id)^
-- One run.
SELECT id, workflow, version, definition_hash, idempotency_key, payload, state, status, paused_status, waiting,
       wait_sequence, wakes_at, current_step, visit, n, dag_id, dag_run_id, carrier_shadow_id, parent_id, parent_step,
       parent_visit, parent_index, group_key, priority, deadline_at, paused_at, transitions, counters, recovered,
       compensation, error_code, error, failed_n, failed_attempt, created_at, updated_at, finished_at
FROM workflow_runs
WHERE id = :run_id;

-- name: lock_run(run_id)^
-- One run, held until the transaction ends.
SELECT id, workflow, version, definition_hash, idempotency_key, payload, state, status, paused_status, waiting,
       wait_sequence, wakes_at, current_step, visit, n, dag_id, dag_run_id, carrier_shadow_id, parent_id, parent_step,
       parent_visit, parent_index, group_key, priority, deadline_at, paused_at, transitions, counters, recovered,
       compensation, error_code, error, failed_n, failed_attempt, created_at, updated_at, finished_at
FROM workflow_runs
WHERE id = :run_id
FOR UPDATE;

-- name: lock_run_and_step(run_id, step, branch)^
-- One run, held until the transaction ends, and how a step (or branch) of its visit stands: what a commit is fenced by.
SELECT r.id, r.workflow, r.version, r.definition_hash, r.idempotency_key, r.payload, r.state, r.status, r.paused_status,
       r.waiting, r.wait_sequence, r.wakes_at, r.current_step, r.visit, r.n, r.dag_id, r.dag_run_id,
       r.carrier_shadow_id, r.parent_id, r.parent_step, r.parent_visit, r.parent_index, r.group_key, r.priority,
       r.deadline_at, r.paused_at, r.transitions, r.counters, r.recovered, r.compensation, r.error_code, r.error,
       r.failed_n, r.failed_attempt, r.created_at, r.updated_at, r.finished_at,
       s.status AS step_status, s.attempt AS step_attempt
FROM workflow_runs r
LEFT JOIN workflow_steps s
       ON s.workflow_id = r.id AND s.step = :step AND s.visit = r.visit AND s.branch = :branch
WHERE r.id = :run_id
FOR UPDATE;

-- name: standing(run_id, step, branch)^
-- Where a run stands and who owns it, and how a step (or slot) of its visit does; no state is read.
SELECT r.id, r.status, r.current_step, r.visit, r.n, r.dag_run_id, s.status AS step_status, s.attempt AS step_attempt
FROM workflow_runs r
LEFT JOIN workflow_steps s
       ON s.workflow_id = r.id AND s.step = :step AND s.visit = r.visit AND s.branch = :branch
WHERE r.id = :run_id;

-- name: lock_standing(run_id, step, branch)^
-- The same, held until the transaction ends.
SELECT r.id, r.status, r.current_step, r.visit, r.n, r.dag_run_id, s.status AS step_status, s.attempt AS step_attempt
FROM workflow_runs r
LEFT JOIN workflow_steps s
       ON s.workflow_id = r.id AND s.step = :step AND s.visit = r.visit AND s.branch = :branch
WHERE r.id = :run_id
FOR UPDATE;

-- name: find_run(workflow, idempotency_key)$
-- The run that holds a key.
SELECT id FROM workflow_runs WHERE workflow = :workflow AND idempotency_key = :idempotency_key;

-- name: insert_run(workflow, version, definition_hash, idempotency_key, payload, state, status, current_step, visit, n, dag_id, dag_run_id, carrier_shadow_id, parent_id, parent_step, parent_visit, parent_index, group_key, priority, deadline_at)!
-- A new run; where the key is taken, LAST_INSERT_ID() becomes the id of the run that holds it.
INSERT INTO workflow_runs
    (workflow, version, definition_hash, idempotency_key, payload, state, status, current_step, visit, n, dag_id,
     dag_run_id, carrier_shadow_id, parent_id, parent_step, parent_visit, parent_index, group_key, priority,
     deadline_at, created_at, updated_at)
VALUES
    (:workflow, :version, :definition_hash, :idempotency_key, :payload, :state, :status, :current_step, :visit, :n,
     :dag_id, :dag_run_id, :carrier_shadow_id, :parent_id, :parent_step, :parent_visit, :parent_index, :group_key,
     :priority, :deadline_at, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id);

-- name: save_run(run_id, state, status, paused_status, waiting, wait_sequence, wakes_at, current_step, visit, n, dag_id, dag_run_id, carrier_shadow_id, deadline_at, paused_at, transitions, counters, recovered, compensation, error_code, error, failed_n, failed_attempt, finished_at)!
-- The changeable part of a run; the caller holds its lock.
UPDATE workflow_runs
SET state = :state, status = :status, paused_status = :paused_status, waiting = :waiting,
    wait_sequence = :wait_sequence, wakes_at = :wakes_at, current_step = :current_step, visit = :visit, n = :n,
    dag_id = :dag_id, dag_run_id = :dag_run_id, carrier_shadow_id = :carrier_shadow_id, deadline_at = :deadline_at,
    paused_at = :paused_at, transitions = :transitions, counters = :counters, recovered = :recovered,
    compensation = :compensation, error_code = :error_code, error = :error, failed_n = :failed_n,
    failed_attempt = :failed_attempt, finished_at = :finished_at, updated_at = UTC_TIMESTAMP(6)
WHERE id = :run_id;

-- name: step_on(run_id, dag_run_id, at_step, visit, status, current_step, state, transitions, counters)!
-- A completed plain step moves the pointer of a run that nobody has locked, if the run is still as its process left it.
-- Else status would become NULL, which the column refuses (error 1048), and no statement behind this one is run. The
-- status comes first: assignments are made from left to right.
UPDATE workflow_runs
SET status = IF(status = 'running' AND dag_run_id = :dag_run_id AND current_step = :at_step AND visit = :visit, :status, NULL),
    current_step = :current_step, state = :state, transitions = :transitions, counters = :counters,
    finished_at = IF(current_step IS NULL, UTC_TIMESTAMP(6), NULL), updated_at = UTC_TIMESTAMP(6)
WHERE id = :run_id;

-- name: ends(run_ids)
-- How runs stand that others wait for.
SELECT id, status, finished_at FROM workflow_runs WHERE id IN :run_ids ORDER BY id;

-- name: states(run_ids)
-- What they hold.
SELECT id, state FROM workflow_runs WHERE id IN :run_ids;

-- name: waiters(run_id)
-- Runs whose open wait depends on this one.
SELECT DISTINCT r.id
FROM workflow_items i
JOIN workflow_runs r ON r.id = i.workflow_id AND r.current_step = i.step AND r.visit = i.visit
WHERE i.depends_on_id = :run_id AND r.status IN ('waiting_for_workflows', 'paused')
ORDER BY r.id;

-- name: hold_runs(run_ids)
-- Locks runs by ascending id.
SELECT id FROM workflow_runs WHERE id IN :run_ids ORDER BY id FOR UPDATE;

-- name: waits_on(run_ids)
-- What these runs wait for now.
SELECT r.id AS waiter, i.depends_on_id AS waited
FROM workflow_runs r
JOIN workflow_items i ON i.workflow_id = r.id AND i.step = r.current_step AND i.visit = r.visit
WHERE r.id IN :run_ids AND i.depends_on_id IS NOT NULL AND r.status IN ('waiting_for_workflows', 'paused');

-- name: nested_children(run_id)
-- Nested runs that have not ended.
SELECT id FROM workflow_runs
WHERE parent_id = :run_id AND parent_step IS NOT NULL AND status NOT IN ('completed', 'cancelled')
ORDER BY id;

-- name: child_of(run_id, step, visit)$
-- The nested run of a step in a visit.
SELECT id FROM workflow_runs WHERE parent_id = :run_id AND parent_step = :step AND parent_visit = :visit LIMIT 1;

-- name: group_members(group_key)
-- Runs that were started under a group key.
SELECT id FROM workflow_runs WHERE group_key = :group_key ORDER BY id;

-- name: first_attempt(run_id, step, visit, branch, attempt, n)!
-- A step, branch or slot begins in a visit. There is no record of it yet: a second one would be an error.
INSERT INTO workflow_steps (workflow_id, step, visit, branch, status, attempt, n, started_at)
VALUES (:run_id, :step, :visit, :branch, 'running', :attempt, :n, UTC_TIMESTAMP(6));

-- name: next_attempt(run_id, step, visit, branch, attempt, n)!
-- It begins again; the newest attempt owns the right to commit.
UPDATE workflow_steps
SET attempt = :attempt, n = :n, status = 'running', error = NULL, started_at = UTC_TIMESTAMP(6), finished_at = NULL
WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND branch = :branch;

-- name: get_step(run_id, step, visit, branch)^
-- The record of a step in a visit.
SELECT step, visit, branch, status, attempt, n, output
FROM workflow_steps
WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND branch = :branch;

-- name: branches(run_id, step, visit)
-- The records of a step with its branches or slots.
SELECT step, visit, branch, status, attempt, n, output
FROM workflow_steps
WHERE workflow_id = :run_id AND step = :step AND visit = :visit
ORDER BY id;

-- name: finish_step(run_id, step, visit, branch, status, output, state_after, error)!
-- How a step's newest attempt ended, and the run's state with its output in it.
UPDATE workflow_steps
SET status = :status, output = :output, state_after = :state_after, error = :error, finished_at = UTC_TIMESTAMP(6)
WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND branch = :branch;

-- name: finish_newest_try(run_id, step, visit, attempt, output, state_after)!
-- The same of a try that must still be the newest one, and at work (else error 1048).
UPDATE workflow_steps
SET status = IF(status = 'running' AND attempt = :attempt, 'completed', NULL), output = :output,
    state_after = :state_after, error = NULL, finished_at = UTC_TIMESTAMP(6)
WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND branch = '';

-- name: add_items(run_id, step, visit, n, rows)!
-- The items of a for_each, as a JSON array of [index, item as JSON text].
INSERT INTO workflow_items (workflow_id, step, visit, item_index, status, n, item)
SELECT :run_id, :step, :visit, j.item_index, 'pending', :n, j.item
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    item_index INT PATH '$[0]' ERROR ON ERROR,
    item LONGTEXT PATH '$[1]' ERROR ON ERROR
)) j;

-- name: has_items(run_id, step, visit)$
-- Whether the items of this visit were snapshotted.
SELECT 1 FROM workflow_items WHERE workflow_id = :run_id AND step = :step AND visit = :visit LIMIT 1;

-- name: free_items(run_id, step, visit, slot, n, failed_n)!
-- Items that an earlier try of this slot, or an earlier DAG run, left at work or to be tried again. Those that failed for
-- good are tried again after the run has failed, too, and not after a mere pause.
UPDATE workflow_items
SET status = 'pending', slot = NULL
WHERE workflow_id = :run_id AND step = :step AND visit = :visit
  AND ((status = 'running' AND slot = :slot) OR (status IN ('running', 'pending') AND n < :n)
       OR (status = 'failed' AND n <= :failed_n));

-- name: release_items(run_id, step, visit, slot)!
-- A slot leaves under a pause: what it would have tried again is anybody's.
UPDATE workflow_items
SET slot = NULL
WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND status = 'pending' AND slot = :slot;

-- name: reopen_items(run_id, step, visit)!
-- What did not succeed of a step that a person cleared.
UPDATE workflow_items
SET status = 'pending', slot = NULL
WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND status <> 'succeeded';

-- name: others_at_work(run_id, step, visit, n, branch)$
-- Whether another branch, or an item in another slot, began in this DAG run and has not ended.
SELECT EXISTS (
    SELECT 1 FROM workflow_steps
    WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND status = 'running' AND n = :n
      AND branch NOT IN ('', :branch)
      AND NOT EXISTS (SELECT 1 FROM workflow_items WHERE workflow_id = :run_id AND step = :step AND visit = :visit)
) OR EXISTS (
    SELECT 1 FROM workflow_items
    WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND status = 'running' AND n = :n
      AND slot <> :branch
);

-- name: own_item(run_id, step, visit, slot)^
-- An item that is this slot's already: it failed there and is tried again, or it was claimed and the answer was lost.
SELECT id, item_index, status, attempt, item, output, error
FROM workflow_items FORCE INDEX (ix_workflow_items_open)
WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND status IN ('pending', 'running') AND slot = :slot
ORDER BY item_index
LIMIT 1
FOR UPDATE SKIP LOCKED;

-- name: free_item(run_id, step, visit)^
-- The next item that nobody holds; other slots pass it by. One step in the index, however many items are done.
SELECT id, item_index, status, attempt, item, output, error
FROM workflow_items FORCE INDEX (ix_workflow_items_open)
WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND status = 'pending' AND slot IS NULL
ORDER BY item_index
LIMIT 1
FOR UPDATE SKIP LOCKED;

-- name: claim_item(id, slot, n)!
-- Now this slot's; its attempt is the fence.
UPDATE workflow_items
SET status = 'running', attempt = attempt + 1, slot = :slot, n = :n, started_at = UTC_TIMESTAMP(6)
WHERE id = :id;

-- name: finish_item(run_id, step, visit, item_index, attempt, status, output, error)!
-- How an item's try ended, if it is still the newest.
UPDATE workflow_items
SET status = :status, output = :output, error = :error, finished_at = UTC_TIMESTAMP(6)
WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND item_index = :item_index
  AND status = 'running' AND attempt = :attempt;

-- name: items_left(run_id, step, visit)$
-- Whether an item has not succeeded: three looks into the index.
SELECT EXISTS (
    SELECT 1 FROM workflow_items FORCE INDEX (ix_workflow_items_open)
    WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND status IN ('pending', 'running', 'failed')
);

-- name: count_items(run_id, step, visit)
-- How many items stand in which status.
SELECT status, COUNT(*) AS n
FROM workflow_items
WHERE workflow_id = :run_id AND step = :step AND visit = :visit
GROUP BY status;

-- name: all_items(run_id, step, visit)
-- The items of a for_each in order.
SELECT item_index, status, attempt, item, output, error
FROM workflow_items
WHERE workflow_id = :run_id AND step = :step AND visit = :visit
ORDER BY item_index;

-- name: first_success(run_id, step, visit)$
-- The item that succeeded first.
SELECT item_index FROM workflow_items
WHERE workflow_id = :run_id AND step = :step AND visit = :visit AND status = 'succeeded'
ORDER BY finished_at, item_index
LIMIT 1;

-- name: add_dependency(run_id, step, visit, item_index, depends_on_id)*!
-- What a wait depends on.
INSERT INTO workflow_items (workflow_id, step, visit, item_index, status, depends_on_id)
VALUES (:run_id, :step, :visit, :item_index, 'waiting', :depends_on_id)
ON DUPLICATE KEY UPDATE depends_on_id = VALUES(depends_on_id);

-- name: add_signal(run_id, name, payload, correlation, sent_by, wait_sequence)!
-- A signal as it came.
INSERT INTO workflow_signals (workflow_id, name, correlation, wait_sequence, payload, sent_by, created_at)
VALUES (:run_id, :name, :correlation, :wait_sequence, :payload, :sent_by, UTC_TIMESTAMP(6));

-- name: open_signals(run_id, names)
-- Plain signals that no wait has consumed, oldest first.
SELECT id, name, payload, correlation, sent_by, created_at
FROM workflow_signals
WHERE workflow_id = :run_id AND name IN :names AND consumed_at IS NULL AND wait_sequence IS NULL
ORDER BY id;

-- name: unread_signals(run_id, name, most)$
-- How many of them there are, of one name or of all; counted no further than is asked.
SELECT COUNT(*) FROM (
    SELECT id FROM workflow_signals
    WHERE workflow_id = :run_id AND (:name IS NULL OR name = :name) AND consumed_at IS NULL AND wait_sequence IS NULL
    LIMIT :most
) unread;

-- name: release_signals(run_id, step, visit)!
-- A wait that begins anew in the same visit was failed before and is tried again: its signals are not used up.
UPDATE workflow_signals
SET consumed_step = NULL, consumed_visit = NULL, consumed_at = NULL
WHERE workflow_id = :run_id AND consumed_step = :step AND consumed_visit = :visit AND wait_sequence IS NULL;

-- name: consume_signal(signal_id, step, visit)!
-- Each signal serves one wait.
UPDATE workflow_signals
SET consumed_step = :step, consumed_visit = :visit, consumed_at = UTC_TIMESTAMP(6)
WHERE id = :signal_id;

-- name: add_chunk(run_id, step, visit, chunk)!
-- The next chunk of a stream.
INSERT INTO workflow_chunks (workflow_id, step, visit, sequence, chunk, created_at)
SELECT :run_id, :step, :visit, COALESCE(MAX(c.sequence), 0) + 1, :chunk, UTC_TIMESTAMP(6)
FROM workflow_chunks c
WHERE c.workflow_id = :run_id AND c.step = :step AND c.visit = :visit;

-- name: chunks(run_id, step, visit)
-- The chunks stored so far.
SELECT chunk FROM workflow_chunks
WHERE workflow_id = :run_id AND step = :step AND visit = :visit
ORDER BY sequence;

-- name: drop_chunks(run_id, step, visit)!
-- They go away in the step's own commit.
DELETE FROM workflow_chunks WHERE workflow_id = :run_id AND step = :step AND visit = :visit;

-- name: top_compensation(run_id)$
-- The height of the stack.
SELECT COALESCE(MAX(sequence), 0) FROM workflow_compensations WHERE workflow_id = :run_id;

-- name: add_compensation(run_id, sequence, step, visit, handler, state)!
-- What undoes a completed step, with the public state right after it.
INSERT INTO workflow_compensations (workflow_id, sequence, step, visit, handler, state, status, created_at)
VALUES (:run_id, :sequence, :step, :visit, :handler, :state, 'pending', UTC_TIMESTAMP(6));

-- name: next_compensation(run_id)^
-- The newest that is not done.
SELECT id, sequence, step, visit, handler, state, status, attempts, error
FROM workflow_compensations
WHERE workflow_id = :run_id AND status <> 'done'
ORDER BY sequence DESC
LIMIT 1;

-- name: lock_next_compensation(run_id)^
-- The same, claimed; what another session is at is passed by.
SELECT id, sequence, step, visit, handler, state, status, attempts, error
FROM workflow_compensations
WHERE workflow_id = :run_id AND status <> 'done'
ORDER BY sequence DESC
LIMIT 1
FOR UPDATE SKIP LOCKED;

-- name: owes_below(run_id)$
-- Whether a run nested in this one, at any depth, has compensations due.
WITH RECURSIVE below (id, compensation) AS (
    SELECT id, compensation FROM workflow_runs WHERE parent_id = :run_id AND parent_step IS NOT NULL
    UNION ALL
    SELECT c.id, c.compensation FROM below b JOIN workflow_runs c ON c.parent_id = b.id AND c.parent_step IS NOT NULL
)
SELECT EXISTS (SELECT 1 FROM below WHERE compensation = 'pending');

-- name: compensations(run_id)
-- The whole stack.
SELECT id, sequence, step, visit, handler, state, status, attempts, error
FROM workflow_compensations
WHERE workflow_id = :run_id
ORDER BY sequence;

-- name: finish_compensation(id, status, error)!
-- How its newest try ended.
UPDATE workflow_compensations
SET status = :status, error = :error, attempts = attempts + 1, finished_at = UTC_TIMESTAMP(6)
WHERE id = :id;

-- name: unsend(run_id)!
-- Messages of this run that are not published yet.
DELETE FROM outbox WHERE workflow_id = :run_id AND published_at IS NULL AND exchange = 'everest.jobs.x';

-- name: add_event(run_id, event, step, visit, attempt, n, detail)!
-- One line of a run's history.
INSERT INTO workflow_events (workflow_id, event, step, visit, attempt, n, detail, created_at)
VALUES (:run_id, :event, :step, :visit, :attempt, :n, :detail, UTC_TIMESTAMP(6));

-- name: add_handover(run_id, step, visit, attempt, n, following)!
-- Two lines: a step is completed, and the next one has begun in the same commit.
INSERT INTO workflow_events (workflow_id, event, step, visit, attempt, n, created_at)
VALUES (:run_id, 'completed', :step, :visit, :attempt, :n, UTC_TIMESTAMP(6)),
       (:run_id, 'started', :following, :visit, 1, :n, UTC_TIMESTAMP(6));

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

-- name: part_strangers(workflow_id, carrier_id, nota)!
-- A run completes: jobs of its document that name another nota than the one it completed as (that of its answer, else its
-- carrier's) do not share that. Each fails on its own, as one that comes after the end does. Without a nota, or with
-- blanks behind it, a job is the document's. `id + 0`: compared plainly, MySQL reads the key as two ranges about the
-- carrier, and locks the row of the next document on its way out of them.
UPDATE rabbit_publish_shadow s
JOIN rabbit_publish_shadow c ON c.id = :carrier_id
SET s.response = JSON_OBJECT('status', 'error', 'code', 409, 'message', CONCAT(
        'transaksi ', s.transaksi_id, ' sudah selesai (COMPLETED) dengan nota ', COALESCE(:nota, c.nomer_nota),
        '; nota ', s.nomer_nota, ' tidak bisa memakainya lagi'),
        'said', JSON_OBJECT('key', 'engine.ended_as_other', 'values', JSON_OBJECT('number', s.transaksi_id,
            'state', 'COMPLETED', 'other', COALESCE(:nota, c.nomer_nota), 'nota', s.nomer_nota)),
        'errors', JSON_ARRAY()),
    s.error = CONCAT(
        'transaksi ', s.transaksi_id, ' sudah selesai (COMPLETED) dengan nota ', COALESCE(:nota, c.nomer_nota),
        '; nota ', s.nomer_nota, ' tidak bisa memakainya lagi'),
    s.error_code = 409, s.worker_status = 'FAILED', s.worker_at = UTC_TIMESTAMP(6), s.current_step = NULL,
    s.workflow_id = NULL
WHERE s.workflow_id = :workflow_id AND s.id + 0 <> c.id AND s.worker_status NOT IN ('COMPLETED', 'CANCELLED')
  AND s.transaksi_id = c.transaksi_id
  AND RTRIM(s.nomer_nota) <> '' AND RTRIM(COALESCE(:nota, c.nomer_nota)) <> ''
  AND RTRIM(s.nomer_nota) <> RTRIM(COALESCE(:nota, c.nomer_nota));

-- name: announce(shadow_id, worker_status, current_step, response, dag_id, dag_run_id, n)!
-- The carrier learns the DAG run that is announced or owns the workflow now.
UPDATE rabbit_publish_shadow
SET worker_status = :worker_status, worker_at = UTC_TIMESTAMP(6), current_step = :current_step, response = :response,
    error_code = NULL, error = NULL, dag_id = :dag_id, dag_run_id = :dag_run_id, n = :n, dead_lettered_at = NULL,
    handed_over_at = NULL, handed_over_body = NULL, requeued = 0, requeued_at = NULL
WHERE id = :shadow_id AND worker_status NOT IN ('COMPLETED', 'CANCELLED');

-- name: let_others_wait(workflow_id, carrier_id, current_step)!
-- The other jobs of a workflow that is at work again.
UPDATE rabbit_publish_shadow
SET worker_status = 'WAITING', worker_at = UTC_TIMESTAMP(6), current_step = :current_step, response = NULL,
    error_code = NULL, error = NULL
WHERE workflow_id = :workflow_id AND id + 0 <> :carrier_id AND worker_status NOT IN ('COMPLETED', 'CANCELLED')
ORDER BY id;

-- name: shadow_outcome(shadow_id)^
-- What a job shows of its end.
SELECT worker_status, response, error_code, error FROM rabbit_publish_shadow WHERE id = :shadow_id;
