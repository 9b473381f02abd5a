-- What the audit of the books found, and when it looked.

CREATE TABLE IF NOT EXISTS audit_runs (
    id BIGINT NOT NULL AUTO_INCREMENT,
    invariant VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    actor VARCHAR(100) NOT NULL,
    dag_run_id VARCHAR(250) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    -- only postings made since then were looked at; NULL = everything
    since_at DATETIME(6) NULL,
    outcome VARCHAR(20) NOT NULL,
    found INT NOT NULL DEFAULT 0,
    new_found INT NOT NULL DEFAULT 0,
    resolved INT NOT NULL DEFAULT 0,
    note VARCHAR(1000) NULL,
    started_at DATETIME(6) NOT NULL,
    finished_at DATETIME(6) NULL,
    PRIMARY KEY (id),
    KEY ix_audit_runs_invariant (invariant, id),
    CONSTRAINT ck_audit_runs_outcome CHECK (outcome IN ('RUNNING', 'CLEAN', 'FINDINGS', 'NOT_CHECKED'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS audit_findings (
    id BIGINT NOT NULL AUTO_INCREMENT,
    invariant VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    -- the same fault has the same key in every audit
    finding_key VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    pesan VARCHAR(1000) NOT NULL,
    detail JSON NULL,
    first_seen_at DATETIME(6) NOT NULL,
    last_seen_at DATETIME(6) NOT NULL,
    first_run_id BIGINT NOT NULL,
    last_run_id BIGINT NOT NULL,
    -- an audit looked for it and did not find it any more; NULL = it stands
    resolved_at DATETIME(6) NULL,
    reopened INT NOT NULL DEFAULT 0,
    PRIMARY KEY (id),
    UNIQUE KEY uq_audit_findings_key (invariant, finding_key),
    KEY ix_audit_findings_open (resolved_at, first_seen_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
