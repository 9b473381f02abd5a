-- From one row of the books to everything that belongs to it, and back. SELECTs only.

-- name: nota_of_journal_row(row_id)^
-- The document of a journal row.
SELECT nomer_nota, transaksi_id, posting_id FROM jurnal WHERE id = :row_id;

-- name: nota_of_card_row(row_id)^
-- The document of a stock-card row.
SELECT nomer_nota, transaksi_id, posting_id FROM kartu_stok WHERE id = :row_id;

-- name: nota_of_posting(row_id)^
-- The document of a posting.
SELECT nomer_nota, transaksi_id, id AS posting_id FROM posting_sets WHERE id = :row_id;

-- name: documents(nomer_nota, transaksi_id)
-- Staged documents of a nota, or of an accounting document.
SELECT h.id, h.transaksi_id, h.nomer_nota, h.gudang_kode, h.tanggal_opname, h.tanggal_posting, h.snapshot_at,
       h.otorisasi_level, h.diotorisasi_oleh, h.diotorisasi_at, h.dibuat_oleh, h.zona_waktu, h.created_at,
       (SELECT COUNT(*) FROM so_details_staging d WHERE d.header_id = h.id) AS jumlah_baris
FROM so_headers_staging h
WHERE h.nomer_nota = :nomer_nota OR h.transaksi_id = :transaksi_id
ORDER BY h.id;

-- name: accounting_documents(nomer_nota, transaksi_id)
-- What bookkeeping knows of it.
SELECT id, nomer_nota, jenis, tanggal_wib, gudang_kode
FROM transaksi
WHERE nomer_nota = :nomer_nota OR id = :transaksi_id
ORDER BY id;

-- name: jobs(nomer_nota, transaksi_id)
-- Every job that was announced for it.
SELECT id, transaksi_id, nomer_nota, workflow_id, worker_status, worker_at, attempts, error_code, error, dag_id,
       dag_run_id, n, dead_lettered_at, IF(JSON_VALID(response), JSON_EXTRACT(response, '$.said'), NULL) AS said
FROM rabbit_publish_shadow
WHERE nomer_nota = :nomer_nota OR transaksi_id = :transaksi_id
ORDER BY id;

-- name: messages(shadow_ids)
-- What was sent for these jobs, and what is still to be sent.
SELECT id, shadow_id, exchange, routing_key, body, published_at, available_at, attempts, last_error
FROM outbox
WHERE shadow_id IN :shadow_ids
ORDER BY id;

-- name: runs(workflow_ids)
-- The workflow runs of these jobs.
SELECT id, workflow, version, status, current_step, n, dag_id, dag_run_id, created_at
FROM workflow_runs
WHERE id IN :workflow_ids
ORDER BY id;

-- name: steps(workflow_ids)
-- What their steps did, and in which DAG run.
SELECT id, workflow_id, step, visit, branch, status, attempt, n, started_at
FROM workflow_steps
WHERE workflow_id IN :workflow_ids
ORDER BY id;

-- name: postings(nomer_nota, transaksi_id)
-- Its postings, those that reverse them, and those that they reverse.
SELECT p.id, p.transaksi_id, p.nomer_nota, p.jenis, p.membalik_id, p.shadow_id, p.dag_run_id, p.total_debet,
       p.total_kredit, p.baris_selisih, p.created_at
FROM posting_sets p
WHERE p.nomer_nota = :nomer_nota OR p.transaksi_id = :transaksi_id
   OR p.membalik_id IN (SELECT q.id FROM posting_sets q
                        WHERE q.nomer_nota = :nomer_nota OR q.transaksi_id = :transaksi_id)
   OR p.id IN (SELECT q.membalik_id FROM posting_sets q
               WHERE q.nomer_nota = :nomer_nota OR q.transaksi_id = :transaksi_id)
ORDER BY p.id;

-- name: journal_rows(posting_ids)
-- The journal rows of these postings.
SELECT id, posting_id, nomer_nota, urutan, kode_akun, keterangan, tanggal_wib, debet, kredit
FROM jurnal
WHERE posting_id IN :posting_ids
ORDER BY posting_id, urutan;

-- name: journal_rows_without_posting(nomer_nota)
-- Journal rows of this nota that belong to no posting of ours.
SELECT id, posting_id, nomer_nota, urutan, kode_akun, keterangan, tanggal_wib, debet, kredit, sumber
FROM jurnal
WHERE nomer_nota = :nomer_nota AND posting_id IS NULL
ORDER BY id;

-- name: archived_rows(posting_ids)
-- Leftovers that these postings replaced.
SELECT id, oleh_posting_id, nomer_nota, kode_akun, alasan, diarsipkan_at, debet, kredit
FROM jurnal_arsip
WHERE oleh_posting_id IN :posting_ids
ORDER BY oleh_posting_id, id;

-- name: card_rows(posting_ids)
-- The stock-card rows of these postings.
SELECT id, posting_id, nomer_nota, kode_barang, lot, gudang_kode, tanggal_wib, masuk, keluar, nilai
FROM kartu_stok
WHERE posting_id IN :posting_ids
ORDER BY posting_id, id;
