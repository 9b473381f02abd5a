-- What the reconciler looks for, and its compare-and-set statements. Rows are read without locks; a repair locks the
-- run row (or takes the shadow row by CAS) and asks again whether the row is still as it was seen.
-- :skip: rows that an earlier round has seen and left as they were stand before those that nobody has seen yet.
-- Only carrier rows, or rows without a workflow, are looked at: the other rows of a workflow share the carrier's end.

-- "For a while" is meant in both directions: a row with an instant in the future was written by a clock that was ahead
-- and has been set right since. It would else be left alone until that hour, or year, comes.

-- name: owns_lock(name)$
SELECT COALESCE(IS_USED_LOCK(:name) = CONNECTION_ID(), 0);

-- name: get_lock(name)$
-- 1 = ours now, 0 = another session holds it. Lives and dies with this connection.
SELECT GET_LOCK(:name, 0);

-- name: end_when_silent(seconds)!
-- The server ends this session, and frees its lock, when nothing is heard of it for so many seconds.
SET SESSION wait_timeout = :seconds;

-- name: at_work(quiet_s, hold_limit_s, batch, skip)
-- PROCESSING and without news for a while, oldest first.
-- is_overdue: no consumer holds a delivery for it any more, so a run that Airflow does not know will not come.
-- Whatever the workflow's status: a DAG run can die on its way back into a wait, and under a pause.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, s.workflow_id, r.workflow, s.worker_status, s.worker_at,
       s.dag_id, s.dag_run_id, s.n,
       s.worker_at NOT BETWEEN UTC_TIMESTAMP(6) - INTERVAL :hold_limit_s SECOND
                       AND UTC_TIMESTAMP(6) + INTERVAL :hold_limit_s SECOND AS is_overdue
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.worker_status = 'PROCESSING'
  AND (s.worker_at <= UTC_TIMESTAMP(6) - INTERVAL :quiet_s SECOND
       OR s.worker_at > UTC_TIMESTAMP(6) + INTERVAL :quiet_s SECOND)
  AND s.dag_run_id IS NOT NULL
  AND (s.workflow_id IS NULL
       OR (r.status IN ('running', 'paused', 'waiting_for_signal', 'waiting_for_workflows')
           AND r.carrier_shadow_id = s.id AND r.dag_run_id = s.dag_run_id))
ORDER BY s.worker_at, s.id
LIMIT :batch OFFSET :skip;

-- name: without_dead_letter(after_s, batch, skip)
-- FAILED with a fault, and after some seconds still without its dead letter: nobody holds its delivery.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, s.workflow_id, r.workflow, s.worker_status, s.worker_at,
       s.dag_id, s.dag_run_id, s.n, s.handed_over_body
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.worker_status = 'FAILED' AND s.dead_lettered_at IS NULL AND (s.error_code IS NULL OR s.error_code <> 403)
  AND (s.worker_at IS NULL OR s.worker_at <= UTC_TIMESTAMP(6) - INTERVAL :after_s SECOND
       OR s.worker_at > UTC_TIMESTAMP(6) + INTERVAL :after_s SECOND)
  AND (s.workflow_id IS NULL OR (r.status = 'failed' AND r.carrier_shadow_id = s.id))
ORDER BY s.worker_at, s.id
LIMIT :batch OFFSET :skip;

-- name: lost_messages(lost_after_s, requeue_every_s, foreign_before, foreign_after, batch, skip)
-- PENDING for long, and nothing in the outbox that would still bring it. A foreign row has neither run nor outbox row,
-- whether it says PUBLISHED or not; its created_at is an instant of its writer's zone. Rows that stood there before us
-- are marked (decision 0044): a person decides about them.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, s.workflow_id, r.workflow, s.worker_status, s.worker_at,
       s.dag_id, s.dag_run_id, s.n, s.requeued_at
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.worker_status = 'PENDING' AND s.dead_lettered_at IS NULL
  AND (s.worker_at <= UTC_TIMESTAMP(6) - INTERVAL :lost_after_s SECOND
       OR s.worker_at > UTC_TIMESTAMP(6) + INTERVAL :lost_after_s SECOND
       OR (s.worker_at IS NULL AND (s.created_at <= :foreign_before OR s.created_at > :foreign_after)))
  AND (s.requeued_at IS NULL OR s.requeued_at <= UTC_TIMESTAMP(6) - INTERVAL :requeue_every_s SECOND
       OR s.requeued_at > UTC_TIMESTAMP(6) + INTERVAL :requeue_every_s SECOND)
  AND ((s.workflow_id IS NULL AND s.transaksi_id IS NOT NULL)
       OR (r.status IN ('running', 'waiting_for_signal', 'waiting_for_workflows')
           AND r.carrier_shadow_id = s.id AND r.dag_run_id = s.dag_run_id))
  AND NOT EXISTS (
      SELECT 1 FROM outbox o
      WHERE o.shadow_id = s.id
        AND ((o.published_at IS NULL AND o.created_at <= UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE)
             OR o.published_at BETWEEN UTC_TIMESTAMP(6) - INTERVAL :lost_after_s SECOND
                                   AND UTC_TIMESTAMP(6) + INTERVAL :lost_after_s SECOND)
  )
ORDER BY s.requeued_at, s.worker_at, s.id
LIMIT :batch OFFSET :skip;

-- name: spelled_by_hand(batch, skip)
-- Open jobs whose status is right but for its spelling: the CHECK and every statement take it, programs that compare
-- words would not.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, s.workflow_id, r.workflow, s.worker_status, s.worker_at,
       s.dag_id, s.dag_run_id, s.n
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.worker_status IN ('PENDING', 'PROCESSING', 'WAITING', 'FAILED')
  AND CAST(s.worker_status AS BINARY) NOT IN ('PENDING', 'PROCESSING', 'WAITING', 'FAILED')
ORDER BY s.id
LIMIT :batch OFFSET :skip;

-- name: overslept(grace_s, batch, skip)
-- A delay or the timeout of a wait is over, and no outbox row is left that would say so.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, s.workflow_id, r.workflow, s.worker_status, s.worker_at,
       s.dag_id, s.dag_run_id, s.n
FROM workflow_runs r
JOIN rabbit_publish_shadow s ON s.id = r.carrier_shadow_id
WHERE r.wakes_at <= UTC_TIMESTAMP(6) - INTERVAL :grace_s SECOND
  AND r.status IN ('running', 'waiting_for_signal', 'waiting_for_workflows')
  AND s.worker_status = 'WAITING' AND s.dag_run_id = r.dag_run_id
  AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.shadow_id = s.id AND o.published_at IS NULL)
ORDER BY r.wakes_at, r.id
LIMIT :batch OFFSET :skip;

-- name: claim_run(workflow_id)$
-- A run that somebody else holds just now is not stuck: it is looked at again in the next round.
SELECT id FROM workflow_runs WHERE id = :workflow_id FOR UPDATE SKIP LOCKED;

-- name: is_as_seen(shadow_id, worker_status, worker_at, dag_run_id)$
-- Whether nothing was committed about the job since it was seen; every change of a job sets worker_at.
SELECT id FROM rabbit_publish_shadow
WHERE id = :shadow_id AND worker_status = :worker_status AND worker_at <=> :worker_at AND dag_run_id <=> :dag_run_id
FOR UPDATE;

-- name: has_unsent(shadow_id)$
-- Not one that a clock ahead of time has put far into the future: it comes too late, and finds its run.
SELECT EXISTS (
    SELECT 1 FROM outbox
    WHERE shadow_id = :shadow_id AND published_at IS NULL AND created_at <= UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE
);

-- name: count_requeue(shadow_id, worker_at, dag_run_id, requeued_at)!
-- The right to send a lost message again, for whoever wins it.
UPDATE rabbit_publish_shadow
SET requeued = requeued + 1, requeued_at = UTC_TIMESTAMP(6)
WHERE id = :shadow_id AND worker_status = 'PENDING' AND worker_at <=> :worker_at AND dag_run_id <=> :dag_run_id
  AND requeued_at <=> :requeued_at;

-- name: decided_waits(batch, skip)
-- Runs that wait for other workflows, sleep, and have nothing to wait for any more: the one that ended last did not see
-- them, or died. The engine's own rule is asked again under the run's lock; this one only has to be as generous.
SELECT r.id AS workflow_id, r.workflow, r.version, r.definition_hash
FROM workflow_runs r
JOIN rabbit_publish_shadow s
  ON s.id = r.carrier_shadow_id AND s.worker_status = 'WAITING' AND s.dag_run_id = r.dag_run_id
JOIN workflow_items i
  ON i.workflow_id = r.id AND i.step = r.current_step AND i.visit = r.visit AND i.depends_on_id IS NOT NULL
LEFT JOIN workflow_runs d ON d.id = i.depends_on_id
WHERE r.status = 'waiting_for_workflows'
GROUP BY r.id, r.workflow, r.version, r.definition_hash, r.waiting
HAVING CASE COALESCE(JSON_UNQUOTE(JSON_EXTRACT(r.waiting, '$.mode')), 'all')
    WHEN 'any' THEN SUM(d.status = 'completed') > 0
    WHEN 'quorum' THEN SUM(d.status = 'completed') >= CAST(JSON_EXTRACT(r.waiting, '$.quorum') AS SIGNED)
    ELSE SUM(d.status = 'completed') = COUNT(*)
END OR CASE COALESCE(JSON_UNQUOTE(JSON_EXTRACT(r.waiting, '$.mode')), 'all')
    WHEN 'any' THEN SUM(d.id IS NULL OR d.status IN ('failed', 'cancelled')) = COUNT(*)
    WHEN 'quorum' THEN COUNT(*) - SUM(d.id IS NULL OR d.status IN ('failed', 'cancelled'))
        < CAST(JSON_EXTRACT(r.waiting, '$.quorum') AS SIGNED)
    ELSE SUM(d.id IS NULL OR d.status IN ('failed', 'cancelled')) > 0
END
ORDER BY r.id
LIMIT :batch OFFSET :skip;

-- name: told_by_a_clock_ahead(ahead_s, batch, skip)
-- Open runs that were changed last when the clock was ahead: their delays, timeouts and deadlines are as much too late.
SELECT id AS workflow_id, workflow, version, definition_hash
FROM workflow_runs
WHERE status IN ('running', 'paused', 'waiting_for_signal', 'waiting_for_workflows')
  AND updated_at > UTC_TIMESTAMP(6) + INTERVAL :ahead_s SECOND
ORDER BY id
LIMIT :batch OFFSET :skip;

-- name: passed_deadlines(batch, skip)
-- A pause stops the clock.
SELECT id AS workflow_id, workflow, version, definition_hash
FROM workflow_runs
WHERE deadline_at <= UTC_TIMESTAMP(6) AND status IN ('running', 'waiting_for_signal', 'waiting_for_workflows')
ORDER BY deadline_at, id
LIMIT :batch OFFSET :skip;

-- name: unfinished_compensations(batch, skip)
-- Cancelled or failed, and not everything is undone yet; those that gave up wait for a person. A nested run has a higher
-- id than its parent and is undone before it.
SELECT id AS workflow_id, workflow, version, definition_hash
FROM workflow_runs
WHERE compensation = 'pending'
ORDER BY id DESC
LIMIT :batch OFFSET :skip;
