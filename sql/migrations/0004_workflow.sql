-- Durable workflows: runs, their steps by visit and attempt, items of a for_each, signals, chunks, compensations, events.

CREATE TABLE IF NOT EXISTS workflow_runs (
    id BIGINT NOT NULL AUTO_INCREMENT,
    workflow VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    version VARCHAR(40) NOT NULL,
    definition_hash CHAR(64) NOT NULL,
    idempotency_key VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    payload JSON NOT NULL,
    -- public state: the payload and what each step returned, merged
    state JSON NOT NULL,
    status VARCHAR(30) NOT NULL,
    -- what a paused run goes back to, and what a waiting run waits for
    paused_status VARCHAR(30) NULL,
    waiting JSON NULL,
    wait_sequence INT NOT NULL DEFAULT 0,
    wakes_at DATETIME(6) NULL,
    -- the pointer: the step to run next, and the pass it belongs to (a jump back begins a new visit)
    current_step VARCHAR(100) NULL,
    visit INT NOT NULL DEFAULT 1,
    -- the announced or owning DAG run
    n INT NOT NULL,
    dag_id VARCHAR(200) NOT NULL,
    dag_run_id VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    carrier_shadow_id BIGINT NULL,
    parent_id BIGINT NULL,
    parent_step VARCHAR(100) NULL,
    parent_visit INT NULL,
    parent_index INT NULL,
    group_key VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    priority INT NOT NULL DEFAULT 0,
    deadline_at DATETIME(6) NULL,
    paused_at DATETIME(6) NULL,
    transitions INT NOT NULL DEFAULT 0,
    counters JSON NULL,
    -- how often the reconciler began a new DAG run because the old one ended without a record
    recovered INT NOT NULL DEFAULT 0,
    compensation VARCHAR(20) NULL,
    error_code INT NULL,
    error JSON NULL,
    failed_n INT NULL,
    failed_attempt INT NULL,
    created_at DATETIME(6) NOT NULL,
    updated_at DATETIME(6) NOT NULL,
    finished_at DATETIME(6) NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_workflow_runs_key (workflow, idempotency_key),
    KEY ix_workflow_runs_status (status, updated_at),
    KEY ix_workflow_runs_wakes (wakes_at),
    KEY ix_workflow_runs_deadline (deadline_at),
    KEY ix_workflow_runs_compensation (compensation),
    KEY ix_workflow_runs_parent (parent_id, parent_step, parent_visit),
    KEY ix_workflow_runs_group (group_key),
    CONSTRAINT ck_workflow_runs_status CHECK (status IN ('running', 'paused', 'waiting_for_signal', 'waiting_for_workflows', 'completed', 'failed', 'cancelled'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS workflow_steps (
    id BIGINT NOT NULL AUTO_INCREMENT,
    workflow_id BIGINT NOT NULL,
    step VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    visit INT NOT NULL,
    branch VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
    status VARCHAR(20) NOT NULL,
    -- the newest attempt owns the right to commit; n = the DAG run it began in
    attempt INT NOT NULL DEFAULT 0,
    n INT NOT NULL,
    output JSON NULL,
    state_after JSON NULL,
    error JSON NULL,
    started_at DATETIME(6) NOT NULL,
    finished_at DATETIME(6) NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_workflow_steps (workflow_id, step, visit, branch),
    CONSTRAINT ck_workflow_steps_status CHECK (status IN ('running', 'completed', 'failed', 'waiting', 'skipped'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS workflow_items (
    id BIGINT NOT NULL AUTO_INCREMENT,
    workflow_id BIGINT NOT NULL,
    step VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    visit INT NOT NULL,
    item_index INT NOT NULL,
    status VARCHAR(20) NOT NULL,
    attempt INT NOT NULL DEFAULT 0,
    n INT NULL,
    -- the slot of the for_each that works on the item
    slot VARCHAR(20) NULL,
    item JSON NULL,
    -- the run this item started or waits for (hand-offs and dependencies)
    depends_on_id BIGINT NULL,
    output JSON NULL,
    error JSON NULL,
    started_at DATETIME(6) NULL,
    finished_at DATETIME(6) NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_workflow_items (workflow_id, step, visit, item_index),
    KEY ix_workflow_items_open (workflow_id, step, visit, status, slot, item_index),
    KEY ix_workflow_items_depends (depends_on_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS workflow_signals (
    id BIGINT NOT NULL AUTO_INCREMENT,
    workflow_id BIGINT NOT NULL,
    name VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    correlation VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    wait_sequence INT NULL,
    payload JSON NULL,
    sent_by VARCHAR(100) NULL,
    consumed_step VARCHAR(100) NULL,
    consumed_visit INT NULL,
    consumed_at DATETIME(6) NULL,
    created_at DATETIME(6) NOT NULL,
    PRIMARY KEY (id),
    KEY ix_workflow_signals_open (workflow_id, name, consumed_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS workflow_chunks (
    id BIGINT NOT NULL AUTO_INCREMENT,
    workflow_id BIGINT NOT NULL,
    step VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    visit INT NOT NULL,
    sequence INT NOT NULL,
    chunk JSON NULL,
    created_at DATETIME(6) NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_workflow_chunks (workflow_id, step, visit, sequence)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS workflow_compensations (
    id BIGINT NOT NULL AUTO_INCREMENT,
    workflow_id BIGINT NOT NULL,
    sequence INT NOT NULL,
    step VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    visit INT NOT NULL,
    handler VARCHAR(250) NOT NULL,
    state JSON NOT NULL,
    status VARCHAR(20) NOT NULL,
    attempts INT NOT NULL DEFAULT 0,
    error JSON NULL,
    created_at DATETIME(6) NOT NULL,
    finished_at DATETIME(6) NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_workflow_compensations (workflow_id, sequence),
    KEY ix_workflow_compensations_open (status)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS workflow_events (
    id BIGINT NOT NULL AUTO_INCREMENT,
    workflow_id BIGINT NOT NULL,
    event VARCHAR(40) NOT NULL,
    step VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    visit INT NULL,
    branch VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    attempt INT NULL,
    n INT NULL,
    detail JSON NULL,
    created_at DATETIME(6) NOT NULL,
    PRIMARY KEY (id),
    KEY ix_workflow_events_run (workflow_id, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
