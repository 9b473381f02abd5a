-- The page "Dokumen": lists and one document, for people. SELECTs only; every list has a LIMIT.
-- A document that several senders announced is shown once, by the job that carries it. NULL parameters filter nothing:
-- the driver writes them into the statement, so the server folds them away before it chooses an index. A name (`own`) is
-- looked up with up to a hundred blanks behind it: MySQL's own collation tells a trailing blank from none.

-- name: page_of_documents(before_id, status, nota, gudang_kode, opname_since, opname_until, amount_min, amount_max, own, stuck_before, size)
-- Newest first; before_id is the last job of the page before. A warehouse is looked up in its indexes first: the
-- comparison that decides has none, and a rare one would have every document joined. nilai: what was posted; of a
-- reversal on its way, what it reverses; else what the lines would post as they stand (one without its numbers: nothing).
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, s.worker_status, s.worker_at, s.created_at, s.current_step,
       s.error_code, s.attempts,
       IF(JSON_VALID(s.response), LEFT(JSON_UNQUOTE(JSON_EXTRACT(s.response, '$.message')), 300), NULL) AS message,
       IF(JSON_VALID(s.response), JSON_EXTRACT(s.response, '$.said'), NULL) AS said,
       COALESCE(h.gudang_kode, t.gudang_kode) AS gudang_kode, h.tanggal_opname, h.dibuat_oleh, t.jenis,
       p.id AS posting_id, p.baris_selisih,
       COALESCE(p.total_debet,
                (SELECT o.total_debet FROM posting_sets o
                 WHERE r.workflow = 'opname_reversal'
                   AND o.id = CAST(JSON_UNQUOTE(JSON_EXTRACT(r.payload, '$.posting_id')) AS SIGNED)),
                (SELECT SUM(ROUND(ABS(d.qty_fisik - d.qty_sistem) * d.harga_pokok, 2))
                 FROM so_details_staging d WHERE d.header_id = h.id)) AS nilai
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
  AND ((:amount_min IS NULL AND :amount_max IS NULL)
       OR COALESCE((SELECT x.total_debet FROM posting_sets x WHERE x.transaksi_id = s.transaksi_id),
                   (SELECT o.total_debet FROM workflow_runs x JOIN posting_sets o
                           ON o.id = CAST(JSON_UNQUOTE(JSON_EXTRACT(x.payload, '$.posting_id')) AS SIGNED)
                    WHERE x.id = s.workflow_id AND x.workflow = 'opname_reversal'),
                   (SELECT SUM(ROUND(ABS(d.qty_fisik - d.qty_sistem) * d.harga_pokok, 2))
                    FROM so_headers_staging x JOIN so_details_staging d ON d.header_id = x.id
                    WHERE x.transaksi_id = s.transaksi_id))
          BETWEEN COALESCE(:amount_min, 0) AND COALESCE(:amount_max, 1000000000000000000000000))
  AND (:own IS NULL OR (h.dibuat_oleh BETWEEN :own AND RPAD(:own, 100, ' ')
       AND LOWER(TRIM(h.dibuat_oleh)) COLLATE utf8mb4_bin = LOWER(TRIM(:own))))
  AND (:stuck_before IS NULL
       OR (s.worker_status IN ('PENDING', 'PROCESSING') AND COALESCE(s.worker_at, s.created_at) < :stuck_before))
ORDER BY s.id DESC
LIMIT :size;

-- name: count_by_status()
-- Jobs of documents by status, and since when the oldest of each stands there; an index has it all.
SELECT s.worker_status, COUNT(*) AS n, MIN(s.worker_at) AS oldest_at
FROM rabbit_publish_shadow s
WHERE s.transaksi_id IS NOT NULL
GROUP BY s.worker_status;

-- name: oldest_untouched()$
-- Since when the first document stands in the queue that nobody has taken yet; it has no instant of a worker. Numbers
-- rise with time, and the index of the statuses has them in order.
SELECT s.created_at
FROM rabbit_publish_shadow s
WHERE s.worker_status = 'PENDING' AND s.worker_at IS NULL AND s.transaksi_id IS NOT NULL
ORDER BY s.id
LIMIT 1;

-- name: count_others_by_status()
-- How many of them are not the job that carries their document: somebody else announced it, too. They share a number
-- with the one that does, so these few are found without looking at all.
SELECT f.worker_status, COUNT(*) AS n
FROM (SELECT transaksi_id FROM rabbit_publish_shadow WHERE transaksi_id IS NOT NULL
      GROUP BY transaksi_id HAVING COUNT(*) > 1) twice
JOIN rabbit_publish_shadow f ON f.transaksi_id = twice.transaksi_id
JOIN workflow_runs r ON r.id = f.workflow_id
WHERE r.carrier_shadow_id <> f.id
GROUP BY f.worker_status;

-- name: count_found_by_status(nota, gudang_kode, opname_since, opname_until, amount_min, amount_max, own, stuck_before)
-- The same of the documents that `page_of_documents` finds with these filters; stuck: how many of them are. Nothing is
-- joined for a filter that is not given.
SELECT s.worker_status, COUNT(*) AS n, MIN(COALESCE(s.worker_at, s.created_at)) AS oldest_at,
       SUM(s.worker_status IN ('PENDING', 'PROCESSING') AND COALESCE(s.worker_at, s.created_at) < :stuck_before) AS stuck
FROM rabbit_publish_shadow s
LEFT JOIN (
    SELECT f.id
    FROM (SELECT transaksi_id FROM rabbit_publish_shadow WHERE transaksi_id IS NOT NULL
          GROUP BY transaksi_id HAVING COUNT(*) > 1) twice
    JOIN rabbit_publish_shadow f ON f.transaksi_id = twice.transaksi_id
    JOIN workflow_runs r ON r.id = f.workflow_id
    WHERE r.carrier_shadow_id <> f.id) others ON others.id = s.id
WHERE s.transaksi_id IS NOT NULL AND others.id IS NULL
  AND (:nota IS NULL OR s.nomer_nota LIKE :nota)
  AND (:gudang_kode IS NULL OR s.transaksi_id IN (
      SELECT a.transaksi_id FROM so_headers_staging a WHERE a.gudang_kode = :gudang_kode
      UNION ALL
      SELECT t.id FROM transaksi t LEFT JOIN so_headers_staging h ON h.transaksi_id = t.id
      WHERE t.gudang_kode = :gudang_kode AND h.gudang_kode IS NULL))
  AND ((:opname_since IS NULL AND :opname_until IS NULL) OR s.transaksi_id IN (
      SELECT h.transaksi_id FROM so_headers_staging h
      WHERE (:opname_since IS NULL OR h.tanggal_opname >= :opname_since)
        AND (:opname_until IS NULL OR h.tanggal_opname <= :opname_until)))
  AND ((:amount_min IS NULL AND :amount_max IS NULL)
       OR COALESCE((SELECT x.total_debet FROM posting_sets x WHERE x.transaksi_id = s.transaksi_id),
                   (SELECT o.total_debet FROM workflow_runs x JOIN posting_sets o
                           ON o.id = CAST(JSON_UNQUOTE(JSON_EXTRACT(x.payload, '$.posting_id')) AS SIGNED)
                    WHERE x.id = s.workflow_id AND x.workflow = 'opname_reversal'),
                   (SELECT SUM(ROUND(ABS(d.qty_fisik - d.qty_sistem) * d.harga_pokok, 2))
                    FROM so_headers_staging x JOIN so_details_staging d ON d.header_id = x.id
                    WHERE x.transaksi_id = s.transaksi_id))
          BETWEEN COALESCE(:amount_min, 0) AND COALESCE(:amount_max, 1000000000000000000000000))
  AND (:own IS NULL OR s.transaksi_id IN (
      SELECT h.transaksi_id FROM so_headers_staging h
      WHERE h.dibuat_oleh BETWEEN :own AND RPAD(:own, 100, ' ')
        AND LOWER(TRIM(h.dibuat_oleh)) COLLATE utf8mb4_bin = LOWER(TRIM(:own))))
GROUP BY s.worker_status;

-- name: count_stuck(stuck_before)$
-- Documents at work or in the queue, without news for too long.
SELECT COUNT(*)
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.worker_status IN ('PENDING', 'PROCESSING') AND s.transaksi_id IS NOT NULL
  AND (s.worker_at < :stuck_before OR (s.worker_at IS NULL AND s.created_at < :stuck_before))
  AND (r.id IS NULL OR r.carrier_shadow_id IS NULL OR r.carrier_shadow_id = s.id);

-- name: warehouses()
-- For the choice in filters.
SELECT gudang_kode, nama FROM gudang ORDER BY gudang_kode LIMIT 5000;

-- name: document(shadow_id)^
-- One document with what became of it; a reversal on its way names what it reverses.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, s.workflow_id, s.publish_status, s.published_at,
       s.worker_status, s.worker_at, s.attempts, s.current_step, s.response, s.error_code, s.error, s.dag_id,
       s.dag_run_id, s.n, s.dead_lettered_at, s.created_at, s.updated_at,
       COALESCE(h.gudang_kode, t.gudang_kode) AS gudang_kode, g.nama AS gudang_nama, h.id AS header_id,
       h.tanggal_opname, h.tanggal_posting, h.snapshot_at, h.zona_waktu, h.otorisasi_level, h.diotorisasi_oleh,
       h.dibuat_oleh, t.jenis, t.tanggal_wib,
       p.id AS posting_id, p.jenis AS posting_jenis, p.total_debet, p.total_kredit, p.baris_selisih,
       p.created_at AS posted_at, b.id AS dibalik_oleh_id, b.transaksi_id AS dibalik_oleh_transaksi,
       b.nomer_nota AS dibalik_oleh_nota, a.id AS membalik_id, a.transaksi_id AS membalik_transaksi,
       a.nomer_nota AS membalik_nota, ah.id AS membalik_header_id,
       (SELECT COUNT(*) FROM transaksi_values v WHERE v.transaksi_id = s.transaksi_id) AS values_count
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
LEFT JOIN so_headers_staging h ON h.transaksi_id = s.transaksi_id
LEFT JOIN transaksi t ON t.id = s.transaksi_id
LEFT JOIN gudang g ON g.gudang_kode = COALESCE(h.gudang_kode, t.gudang_kode)
LEFT JOIN posting_sets p ON p.transaksi_id = s.transaksi_id
LEFT JOIN posting_sets b ON b.membalik_id = p.id
LEFT JOIN posting_sets a
       ON a.id = COALESCE(p.membalik_id, CASE WHEN r.workflow = 'opname_reversal' THEN
                          CAST(JSON_UNQUOTE(JSON_EXTRACT(r.payload, '$.posting_id')) AS SIGNED) END)
LEFT JOIN so_headers_staging ah ON ah.transaksi_id = a.transaksi_id
WHERE s.id = :shadow_id AND s.transaksi_id IS NOT NULL;

-- name: last_begun(workflow_id)$
-- The number of the last DAG run in which a step began.
SELECT MAX(n) FROM workflow_events WHERE workflow_id = :workflow_id AND event = 'started';

-- name: lines_changed(transaksi_id, header_id)$
-- Whether the document says something else than when its lines were computed: it was corrected since.
SELECT EXISTS (
    SELECT 1 FROM so_details_staging d
    LEFT JOIN transaksi_values v ON v.transaksi_id = :transaksi_id AND v.baris = d.baris
    WHERE d.header_id = :header_id
      AND NOT (v.kode_barang <=> d.kode_barang AND v.lot <=> COALESCE(d.lot, '') AND v.qty_sistem <=> d.qty_sistem
               AND v.qty_fisik <=> d.qty_fisik AND v.harga_pokok <=> d.harga_pokok)
) OR EXISTS (
    SELECT 1 FROM transaksi_values v
    WHERE v.transaksi_id = :transaksi_id
      AND NOT EXISTS (SELECT 1 FROM so_details_staging d WHERE d.header_id = :header_id AND d.baris = v.baris)
);

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

-- name: largest_lines(transaksi_id, is_shortage, size)
-- The lines with the largest surplus, or shortage, by value.
SELECT baris, kode_barang, nilai_debet, nilai_kredit
FROM transaksi_values
WHERE transaksi_id = :transaksi_id AND CASE WHEN :is_shortage THEN nilai_kredit ELSE nilai_debet END > 0
ORDER BY CASE WHEN :is_shortage THEN nilai_kredit ELSE nilai_debet END DESC, baris
LIMIT :size;

-- name: computed_lines(transaksi_id, header_id, search, only_variance, only_flawed, flawed, sort, is_descending, size, skip)
-- Computed lines, by one of their columns. Unit and reason are the staging row's, unless it is another item's now. What
-- has no value comes last, whichever way; lines that are equal come in the order of the document.
SELECT v.baris, v.kode_barang, v.lot, v.gudang_kode, d.satuan, v.qty_sistem, v.qty_fisik, v.harga_pokok, v.selisih_qty,
       v.nilai_debet, v.nilai_kredit, d.alasan
FROM transaksi_values v
LEFT JOIN so_details_staging d ON d.header_id = :header_id AND d.baris = v.baris AND d.kode_barang = v.kode_barang
WHERE v.transaksi_id = :transaksi_id AND (:search IS NULL OR v.kode_barang LIKE :search OR v.lot LIKE :search)
  AND (NOT :only_variance OR v.selisih_qty <> 0)
  AND (NOT :only_flawed OR v.baris IN :flawed)
ORDER BY CASE :sort WHEN 'book' THEN v.qty_sistem IS NULL WHEN 'counted' THEN v.qty_fisik IS NULL
                    WHEN 'cost' THEN v.harga_pokok IS NULL WHEN 'unit' THEN COALESCE(d.satuan, '') = ''
                    WHEN 'reason' THEN COALESCE(d.alasan, '') = '' WHEN 'lot' THEN v.lot = '' END,
         CASE WHEN :sort = 'item' AND NOT :is_descending THEN v.kode_barang END,
         CASE WHEN :sort = 'item' AND :is_descending THEN v.kode_barang END DESC,
         CASE WHEN :sort = 'lot' AND NOT :is_descending THEN v.lot END,
         CASE WHEN :sort = 'lot' AND :is_descending THEN v.lot END DESC,
         CASE WHEN :sort = 'warehouse' AND NOT :is_descending THEN v.gudang_kode END,
         CASE WHEN :sort = 'warehouse' AND :is_descending THEN v.gudang_kode END DESC,
         CASE WHEN :sort = 'unit' AND NOT :is_descending THEN d.satuan END,
         CASE WHEN :sort = 'unit' AND :is_descending THEN d.satuan END DESC,
         CASE WHEN :sort = 'reason' AND NOT :is_descending THEN d.alasan END,
         CASE WHEN :sort = 'reason' AND :is_descending THEN d.alasan END DESC,
         CASE WHEN :is_descending THEN -1 ELSE 1 END
             * CASE :sort WHEN 'line' THEN v.baris WHEN 'book' THEN v.qty_sistem WHEN 'counted' THEN v.qty_fisik
                          WHEN 'difference' THEN v.selisih_qty WHEN 'cost' THEN v.harga_pokok
                          WHEN 'surplus' THEN v.nilai_debet WHEN 'shortage' THEN v.nilai_kredit
                          WHEN 'problem' THEN v.baris IN :flawed END,
         v.baris
LIMIT :size OFFSET :skip;

-- name: count_computed(transaksi_id, search, only_variance, only_flawed, flawed, before_line)$
-- How many lines the search finds, or (before_line) how many of them stand before a line in the document.
SELECT COUNT(*)
FROM transaksi_values
WHERE transaksi_id = :transaksi_id AND (:search IS NULL OR kode_barang LIKE :search OR lot LIKE :search)
  AND (NOT :only_variance OR selisih_qty <> 0)
  AND (NOT :only_flawed OR baris IN :flawed)
  AND (:before_line IS NULL OR baris < :before_line);

-- name: sorted_staged_lines(header_id, search, only_flawed, flawed, sort, is_descending, size, skip)
-- Lines as they were sent, by one of their columns; as `computed_lines`.
SELECT baris, kode_barang, lot, gudang_kode, satuan, qty_sistem, qty_fisik, harga_pokok, NULL AS selisih_qty,
       NULL AS nilai_debet, NULL AS nilai_kredit, alasan
FROM so_details_staging
WHERE header_id = :header_id AND (:search IS NULL OR kode_barang LIKE :search OR lot LIKE :search)
  AND (NOT :only_flawed OR baris IN :flawed)
ORDER BY CASE :sort WHEN 'book' THEN qty_sistem IS NULL WHEN 'counted' THEN qty_fisik IS NULL
                    WHEN 'cost' THEN harga_pokok IS NULL WHEN 'unit' THEN COALESCE(satuan, '') = ''
                    WHEN 'reason' THEN COALESCE(alasan, '') = '' WHEN 'lot' THEN COALESCE(lot, '') = ''
                    WHEN 'item' THEN kode_barang IS NULL WHEN 'warehouse' THEN gudang_kode IS NULL END,
         CASE WHEN :sort = 'item' AND NOT :is_descending THEN kode_barang END,
         CASE WHEN :sort = 'item' AND :is_descending THEN kode_barang END DESC,
         CASE WHEN :sort = 'lot' AND NOT :is_descending THEN lot END,
         CASE WHEN :sort = 'lot' AND :is_descending THEN lot END DESC,
         CASE WHEN :sort = 'warehouse' AND NOT :is_descending THEN gudang_kode END,
         CASE WHEN :sort = 'warehouse' AND :is_descending THEN gudang_kode END DESC,
         CASE WHEN :sort = 'unit' AND NOT :is_descending THEN satuan END,
         CASE WHEN :sort = 'unit' AND :is_descending THEN satuan END DESC,
         CASE WHEN :sort = 'reason' AND NOT :is_descending THEN alasan END,
         CASE WHEN :sort = 'reason' AND :is_descending THEN alasan END DESC,
         CASE WHEN :is_descending THEN -1 ELSE 1 END
             * CASE :sort WHEN 'line' THEN baris WHEN 'book' THEN qty_sistem WHEN 'counted' THEN qty_fisik
                          WHEN 'cost' THEN harga_pokok WHEN 'problem' THEN baris IN :flawed END,
         baris
LIMIT :size OFFSET :skip;

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

-- name: count_sorted_staged(header_id, search, only_flawed, flawed, before_line)$
-- As `count_computed`.
SELECT COUNT(*)
FROM so_details_staging
WHERE header_id = :header_id AND (:search IS NULL OR kode_barang LIKE :search OR lot LIKE :search)
  AND (NOT :only_flawed OR baris IN :flawed)
  AND (:before_line IS NULL OR baris < :before_line);

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
