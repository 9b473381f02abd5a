-- Accounting months: closed and opened by people. A posting holds its month shared, closing holds it alone. A word that
-- somebody wrote by hand is read as in books.sql.

-- name: hold_period(periode)$
-- A month, exclusive: waits for the postings that hold it, and lets none in until the transaction ends.
SELECT IF(UPPER(TRIM(status)) = 'OPEN', 'OPEN', 'CLOSED') FROM periode_akuntansi WHERE periode = :periode FOR UPDATE;

-- name: insert_period(periode)!
-- A month without a row is open; the row is there to be locked.
INSERT INTO periode_akuntansi (periode, status) VALUES (:periode, 'OPEN')
ON DUPLICATE KEY UPDATE periode = periode_akuntansi.periode;

-- name: set_status(periode, expected, status)!
-- OPEN -> CLOSED or back.
UPDATE periode_akuntansi SET status = :status
WHERE periode = :periode AND IF(UPPER(TRIM(status)) = 'OPEN', 'OPEN', 'CLOSED') = :expected;

-- name: periods()
-- Every month that anybody opened, closed or posted in, as far as it has a row.
SELECT periode, IF(UPPER(TRIM(status)) = 'OPEN', 'OPEN', 'CLOSED') AS status FROM periode_akuntansi ORDER BY periode;

-- name: postings_by_period()
-- How many postings stand in each month.
SELECT LEFT(CAST(t.tanggal_wib AS CHAR), 7) AS periode, COUNT(*) AS postings
FROM posting_sets p
JOIN transaksi t ON t.id = p.transaksi_id
WHERE t.tanggal_wib IS NOT NULL
GROUP BY LEFT(CAST(t.tanggal_wib AS CHAR), 7);

-- name: unposted()
-- Jobs of counts and reversals that have not posted and may still do so, with the header of the count; the row that
-- carries a document before those that wait with it, one at work before a failed one.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota AS job_nota, s.worker_status, s.error_code, r.workflow,
       h.id, h.nomer_nota, h.gudang_kode, h.tanggal_opname, h.tanggal_posting, h.snapshot_at, h.otorisasi_level,
       h.diotorisasi_oleh, h.diotorisasi_at, h.dibuat_oleh, h.zona_waktu, h.created_at
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
LEFT JOIN so_headers_staging h ON h.transaksi_id = s.transaksi_id
WHERE s.worker_status IN ('PENDING', 'PROCESSING', 'WAITING', 'FAILED')
  AND s.transaksi_id IS NOT NULL
  AND (r.workflow IS NULL OR r.workflow IN ('opname_posting', 'opname_reversal'))
  AND NOT EXISTS (SELECT 1 FROM posting_sets p WHERE p.transaksi_id = s.transaksi_id)
ORDER BY s.worker_status = 'FAILED', s.id = r.carrier_shadow_id DESC, s.id;
