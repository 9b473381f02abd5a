-- The page "Dokumen": lists and one document, for people. SELECTs only; every list has a LIMIT.
-- A document that several senders announced is shown once, by the job that carries it. NULL parameters filter nothing:
-- the driver writes them into the statement, so the server folds them away before it chooses an index.

-- name: page_of_documents(before_id, status, nota, gudang_kode, opname_since, opname_until, amount_min, amount_max, own, stuck_before, size)
-- Newest first; before_id is the last job of the page before. A warehouse is looked up in its indexes first: the
-- comparison that decides has none, and a rare one would have every document joined.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, s.worker_status, s.worker_at, s.created_at, s.current_step,
       s.error_code, s.attempts, LEFT(JSON_UNQUOTE(JSON_EXTRACT(s.response, '$.message')), 300) AS message,
       COALESCE(h.gudang_kode, t.gudang_kode) AS gudang_kode, h.tanggal_opname, h.dibuat_oleh, t.jenis,
       p.id AS posting_id, p.total_debet, p.baris_selisih
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
LEFT JOIN so_headers_staging h ON h.transaksi_id = s.transaksi_id
LEFT JOIN transaksi t ON t.id = s.transaksi_id
LEFT JOIN posting_sets p ON p.transaksi_id = s.transaksi_id
WHERE s.transaksi_id IS NOT NULL
  AND s.id < :before_id
  AND (r.id IS NULL OR r.carrier_shadow_id IS NULL OR r.carrier_shadow_id = s.id)
  AND (:status IS NULL OR s.worker_status = :status)
  AND (:nota IS NULL OR s.nomer_nota LIKE :nota)
  AND (:gudang_kode IS NULL
       OR (COALESCE(h.gudang_kode, t.gudang_kode) = :gudang_kode
           AND (s.transaksi_id IN (SELECT a.transaksi_id FROM so_headers_staging a WHERE a.gudang_kode = :gudang_kode)
                OR s.transaksi_id IN (SELECT b.id FROM transaksi b WHERE b.gudang_kode = :gudang_kode))))
  AND (:opname_since IS NULL OR h.tanggal_opname >= :opname_since)
  AND (:opname_until IS NULL OR h.tanggal_opname <= :opname_until)
  AND (:amount_min IS NULL OR p.total_debet >= :amount_min)
  AND (:amount_max IS NULL OR p.total_debet <= :amount_max)
  AND (:own IS NULL OR h.dibuat_oleh = :own)
  AND (:stuck_before IS NULL
       OR (s.worker_status IN ('PENDING', 'PROCESSING') AND COALESCE(s.worker_at, s.created_at) < :stuck_before))
ORDER BY s.id DESC
LIMIT :size;

-- name: count_by_status()
-- Jobs of documents by status, and since when the oldest of each stands there.
SELECT s.worker_status, COUNT(*) AS n, MIN(s.worker_at) AS oldest_at
FROM rabbit_publish_shadow s
WHERE s.transaksi_id IS NOT NULL
GROUP BY s.worker_status;

-- name: count_own_by_status(own)
-- The same for what one person submitted.
SELECT s.worker_status, COUNT(*) AS n, MIN(s.worker_at) AS oldest_at
FROM so_headers_staging h
JOIN rabbit_publish_shadow s ON s.transaksi_id = h.transaksi_id
WHERE h.dibuat_oleh = :own
GROUP BY s.worker_status;

-- name: count_stuck(stuck_before)$
-- At work or in the queue, without news for too long.
SELECT COUNT(*)
FROM rabbit_publish_shadow
WHERE worker_status IN ('PENDING', 'PROCESSING') AND transaksi_id IS NOT NULL
  AND (worker_at < :stuck_before OR (worker_at IS NULL AND created_at < :stuck_before));

-- name: warehouses()
-- For the choice in filters.
SELECT gudang_kode, nama FROM gudang ORDER BY gudang_kode LIMIT 500;

-- name: document(shadow_id)^
-- One document with what became of it.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, s.workflow_id, s.publish_status, s.published_at,
       s.worker_status, s.worker_at, s.attempts, s.current_step, s.response, s.error_code, s.error, s.dag_id,
       s.dag_run_id, s.n, s.dead_lettered_at, s.created_at, s.updated_at,
       COALESCE(h.gudang_kode, t.gudang_kode) AS gudang_kode, g.nama AS gudang_nama, h.id AS header_id,
       h.tanggal_opname, h.tanggal_posting, h.snapshot_at, h.zona_waktu, h.otorisasi_level, h.diotorisasi_oleh,
       h.dibuat_oleh, t.jenis, t.tanggal_wib,
       p.id AS posting_id, p.jenis AS posting_jenis, p.membalik_id, p.total_debet, p.total_kredit, p.baris_selisih,
       p.created_at AS posted_at, b.id AS dibalik_oleh_id, b.transaksi_id AS dibalik_oleh_transaksi,
       b.nomer_nota AS dibalik_oleh_nota, a.transaksi_id AS membalik_transaksi, a.nomer_nota AS membalik_nota
FROM rabbit_publish_shadow s
LEFT JOIN so_headers_staging h ON h.transaksi_id = s.transaksi_id
LEFT JOIN transaksi t ON t.id = s.transaksi_id
LEFT JOIN gudang g ON g.gudang_kode = COALESCE(h.gudang_kode, t.gudang_kode)
LEFT JOIN posting_sets p ON p.transaksi_id = s.transaksi_id
LEFT JOIN posting_sets b ON b.membalik_id = p.id
LEFT JOIN posting_sets a ON a.id = p.membalik_id
WHERE s.id = :shadow_id AND s.transaksi_id IS NOT NULL;

-- name: job_of(transaksi_id)$
-- The job that stands for a document: the carrier of its run, else its newest.
SELECT s.id
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.transaksi_id = :transaksi_id
ORDER BY s.id = r.carrier_shadow_id DESC, s.id DESC
LIMIT 1;

-- name: value_summary(transaksi_id)^
-- What the computed lines add up to.
SELECT COUNT(*) AS baris, COALESCE(SUM(selisih_qty <> 0), 0) AS baris_selisih,
       COALESCE(SUM(nilai_debet), 0) AS surplus, COALESCE(SUM(nilai_kredit), 0) AS shortage,
       COALESCE(SUM(nilai_debet > 0), 0) AS baris_lebih, COALESCE(SUM(nilai_kredit > 0), 0) AS baris_kurang
FROM transaksi_values
WHERE transaksi_id = :transaksi_id;

-- name: values_by_line(transaksi_id, search, only_variance, size, skip)
-- Computed lines in the order of the document.
SELECT baris, kode_barang, lot, gudang_kode, qty_sistem, qty_fisik, harga_pokok, selisih_qty, nilai_debet, nilai_kredit
FROM transaksi_values
WHERE transaksi_id = :transaksi_id AND (:search IS NULL OR kode_barang LIKE :search OR lot LIKE :search)
  AND (NOT :only_variance OR selisih_qty <> 0)
ORDER BY baris
LIMIT :size OFFSET :skip;

-- name: values_by_item(transaksi_id, search, only_variance, size, skip)
-- By item code.
SELECT baris, kode_barang, lot, gudang_kode, qty_sistem, qty_fisik, harga_pokok, selisih_qty, nilai_debet, nilai_kredit
FROM transaksi_values
WHERE transaksi_id = :transaksi_id AND (:search IS NULL OR kode_barang LIKE :search OR lot LIKE :search)
  AND (NOT :only_variance OR selisih_qty <> 0)
ORDER BY kode_barang, lot, gudang_kode
LIMIT :size OFFSET :skip;

-- name: values_by_surplus(transaksi_id, search, only_variance, size, skip)
-- The largest surplus first.
SELECT baris, kode_barang, lot, gudang_kode, qty_sistem, qty_fisik, harga_pokok, selisih_qty, nilai_debet, nilai_kredit
FROM transaksi_values
WHERE transaksi_id = :transaksi_id AND (:search IS NULL OR kode_barang LIKE :search OR lot LIKE :search)
  AND (NOT :only_variance OR selisih_qty <> 0)
ORDER BY nilai_debet - nilai_kredit DESC, baris
LIMIT :size OFFSET :skip;

-- name: values_by_shortage(transaksi_id, search, only_variance, size, skip)
-- The largest shortage first.
SELECT baris, kode_barang, lot, gudang_kode, qty_sistem, qty_fisik, harga_pokok, selisih_qty, nilai_debet, nilai_kredit
FROM transaksi_values
WHERE transaksi_id = :transaksi_id AND (:search IS NULL OR kode_barang LIKE :search OR lot LIKE :search)
  AND (NOT :only_variance OR selisih_qty <> 0)
ORDER BY nilai_kredit - nilai_debet DESC, baris
LIMIT :size OFFSET :skip;

-- name: count_values(transaksi_id, search, only_variance)$
-- How many lines the search finds.
SELECT COUNT(*)
FROM transaksi_values
WHERE transaksi_id = :transaksi_id AND (:search IS NULL OR kode_barang LIKE :search OR lot LIKE :search)
  AND (NOT :only_variance OR selisih_qty <> 0);

-- name: staged_lines(header_id, search, size, skip)
-- Lines as they were sent, where nothing is computed yet (or could not be).
SELECT baris, kode_barang, lot, gudang_kode, qty_sistem, qty_fisik, harga_pokok, NULL AS selisih_qty,
       NULL AS nilai_debet, NULL AS nilai_kredit
FROM so_details_staging
WHERE header_id = :header_id AND (:search IS NULL OR kode_barang LIKE :search OR lot LIKE :search)
ORDER BY baris
LIMIT :size OFFSET :skip;

-- name: count_staged(header_id, search)$
-- How many lines the search finds.
SELECT COUNT(*)
FROM so_details_staging
WHERE header_id = :header_id AND (:search IS NULL OR kode_barang LIKE :search OR lot LIKE :search);

-- name: journal_of(posting_id)
-- The journal rows of a posting: four at most.
SELECT j.urutan, j.tanggal_wib, j.kode_akun, a.nama, j.keterangan, j.debet, j.kredit
FROM jurnal j
LEFT JOIN akun a ON a.kode_akun = j.kode_akun
WHERE j.posting_id = :posting_id
ORDER BY j.urutan
LIMIT 50;

-- name: stock_card_of(posting_id, after_id, size)
-- The stock-card rows of a posting; after_id is the last id of the page before.
SELECT id, kode_barang, lot, gudang_kode, tanggal_wib, masuk, keluar, harga_pokok, nilai
FROM kartu_stok
WHERE posting_id = :posting_id AND id > :after_id
ORDER BY id
LIMIT :size;

-- name: audit_of(transaksi_id, size)
-- What people and the system did to a document, newest first.
SELECT created_at, actor, action, reason
FROM audit_log
WHERE transaksi_id = :transaksi_id
ORDER BY id DESC
LIMIT :size;

-- name: events_of(workflow_id, size)
-- What happened to the run of a document, newest first.
SELECT event, step, visit, attempt, n, created_at
FROM workflow_events
WHERE workflow_id = :workflow_id
ORDER BY id DESC
LIMIT :size;
