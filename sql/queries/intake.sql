-- Documents on their way in, and their jobs as their senders see them.
-- Lock order: header row, then run row, then shadow rows (state protocol, "Locks").

-- name: submitted_by_token(submit_token)^
-- The document that came with this token.
SELECT id, transaksi_id, nomer_nota, gudang_kode, tanggal_opname, tanggal_posting, snapshot_at, zona_waktu,
       baris_dihapus_at
FROM so_headers_staging
WHERE submit_token = :submit_token;

-- name: submitted_by_transaksi(transaksi_id)^
-- The document of this accounting document.
SELECT id, transaksi_id, nomer_nota, gudang_kode, tanggal_opname, tanggal_posting, snapshot_at, zona_waktu,
       baris_dihapus_at
FROM so_headers_staging
WHERE transaksi_id = :transaksi_id;

-- name: lines_of(header_id)
-- Its lines, as they are written by insert_lines.
SELECT baris, kode_barang, lot, gudang_kode, satuan, qty_sistem, qty_fisik, harga_pokok, alasan
FROM so_details_staging
WHERE header_id = :header_id
ORDER BY baris;

-- name: id_is_taken(transaksi_id, workflow, idempotency_key)$
-- Whether a document, a job, a run or a posting has this number already, though our counter just gave it out.
SELECT EXISTS (SELECT 1 FROM so_headers_staging WHERE transaksi_id = :transaksi_id)
    OR EXISTS (SELECT 1 FROM rabbit_publish_shadow WHERE transaksi_id = :transaksi_id)
    OR EXISTS (SELECT 1 FROM workflow_runs WHERE workflow = :workflow AND idempotency_key = :idempotency_key)
    OR EXISTS (SELECT 1 FROM posting_sets WHERE transaksi_id = :transaksi_id);

-- name: accounting_document(transaksi_id)^
-- The accounting document, if another program wrote it.
SELECT id, nomer_nota, jenis FROM transaksi WHERE id = :transaksi_id;

-- name: insert_accounting_document(transaksi_id, nomer_nota, jenis, gudang_kode)!
-- NULL takes the next id from the table's own counter; the workflow's step fills the rest.
INSERT INTO transaksi (id, nomer_nota, jenis, gudang_kode) VALUES (:transaksi_id, :nomer_nota, :jenis, :gudang_kode);

-- name: before_number()!
-- Where to go back to from a number that turns out to be another program's. Going back gives the row up and keeps the
-- counter, and needs no right to delete accounting documents.
SAVEPOINT everest_number;

-- name: back_before_number()!
ROLLBACK TO SAVEPOINT everest_number;

-- name: insert_header(transaksi_id, nomer_nota, gudang_kode, tanggal_opname, tanggal_posting, snapshot_at, otorisasi_level, diotorisasi_oleh, diotorisasi_at, dibuat_oleh, submit_token)!
-- Its unique keys decide between two senders of the same document.
INSERT INTO so_headers_staging
    (transaksi_id, nomer_nota, gudang_kode, tanggal_opname, tanggal_posting, snapshot_at, otorisasi_level,
     diotorisasi_oleh, diotorisasi_at, dibuat_oleh, submit_token, zona_waktu, created_at)
VALUES
    (:transaksi_id, :nomer_nota, :gudang_kode, :tanggal_opname, :tanggal_posting, :snapshot_at, :otorisasi_level,
     :diotorisasi_oleh, :diotorisasi_at, :dibuat_oleh, :submit_token, 'UTC', UTC_TIMESTAMP(6));

-- name: insert_lines(header_id, rows)!
-- Thousands of lines in one statement; decimals are text until their column.
INSERT INTO so_details_staging
    (header_id, baris, kode_barang, lot, gudang_kode, satuan, qty_sistem, qty_fisik, harga_pokok, alasan)
SELECT :header_id, j.baris, j.kode_barang, j.lot, j.gudang_kode, j.satuan, j.qty_sistem, j.qty_fisik, j.harga_pokok,
       j.alasan
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    baris INT PATH '$[0]' ERROR ON ERROR,
    kode_barang VARCHAR(64) PATH '$[1]' ERROR ON ERROR,
    lot VARCHAR(64) PATH '$[2]' ERROR ON ERROR,
    gudang_kode VARCHAR(40) PATH '$[3]' ERROR ON ERROR,
    satuan VARCHAR(20) PATH '$[4]' ERROR ON ERROR,
    qty_sistem DECIMAL(18,4) PATH '$[5]' ERROR ON ERROR,
    qty_fisik DECIMAL(18,4) PATH '$[6]' ERROR ON ERROR,
    harga_pokok DECIMAL(24,6) PATH '$[7]' ERROR ON ERROR,
    alasan VARCHAR(255) PATH '$[8]' ERROR ON ERROR
)) j;

-- name: delete_lines(header_id)!
-- Makes room for corrected lines; the old ones are kept in posting_attempts first.
DELETE FROM so_details_staging WHERE header_id = :header_id;

-- name: documents_of_nota(nomer_nota)
-- The documents that carry a nota, oldest first.
SELECT h.transaksi_id,
       EXISTS (SELECT 1 FROM posting_sets p WHERE p.transaksi_id = h.transaksi_id) AS is_posted,
       EXISTS (SELECT 1 FROM rabbit_publish_shadow s
               WHERE s.transaksi_id = h.transaksi_id AND s.worker_status = 'FAILED') AS is_failed
FROM so_headers_staging h
WHERE h.nomer_nota = :nomer_nota
ORDER BY h.transaksi_id;

-- name: header_as_written(header_id)^
-- The header's columns untouched, for the audit trail and for its zone. The caller holds its lock.
SELECT nomer_nota, gudang_kode, tanggal_opname, tanggal_posting, snapshot_at, otorisasi_level, diotorisasi_oleh,
       diotorisasi_at, dibuat_oleh, zona_waktu, created_at
FROM so_headers_staging
WHERE id = :header_id;

-- name: lock_jobs(transaksi_id)
-- The jobs of a document, held until the transaction ends; the caller holds the run row, if there is one.
SELECT id, worker_status, response, error_code, dag_run_id, n
FROM rabbit_publish_shadow
WHERE transaksi_id = :transaksi_id
ORDER BY id
FOR UPDATE;

-- name: correct_header(header_id, gudang_kode, tanggal_opname, tanggal_posting, snapshot_at, otorisasi_level, diotorisasi_oleh, diotorisasi_at)!
-- Who submitted it, its nota and its number stay. Instants are in the zone of the row.
UPDATE so_headers_staging
SET gudang_kode = :gudang_kode, tanggal_opname = :tanggal_opname, tanggal_posting = :tanggal_posting,
    snapshot_at = :snapshot_at, otorisasi_level = :otorisasi_level, diotorisasi_oleh = :diotorisasi_oleh,
    diotorisasi_at = :diotorisasi_at
WHERE id = :header_id;

-- name: audit(actor, action, transaksi_id, nomer_nota, shadow_id, workflow_id, reason, before_value, after_value)!
-- What a person did.
INSERT INTO audit_log
    (actor, action, transaksi_id, nomer_nota, shadow_id, workflow_id, reason, before_value, after_value, created_at)
VALUES
    (:actor, :action, :transaksi_id, :nomer_nota, :shadow_id, :workflow_id, :reason, :before_value, :after_value,
     UTC_TIMESTAMP(6));

-- name: job_of(transaksi_id)^
-- The job that stands for a document: the carrier of its run, else its newest.
SELECT s.id AS shadow_id, s.worker_status
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.transaksi_id = :transaksi_id
ORDER BY s.id = r.carrier_shadow_id DESC, s.id DESC
LIMIT 1;

-- name: ids_of_nota(nomer_nota)
-- Every job of a nota.
SELECT id FROM rabbit_publish_shadow WHERE nomer_nota = :nomer_nota;

-- name: jobs(shadow_ids)
-- Each job with what became of it: its posting (p), the posting that reversed it (b) or, before that posts,
-- the nota of the reversal on its way, and for a reversal the posting that it reverses (o; its key begins with it).
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, s.workflow_id, s.publish_status, s.published_at,
       s.worker_status, s.worker_at, s.attempts, s.current_step, s.response, s.error_code, s.error, s.dag_id,
       s.dag_run_id, s.n, s.dead_lettered_at, s.created_at, s.updated_at, r.carrier_shadow_id, r.workflow,
       COALESCE(h.gudang_kode, t.gudang_kode) AS gudang_kode, h.tanggal_opname, h.diotorisasi_oleh,
       COALESCE(h.dibuat_oleh, CASE WHEN o.id IS NOT NULL THEN JSON_UNQUOTE(JSON_EXTRACT(r.payload, '$.oleh')) END)
           AS dibuat_oleh,
       (SELECT COUNT(*) FROM so_details_staging d WHERE d.header_id = h.id) AS jumlah_baris, h.baris_dihapus_at,
       p.id AS posting_id, p.total_debet, p.total_kredit, p.baris_selisih, p.created_at AS posted_at,
       o.id AS membalik_id, o.nomer_nota AS membalik_nota, b.id AS dibalik_posting_id,
       COALESCE(b.nomer_nota, (
           SELECT s2.nomer_nota FROM workflow_runs r2 JOIN rabbit_publish_shadow s2 ON s2.id = r2.carrier_shadow_id
           WHERE r2.workflow = 'opname_reversal' AND r2.idempotency_key LIKE CONCAT(p.id, '-%%')
             AND r2.status <> 'cancelled'
           ORDER BY r2.id DESC
           LIMIT 1
       )) AS dibalik_nota,
       (SELECT q.id FROM posting_sets q WHERE q.nomer_nota = s.nomer_nota AND q.jenis = 'POSTING') AS nota_posting_id
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
LEFT JOIN so_headers_staging h ON h.transaksi_id = s.transaksi_id
LEFT JOIN transaksi t ON t.id = s.transaksi_id
LEFT JOIN posting_sets p ON p.transaksi_id = s.transaksi_id
LEFT JOIN posting_sets b ON b.membalik_id = p.id
LEFT JOIN posting_sets o ON o.id = COALESCE(
    p.membalik_id,
    CASE WHEN r.workflow = 'opname_reversal' THEN CAST(SUBSTRING_INDEX(r.idempotency_key, '-', 1) AS UNSIGNED) END
)
WHERE s.id IN :shadow_ids
ORDER BY s.id;

-- name: staged_without_job(nomer_nota)$
-- Whether a nota stands in staging though nobody announced it.
SELECT EXISTS (SELECT 1 FROM so_headers_staging WHERE nomer_nota = :nomer_nota);
