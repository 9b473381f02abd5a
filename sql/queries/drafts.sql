-- Drafts: documents that were submitted on the pages and not authorised yet. No job and no run stand beside them.
-- otorisasi_level 1 = waits for another person, 0 = withdrawn; from 2 on it is a document like any other.

-- name: insert_draft(transaksi_id, nomer_nota, gudang_kode, tanggal_opname, tanggal_posting, snapshot_at, dibuat_oleh, submit_token)!
-- The header's unique keys decide between two clicks.
INSERT INTO so_headers_staging
    (transaksi_id, nomer_nota, gudang_kode, tanggal_opname, tanggal_posting, snapshot_at, otorisasi_level,
     dibuat_oleh, submit_token, zona_waktu, created_at)
VALUES
    (:transaksi_id, :nomer_nota, :gudang_kode, :tanggal_opname, :tanggal_posting, :snapshot_at, 1,
     :dibuat_oleh, :submit_token, 'UTC', UTC_TIMESTAMP(6));

-- name: lock_draft(transaksi_id)^
-- Its header, until the transaction ends, and whether it has a job already.
SELECT h.id, h.nomer_nota, h.otorisasi_level, h.dibuat_oleh,
       EXISTS (SELECT 1 FROM rabbit_publish_shadow s WHERE s.transaksi_id = h.transaksi_id) AS has_job
FROM so_headers_staging h
WHERE h.transaksi_id = :transaksi_id AND h.zona_waktu = 'UTC'
FOR UPDATE;

-- name: authorise_draft(header_id, otorisasi_level, diotorisasi_oleh)!
-- Only while it waits.
UPDATE so_headers_staging
SET otorisasi_level = :otorisasi_level, diotorisasi_oleh = :diotorisasi_oleh, diotorisasi_at = UTC_TIMESTAMP(6)
WHERE id = :header_id AND otorisasi_level = 1;

-- name: withdraw_draft(header_id)!
-- It stays as it is and is never posted.
UPDATE so_headers_staging SET otorisasi_level = 0 WHERE id = :header_id AND otorisasi_level = 1;

-- name: open_drafts(own, after_id, size)
-- What waits for authorisation, the oldest first; after_id is the last header of the page before. Lines are counted of
-- the drafts of this page only.
SELECT h.id, h.transaksi_id, h.nomer_nota, h.gudang_kode, h.tanggal_opname, h.tanggal_posting, h.dibuat_oleh,
       h.created_at, COUNT(l.id) AS jumlah_baris, COUNT(NULLIF(l.qty_fisik <> l.qty_sistem, 0)) AS beda
FROM (
    SELECT o.id, o.transaksi_id, o.nomer_nota, o.gudang_kode, o.tanggal_opname, o.tanggal_posting, o.dibuat_oleh, o.created_at
    FROM so_headers_staging o
    WHERE o.otorisasi_level = 1 AND o.zona_waktu = 'UTC' AND o.submit_token IS NOT NULL
      AND o.id > :after_id
      AND (:own IS NULL OR (o.dibuat_oleh BETWEEN :own AND RPAD(:own, 100, ' ')
       AND LOWER(TRIM(o.dibuat_oleh)) COLLATE utf8mb4_bin = LOWER(TRIM(:own))))
      AND NOT EXISTS (SELECT 1 FROM rabbit_publish_shadow s WHERE s.transaksi_id = o.transaksi_id)
    ORDER BY o.id
    LIMIT :size
) h
LEFT JOIN so_details_staging l ON l.header_id = h.id
GROUP BY h.id, h.transaksi_id, h.nomer_nota, h.gudang_kode, h.tanggal_opname, h.tanggal_posting, h.dibuat_oleh, h.created_at
ORDER BY h.id;

-- name: draft(transaksi_id)^
-- One of them, whatever became of it.
SELECT h.id, h.transaksi_id, h.nomer_nota, h.gudang_kode, h.tanggal_opname, h.tanggal_posting, h.snapshot_at,
       h.otorisasi_level, h.dibuat_oleh, h.created_at
FROM so_headers_staging h
WHERE h.transaksi_id = :transaksi_id AND h.zona_waktu = 'UTC';

-- name: count_open_drafts(own)^
-- How many wait, and since when the oldest does.
SELECT COUNT(*) AS n, MIN(h.created_at) AS oldest_at
FROM so_headers_staging h
WHERE h.otorisasi_level = 1 AND h.zona_waktu = 'UTC' AND h.submit_token IS NOT NULL
  AND (:own IS NULL OR (h.dibuat_oleh BETWEEN :own AND RPAD(:own, 100, ' ')
       AND LOWER(TRIM(h.dibuat_oleh)) COLLATE utf8mb4_bin = LOWER(TRIM(:own))))
  AND NOT EXISTS (SELECT 1 FROM rabbit_publish_shadow s WHERE s.transaksi_id = h.transaksi_id);

-- name: draft_lines(header_id, search, only_variance, sort, size, skip)
-- Lines of a draft as they were sent. The worth of a line is computed by the rules of posting; here it only orders.
SELECT baris, kode_barang, lot, gudang_kode, satuan, qty_sistem, qty_fisik, harga_pokok, alasan
FROM so_details_staging
WHERE header_id = :header_id AND (:search IS NULL OR kode_barang LIKE :search OR lot LIKE :search)
  AND (NOT :only_variance OR qty_fisik <> qty_sistem)
ORDER BY CASE :sort WHEN 'surplus' THEN (qty_sistem - qty_fisik) * harga_pokok
                    WHEN 'shortage' THEN (qty_fisik - qty_sistem) * harga_pokok END,
         CASE :sort WHEN 'item' THEN kode_barang END, baris
LIMIT :size OFFSET :skip;

-- name: count_draft_lines(header_id, search, only_variance)^
-- How many lines the search finds, and how many of them differ.
SELECT COUNT(*) AS baris, COUNT(NULLIF(qty_fisik <> qty_sistem, 0)) AS baris_selisih
FROM so_details_staging
WHERE header_id = :header_id AND (:search IS NULL OR kode_barang LIKE :search OR lot LIKE :search)
  AND (NOT :only_variance OR qty_fisik <> qty_sistem);
