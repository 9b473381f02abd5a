-- A job as its sender sees it, the messages to send, and the audit trail.

CREATE TABLE IF NOT EXISTS rabbit_publish_shadow (
    id BIGINT NOT NULL AUTO_INCREMENT,
    transaksi_id BIGINT NULL,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    workflow_id BIGINT NULL,
    payload LONGTEXT NULL,
    publish_status VARCHAR(20) NOT NULL DEFAULT 'PENDING',
    published_at DATETIME(6) NULL,
    worker_status VARCHAR(20) NOT NULL DEFAULT 'PENDING',
    worker_at DATETIME(6) NULL,
    attempts INT NOT NULL DEFAULT 0,
    current_step VARCHAR(100) NULL,
    response JSON NULL,
    -- the code of a failure (state protocol: 403 gets no dead letter); the same number stands in response
    error_code INT NULL,
    error TEXT NULL,
    dag_id VARCHAR(200) NULL,
    dag_run_id VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    -- number of the announced or owning DAG run; NULL = nobody announced one yet (a foreign row)
    n INT NULL,
    dead_lettered_at DATETIME(6) NULL,
    -- set when a consumer gave up holding the delivery of a run still at work; the reconciler answers for it
    handed_over_at DATETIME(6) NULL,
    handed_over_body LONGTEXT NULL,
    -- how often the reconciler put this row's message back for the same n, and when last
    requeued INT NOT NULL DEFAULT 0,
    requeued_at DATETIME(6) NULL,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    updated_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    PRIMARY KEY (id),
    KEY ix_shadow_transaksi (transaksi_id),
    KEY ix_shadow_nota (nomer_nota),
    KEY ix_shadow_workflow (workflow_id),
    KEY ix_shadow_status (worker_status, worker_at),
    CONSTRAINT ck_shadow_publish_status CHECK (publish_status IN ('PENDING', 'PUBLISHED')),
    CONSTRAINT ck_shadow_worker_status CHECK (worker_status IN ('PENDING', 'PROCESSING', 'WAITING', 'FAILED', 'COMPLETED', 'CANCELLED'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS outbox (
    id BIGINT NOT NULL AUTO_INCREMENT,
    shadow_id BIGINT NULL,
    workflow_id BIGINT NULL,
    exchange VARCHAR(100) NOT NULL,
    routing_key VARCHAR(100) NOT NULL,
    body LONGTEXT NOT NULL,
    headers JSON NULL,
    available_at DATETIME(6) NOT NULL,
    published_at DATETIME(6) NULL,
    attempts INT NOT NULL DEFAULT 0,
    last_error VARCHAR(500) NULL,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (id),
    KEY ix_outbox_due (published_at, available_at),
    KEY ix_outbox_shadow (shadow_id),
    KEY ix_outbox_workflow (workflow_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS audit_log (
    id BIGINT NOT NULL AUTO_INCREMENT,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    actor VARCHAR(100) NOT NULL,
    action VARCHAR(50) NOT NULL,
    transaksi_id BIGINT NULL,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    shadow_id BIGINT NULL,
    workflow_id BIGINT NULL,
    reason VARCHAR(500) NULL,
    before_value JSON NULL,
    after_value JSON NULL,
    PRIMARY KEY (id),
    KEY ix_audit_transaksi (transaksi_id),
    KEY ix_audit_nota (nomer_nota)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

DROP TRIGGER IF EXISTS tr_audit_log_no_update;

CREATE TRIGGER tr_audit_log_no_update BEFORE UPDATE ON audit_log
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'audit_log is append-only';

DROP TRIGGER IF EXISTS tr_audit_log_no_delete;

CREATE TRIGGER tr_audit_log_no_delete BEFORE DELETE ON audit_log
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'audit_log is append-only';
