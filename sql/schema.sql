-- The whole schema as one reads it. A live database gets there through sql/migrations/; a test builds both and
-- compares them, so a change goes into a new migration and into this file.
-- Keys are utf8mb4_bin, everything is InnoDB and utf8mb4, instants (*_at) are UTC, *_wib and tanggal* are WIB.

-- Stock-count documents as they are submitted, the accounting documents they become, and the master data they name.
-- No foreign keys on tables that other programs write: their insert order is not ours to decide.

CREATE TABLE so_headers_staging (
    id BIGINT NOT NULL AUTO_INCREMENT,
    transaksi_id BIGINT NOT NULL,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    tanggal_opname DATE NOT NULL,
    tanggal_posting DATE NULL,
    snapshot_at DATETIME(6) NULL,
    otorisasi_level INT NOT NULL DEFAULT 0,
    diotorisasi_oleh VARCHAR(100) NULL,
    diotorisasi_at DATETIME(6) NULL,
    dibuat_oleh VARCHAR(100) NULL,
    submit_token VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    -- zone of this row's instants; NULL = a foreign program wrote it, the setting EVEREST_FOREIGN_ZONE names the zone
    zona_waktu VARCHAR(40) NULL,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    -- when `purge` took its lines away; NULL = they stand
    baris_dihapus_at DATETIME(6) NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_so_headers_transaksi (transaksi_id),
    UNIQUE KEY uq_so_headers_submit_token (submit_token),
    KEY ix_so_headers_nota (nomer_nota),
    KEY ix_so_headers_gudang (gudang_kode, id),
    KEY ix_so_headers_pengirim (dibuat_oleh, id),
    KEY ix_so_headers_tanggal (tanggal_opname, transaksi_id),
    KEY ix_so_headers_otorisasi (otorisasi_level, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TRIGGER tr_so_headers_created BEFORE INSERT ON so_headers_staging
FOR EACH ROW SET NEW.created_at = COALESCE(NEW.created_at, UTC_TIMESTAMP(6));

CREATE TABLE so_details_staging (
    id BIGINT NOT NULL AUTO_INCREMENT,
    header_id BIGINT NOT NULL,
    baris INT NOT NULL,
    kode_barang VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    lot VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL DEFAULT '',
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    satuan VARCHAR(20) NULL,
    qty_sistem DECIMAL(18,4) NULL,
    qty_fisik DECIMAL(18,4) NULL,
    harga_pokok DECIMAL(24,6) NULL,
    alasan VARCHAR(255) NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_so_details_baris (header_id, baris)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE transaksi (
    id BIGINT NOT NULL AUTO_INCREMENT,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    jenis VARCHAR(20) NOT NULL,
    tanggal_wib DATETIME NULL,
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    PRIMARY KEY (id),
    KEY ix_transaksi_nota (nomer_nota),
    KEY ix_transaksi_gudang (gudang_kode),
    KEY ix_transaksi_tanggal (tanggal_wib)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE transaksi_values (
    transaksi_id BIGINT NOT NULL,
    baris INT NOT NULL,
    kode_barang VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    lot VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    qty_sistem DECIMAL(18,4) NULL,
    qty_fisik DECIMAL(18,4) NULL,
    harga_pokok DECIMAL(24,6) NULL,
    selisih_qty DECIMAL(18,4) NOT NULL,
    nilai_debet DECIMAL(24,2) NOT NULL,
    nilai_kredit DECIMAL(24,2) NOT NULL,
    PRIMARY KEY (transaksi_id, baris),
    CONSTRAINT ck_transaksi_values_satu_sisi CHECK (nilai_debet >= 0 AND nilai_kredit >= 0 AND (nilai_debet = 0 OR nilai_kredit = 0))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE gudang (
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    nama VARCHAR(150) NOT NULL DEFAULT '',
    aktif TINYINT NOT NULL DEFAULT 1,
    PRIMARY KEY (gudang_kode)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE akun (
    kode_akun VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    nama VARCHAR(150) NOT NULL DEFAULT '',
    aktif TINYINT NOT NULL DEFAULT 1,
    PRIMARY KEY (kode_akun)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE akun_gudang (
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    akun_persediaan VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    akun_laba_selisih VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    akun_rugi_selisih VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    PRIMARY KEY (gudang_kode)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE periode_akuntansi (
    periode CHAR(7) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    status VARCHAR(10) NOT NULL DEFAULT 'OPEN',
    PRIMARY KEY (periode),
    CONSTRAINT ck_periode_status CHECK (status IN ('OPEN', 'CLOSED'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE kebijakan_selisih (
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    batas_dokumen DECIMAL(24,2) NULL,
    batas_baris DECIMAL(24,2) NULL,
    PRIMARY KEY (gudang_kode)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Which group an item belongs to, for reports; optional. An item that is not here has none.
CREATE TABLE kelompok_barang (
    kode_barang VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    kelompok VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (kode_barang)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- The chart of accounts needs the three accounts of posting-rules; a site that has its own rows keeps them.
INSERT INTO akun (kode_akun, nama) VALUES
    ('1010030030', 'Persediaan barang'),
    ('7010150', 'Laba selisih persediaan'),
    ('7020020', 'Rugi selisih persediaan');

-- The books: posting sets, journal, stock card, and the archive of what a posting replaced.
-- `sumber` is '' for rows of programs that do not know the column, 'LAMA' for rows that stood here before us.

CREATE TABLE posting_sets (
    id BIGINT NOT NULL AUTO_INCREMENT,
    transaksi_id BIGINT NOT NULL,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    jenis VARCHAR(20) NOT NULL DEFAULT 'POSTING',
    membalik_id BIGINT NULL,
    shadow_id BIGINT NULL,
    dag_run_id VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    input_hash CHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    total_debet DECIMAL(24,2) NOT NULL,
    total_kredit DECIMAL(24,2) NOT NULL,
    baris_selisih INT NOT NULL,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (id),
    UNIQUE KEY uq_posting_sets_nota (jenis, nomer_nota),
    UNIQUE KEY uq_posting_sets_transaksi (transaksi_id),
    UNIQUE KEY uq_posting_sets_membalik (membalik_id),
    UNIQUE KEY uq_posting_sets_nomer_nota (nomer_nota),
    KEY ix_posting_sets_nilai (total_debet),
    CONSTRAINT ck_posting_sets_jenis CHECK (jenis IN ('POSTING', 'PEMBALIKAN')),
    CONSTRAINT ck_posting_sets_seimbang CHECK (total_debet = total_kredit AND total_debet >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE jurnal (
    id BIGINT NOT NULL AUTO_INCREMENT,
    posting_id BIGINT NULL,
    urutan INT NULL,
    transaksi_id BIGINT NULL,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    sumber VARCHAR(20) NOT NULL DEFAULT '',
    tanggal_wib DATETIME NOT NULL,
    kode_akun VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    keterangan VARCHAR(255) NULL,
    debet DECIMAL(24,2) NOT NULL DEFAULT 0,
    kredit DECIMAL(24,2) NOT NULL DEFAULT 0,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (id),
    UNIQUE KEY uq_jurnal_posting_urutan (posting_id, urutan),
    KEY ix_jurnal_nota (nomer_nota, sumber),
    KEY ix_jurnal_akun_tanggal (kode_akun, tanggal_wib),
    KEY ix_jurnal_tanggal (tanggal_wib, posting_id),
    CONSTRAINT ck_jurnal_satu_sisi CHECK (debet >= 0 AND kredit >= 0 AND ((debet > 0) <> (kredit > 0)))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE kartu_stok (
    id BIGINT NOT NULL AUTO_INCREMENT,
    posting_id BIGINT NULL,
    transaksi_id BIGINT NULL,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    sumber VARCHAR(20) NOT NULL DEFAULT '',
    kode_barang VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    lot VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    tanggal_wib DATETIME NOT NULL,
    masuk DECIMAL(18,4) NOT NULL DEFAULT 0,
    keluar DECIMAL(18,4) NOT NULL DEFAULT 0,
    harga_pokok DECIMAL(24,6) NULL,
    nilai DECIMAL(24,2) NULL,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (id),
    KEY ix_kartu_stok_kartu (kode_barang, lot, gudang_kode, tanggal_wib, id),
    KEY ix_kartu_stok_posting (posting_id),
    KEY ix_kartu_stok_nota (nomer_nota, sumber),
    KEY ix_kartu_stok_masuk (gudang_kode, created_at, kode_barang),
    CONSTRAINT ck_kartu_stok_arah CHECK (masuk >= 0 AND keluar >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE jurnal_arsip (
    id BIGINT NOT NULL,
    posting_id BIGINT NULL,
    urutan INT NULL,
    transaksi_id BIGINT NULL,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    sumber VARCHAR(20) NOT NULL DEFAULT '',
    tanggal_wib DATETIME NOT NULL,
    kode_akun VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    keterangan VARCHAR(255) NULL,
    debet DECIMAL(24,2) NOT NULL DEFAULT 0,
    kredit DECIMAL(24,2) NOT NULL DEFAULT 0,
    created_at DATETIME(6) NOT NULL,
    diarsipkan_at DATETIME(6) NOT NULL,
    oleh_posting_id BIGINT NOT NULL,
    alasan VARCHAR(255) NOT NULL,
    PRIMARY KEY (id),
    KEY ix_jurnal_arsip_posting (oleh_posting_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE kartu_stok_arsip (
    id BIGINT NOT NULL,
    posting_id BIGINT NULL,
    transaksi_id BIGINT NULL,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    sumber VARCHAR(20) NOT NULL DEFAULT '',
    kode_barang VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    lot VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    tanggal_wib DATETIME NOT NULL,
    masuk DECIMAL(18,4) NOT NULL DEFAULT 0,
    keluar DECIMAL(18,4) NOT NULL DEFAULT 0,
    harga_pokok DECIMAL(24,6) NULL,
    nilai DECIMAL(24,2) NULL,
    created_at DATETIME(6) NOT NULL,
    diarsipkan_at DATETIME(6) NOT NULL,
    oleh_posting_id BIGINT NOT NULL,
    alasan VARCHAR(255) NOT NULL,
    PRIMARY KEY (id),
    KEY ix_kartu_stok_arsip_posting (oleh_posting_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE posting_attempts (
    id BIGINT NOT NULL AUTO_INCREMENT,
    transaksi_id BIGINT NOT NULL,
    n INT NOT NULL,
    dag_run_id VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    outcome VARCHAR(20) NOT NULL,
    code INT NULL,
    input_hash CHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    problems JSON NULL,
    replaced_lines JSON NULL,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (id),
    KEY ix_posting_attempts_transaksi (transaksi_id, n),
    CONSTRAINT ck_posting_attempts_outcome CHECK (outcome IN ('COMPLETED', 'FAILED', 'REPLACED'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE VIEW v_kartu_stok AS
SELECT k.id, k.posting_id, k.transaksi_id, k.nomer_nota, k.sumber, k.kode_barang, k.lot, k.gudang_kode, k.tanggal_wib,
       k.masuk, k.keluar, k.harga_pokok, k.nilai, k.created_at,
       SUM(k.masuk - k.keluar) OVER (
           PARTITION BY k.kode_barang, k.lot, k.gudang_kode ORDER BY k.tanggal_wib, k.id
           ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
       ) AS saldo
FROM kartu_stok k;

-- A job as its sender sees it, the messages to send, and the audit trail.

CREATE TABLE rabbit_publish_shadow (
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
    KEY ix_shadow_hitung (worker_status, transaksi_id, worker_at),
    KEY ix_shadow_surat (worker_status, dead_lettered_at, worker_at),
    CONSTRAINT ck_shadow_publish_status CHECK (publish_status IN ('PENDING', 'PUBLISHED')),
    CONSTRAINT ck_shadow_worker_status CHECK (worker_status IN ('PENDING', 'PROCESSING', 'WAITING', 'FAILED', 'COMPLETED', 'CANCELLED'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE outbox (
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

CREATE TABLE audit_log (
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

CREATE TRIGGER tr_audit_log_no_update BEFORE UPDATE ON audit_log
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'audit_log is append-only';

CREATE TRIGGER tr_audit_log_no_delete BEFORE DELETE ON audit_log
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'audit_log is append-only';

-- Durable workflows: runs, their steps by visit and attempt, items of a for_each, signals, chunks, compensations, events.

CREATE TABLE workflow_runs (
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

CREATE TABLE workflow_steps (
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

CREATE TABLE workflow_items (
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

CREATE TABLE workflow_signals (
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

CREATE TABLE workflow_chunks (
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

CREATE TABLE workflow_compensations (
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

CREATE TABLE workflow_events (
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

-- Which processes are there, and how they are: each writes its own row every few seconds. name: consumer, relay or
-- reconciler, instance: host:pid.

CREATE TABLE process_heartbeats (
    name VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    instance VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    started_at DATETIME(6) NOT NULL,
    seen_at DATETIME(6) NOT NULL,
    detail JSON NULL,
    PRIMARY KEY (name, instance),
    KEY ix_process_heartbeats_seen (seen_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Broken messages in the dead-letter queue, copied by the relay: the pages speak no AMQP, and show and drop them by these rows.

CREATE TABLE broken_letters (
    id BIGINT NOT NULL AUTO_INCREMENT,
    -- SHA-256 of the body: the same message twice is one row
    digest CHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    reason VARCHAR(500) NOT NULL,
    -- its beginning, undecodable bytes as \xNN; the whole stays in the queue
    body TEXT NOT NULL,
    body_bytes BIGINT NOT NULL,
    -- where it came from: exchange, routing key, deaths as the broker tells them
    origin VARCHAR(500) NOT NULL,
    copies INT NOT NULL,
    died_at DATETIME(6) NULL,
    first_seen_at DATETIME(6) NOT NULL,
    last_seen_at DATETIME(6) NOT NULL,
    -- a person wants it out of the queue; the relay takes it out afterwards
    dropped_by VARCHAR(100) NULL,
    dropped_at DATETIME(6) NULL,
    -- a whole reading of the queue did not find it any more; NULL = it lies there
    gone_at DATETIME(6) NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_broken_letters_digest (digest),
    KEY ix_broken_letters_gone (gone_at, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- What the audit of the books found, and when it looked.

CREATE TABLE audit_runs (
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

CREATE TABLE audit_findings (
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
    -- a person knows it, and why it stands; goes when it says something else
    diakui_oleh VARCHAR(100) NULL,
    diakui_at DATETIME(6) NULL,
    diakui_alasan VARCHAR(500) NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_audit_findings_key (invariant, finding_key),
    KEY ix_audit_findings_open (resolved_at, first_seen_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- What the migration runner remembers; applied_at NULL = the file is half applied.
CREATE TABLE schema_migrations (
    version INT NOT NULL,
    name VARCHAR(200) NOT NULL,
    checksum CHAR(64) NOT NULL,
    statements INT NOT NULL DEFAULT 0,
    applied_at DATETIME(6) NULL,
    PRIMARY KEY (version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
