-- What each step of a run was given, returned and left behind.

-- name: traced_steps(run_id, after_id, size)
-- Steps in the order in which they first began. What a step was given is what the last completed one before its newest
-- try had left.
SELECT s.id, s.step, s.visit, s.branch, s.status, s.attempt, s.n, s.output, s.state_after, s.error, s.started_at,
       s.finished_at, r.status AS run_status, g.status AS group_status,
       (SELECT b.state_after
        FROM workflow_steps b
        WHERE b.workflow_id = s.workflow_id AND b.status = 'completed' AND b.finished_at <= s.started_at
        ORDER BY b.finished_at DESC, b.id DESC
        LIMIT 1) AS state_before
FROM workflow_steps s
JOIN workflow_runs r ON r.id = s.workflow_id
LEFT JOIN workflow_steps g
    ON g.workflow_id = s.workflow_id AND g.step = s.step AND g.visit = s.visit AND g.branch = '' AND s.branch <> ''
WHERE s.workflow_id = :run_id AND s.id > :after_id
ORDER BY s.id
LIMIT :size;

-- name: payload(run_id)$
-- What the run began with.
SELECT payload FROM workflow_runs WHERE id = :run_id;

-- name: state_after(run_id, step, visit)$
-- The state that a step left, of one visit or of the last one.
SELECT state_after
FROM workflow_steps
WHERE workflow_id = :run_id AND step = :step AND branch = '' AND status = 'completed'
  AND visit = COALESCE(:visit, visit)
ORDER BY visit DESC
LIMIT 1;
