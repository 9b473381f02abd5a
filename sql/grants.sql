-- Who may do what: one account per program, with no more than its statements need. Table by table, so that a new table
-- cannot be forgotten (a test fails until it stands here). What is not named is refused, with 1142 or 1143.
--
--   everest_consumer    python -m ingest_consumer consume
--   everest_relay       python -m ingest_consumer relay
--   everest_reconciler  python -m everest.reconciler
--   everest_tasks       Airflow's tasks (connection everest_mysql): the only program that writes books
--   everest_pages       the pages in Airflow's UI: they read the books and can't change them
--   everest_operator    python -m everest, python -m ingest_consumer dead-letters: people; may also post by hand
--   everest_reader      reports, analysts: reads
--
-- An administrator makes the accounts once (and those that are not used, locked):
--   CREATE USER 'everest_tasks'@'%' IDENTIFIED BY '...';
-- The schema's owner, who needs all rights on it WITH GRANT OPTION, migrates and then grants, after every upgrade:
--   python -m everest migrate && python -m everest grant
-- Granting a second time changes nothing. It takes nothing away: who had more before keeps it until a REVOKE.
-- UPDATE names columns: a status can be changed, what the row is about can't. Some locks need it (MySQL 8 lets only
-- those lock a row who could change it); then it is a column that decides nothing.
-- Several accounts wait for each other by GET_LOCK, which needs no right.

-- The submitted document. Whoever posts locks it; corrections come from the operator and the pages.
GRANT SELECT ON so_headers_staging TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT UPDATE (dibuat_oleh) ON so_headers_staging TO 'everest_tasks'@'%';
GRANT INSERT ON so_headers_staging TO 'everest_pages'@'%', 'everest_operator'@'%';
GRANT UPDATE (gudang_kode, tanggal_opname, tanggal_posting, snapshot_at, otorisasi_level, diotorisasi_oleh, diotorisasi_at) ON so_headers_staging TO 'everest_pages'@'%', 'everest_operator'@'%';
GRANT UPDATE (baris_dihapus_at) ON so_headers_staging TO 'everest_operator'@'%';

GRANT SELECT ON so_details_staging TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT INSERT, DELETE ON so_details_staging TO 'everest_pages'@'%', 'everest_operator'@'%';

-- The accounting document. Pages may draw a number for a new one; they change and delete none.
GRANT SELECT ON transaksi TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT INSERT, UPDATE ON transaksi TO 'everest_tasks'@'%', 'everest_operator'@'%';
GRANT INSERT (id, nomer_nota, jenis, gudang_kode) ON transaksi TO 'everest_pages'@'%';

-- Computed lines, made anew by each attempt until they are posted.
GRANT SELECT ON transaksi_values TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT INSERT, DELETE ON transaksi_values TO 'everest_tasks'@'%', 'everest_operator'@'%';

-- Master data belongs to other programs.
GRANT SELECT ON gudang TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT UPDATE (nama) ON gudang TO 'everest_tasks'@'%', 'everest_operator'@'%';
GRANT SELECT ON akun TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT SELECT ON akun_gudang TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT SELECT ON kebijakan_selisih TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';

-- Groups of items, for reports: kept by people, from the item master.
GRANT SELECT ON kelompok_barang TO 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT INSERT, UPDATE, DELETE ON kelompok_barang TO 'everest_operator'@'%';

-- Months. A posting makes the row that it locks; it can't open a closed month. People close and open them.
GRANT SELECT ON periode_akuntansi TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT INSERT, UPDATE (periode) ON periode_akuntansi TO 'everest_tasks'@'%', 'everest_operator'@'%';
GRANT UPDATE (status) ON periode_akuntansi TO 'everest_operator'@'%';

-- The books. A posted row is never changed, so nobody has UPDATE; on posting_sets it is the lock of whoever asks for a
-- reversal, by a column that is a label. DELETE is for leftovers of an unfinished attempt, which are archived first.
GRANT UPDATE (dag_run_id) ON posting_sets TO 'everest_tasks'@'%', 'everest_pages'@'%', 'everest_operator'@'%';
GRANT SELECT ON posting_sets TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT INSERT ON posting_sets TO 'everest_tasks'@'%', 'everest_operator'@'%';
GRANT SELECT ON jurnal TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT INSERT, DELETE ON jurnal TO 'everest_tasks'@'%', 'everest_operator'@'%';
GRANT SELECT ON kartu_stok TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT INSERT, DELETE ON kartu_stok TO 'everest_tasks'@'%', 'everest_operator'@'%';
GRANT SELECT ON v_kartu_stok TO 'everest_tasks'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT SELECT ON jurnal_arsip TO 'everest_tasks'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT INSERT ON jurnal_arsip TO 'everest_tasks'@'%', 'everest_operator'@'%';
GRANT SELECT ON kartu_stok_arsip TO 'everest_tasks'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT INSERT ON kartu_stok_arsip TO 'everest_tasks'@'%', 'everest_operator'@'%';

-- What was tried. Written by tasks, and by whoever ends a run: a deadline, a rejected approval, a correction.
GRANT SELECT, INSERT ON posting_attempts TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%';
GRANT SELECT ON posting_attempts TO 'everest_reader'@'%';

-- Who did what. Nobody changes or empties it, whatever their program is made to do.
GRANT SELECT, INSERT ON audit_log TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%';
GRANT INSERT ON audit_log TO 'everest_consumer'@'%';
GRANT SELECT ON audit_log TO 'everest_reader'@'%';

-- The job. transaksi_id, nomer_nota and payload never change.
GRANT SELECT ON rabbit_publish_shadow TO 'everest_consumer'@'%', 'everest_relay'@'%', 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT INSERT ON rabbit_publish_shadow TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%';
GRANT UPDATE (publish_status, published_at, worker_status, worker_at, dead_lettered_at) ON rabbit_publish_shadow TO 'everest_relay'@'%';
GRANT UPDATE (worker_status, worker_at, attempts, dag_id, dag_run_id, n, response, error_code, error, dead_lettered_at, handed_over_at, handed_over_body, requeued, requeued_at) ON rabbit_publish_shadow TO 'everest_consumer'@'%';
GRANT UPDATE (workflow_id, worker_status, worker_at, attempts, current_step, response, error_code, error, dag_id, dag_run_id, n, dead_lettered_at, handed_over_at, handed_over_body, requeued, requeued_at) ON rabbit_publish_shadow TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%';
-- `everest workflow purge`; the statement itself spares every row of a document.
GRANT DELETE ON rabbit_publish_shadow TO 'everest_operator'@'%';

-- Messages to send: written by whoever changes a run, published by the relay alone.
GRANT SELECT, INSERT ON outbox TO 'everest_consumer'@'%', 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%';
GRANT DELETE ON outbox TO 'everest_consumer'@'%', 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%';
GRANT SELECT, UPDATE (available_at, published_at, attempts, last_error, created_at) ON outbox TO 'everest_relay'@'%';
GRANT SELECT ON outbox TO 'everest_reader'@'%';

-- Workflows. (MariaDB asks for UPDATE on every column of an INSERT ... ON DUPLICATE KEY UPDATE, hence whole rows of runs
-- and steps.)
GRANT SELECT ON workflow_runs TO 'everest_consumer'@'%', 'everest_relay'@'%', 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';
GRANT INSERT, UPDATE ON workflow_runs TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%';
GRANT UPDATE (status, n, dag_run_id, carrier_shadow_id, recovered, waiting, wakes_at, paused_status, error_code, error, failed_n, failed_attempt, deadline_at, finished_at, updated_at) ON workflow_runs TO 'everest_consumer'@'%';
GRANT DELETE ON workflow_runs TO 'everest_operator'@'%';

GRANT SELECT, INSERT, UPDATE ON workflow_steps TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%';
GRANT SELECT, INSERT, UPDATE ON workflow_items TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%';
GRANT SELECT, INSERT, UPDATE (consumed_step, consumed_visit, consumed_at) ON workflow_signals TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%';
GRANT SELECT, INSERT, DELETE ON workflow_chunks TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%';
GRANT SELECT, INSERT, UPDATE (status, attempts, error, finished_at) ON workflow_compensations TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%';
GRANT SELECT ON workflow_compensations TO 'everest_consumer'@'%';
GRANT SELECT, INSERT ON workflow_events TO 'everest_tasks'@'%', 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_operator'@'%';
GRANT INSERT ON workflow_events TO 'everest_consumer'@'%';
GRANT DELETE ON workflow_steps TO 'everest_operator'@'%';
GRANT DELETE ON workflow_items TO 'everest_operator'@'%';
GRANT DELETE ON workflow_signals TO 'everest_operator'@'%';
GRANT DELETE ON workflow_compensations TO 'everest_operator'@'%';
GRANT DELETE ON workflow_events TO 'everest_operator'@'%';
GRANT SELECT ON workflow_steps TO 'everest_reader'@'%';
GRANT SELECT ON workflow_items TO 'everest_reader'@'%';
GRANT SELECT ON workflow_signals TO 'everest_reader'@'%';
GRANT SELECT ON workflow_compensations TO 'everest_reader'@'%';
GRANT SELECT ON workflow_events TO 'everest_reader'@'%';

-- The migration runner is the owner's; whether the schema is up to date may be asked.
GRANT SELECT ON schema_migrations TO 'everest_reconciler'@'%', 'everest_operator'@'%', 'everest_reader'@'%';

-- A process says that it lives; whoever looks may see it. The tables are small, so a program's own row is not fenced.
GRANT SELECT, INSERT, UPDATE, DELETE ON process_heartbeats TO 'everest_consumer'@'%', 'everest_relay'@'%', 'everest_reconciler'@'%';
GRANT SELECT ON process_heartbeats TO 'everest_pages'@'%', 'everest_operator'@'%', 'everest_reader'@'%';

-- Broken messages, copied from the queue and forgotten by the relay. People may ask that one is taken out, no more.
GRANT SELECT, INSERT, UPDATE, DELETE ON broken_letters TO 'everest_relay'@'%';
GRANT SELECT, UPDATE (dropped_by, dropped_at) ON broken_letters TO 'everest_pages'@'%';
GRANT SELECT ON broken_letters TO 'everest_operator'@'%', 'everest_reader'@'%';

-- The audit of the books: a nightly DAG, and `everest audit` by hand.
GRANT SELECT, INSERT, UPDATE ON audit_runs TO 'everest_tasks'@'%', 'everest_operator'@'%';
GRANT SELECT, INSERT, UPDATE ON audit_findings TO 'everest_tasks'@'%', 'everest_operator'@'%';
GRANT SELECT ON audit_runs TO 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_reader'@'%';
GRANT SELECT ON audit_findings TO 'everest_reconciler'@'%', 'everest_pages'@'%', 'everest_reader'@'%';
