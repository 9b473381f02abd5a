-- Corrections made on the pages: the lines were replaced, and another person has not authorised them yet.

-- name: waiting_correction(transaksi_id)^
-- Who replaced the lines that stand, and why, while the document is FAILED and below the second authorisation.
SELECT a.id AS number, h.nomer_nota, a.actor, a.reason, a.created_at, h.zona_waktu
FROM so_headers_staging h
JOIN audit_log a ON a.id = (
    SELECT MAX(l.id) FROM audit_log l WHERE l.transaksi_id = h.transaksi_id AND l.action = 'replace'
)
WHERE h.transaksi_id = :transaksi_id AND h.otorisasi_level = 1
  AND EXISTS (SELECT 1 FROM rabbit_publish_shadow s
              WHERE s.transaksi_id = h.transaksi_id AND s.worker_status = 'FAILED');

-- name: authorise_correction(header_id, otorisasi_level, diotorisasi_oleh, diotorisasi_at)!
-- Only while it waits; the instant is in the zone of the row.
UPDATE so_headers_staging
SET otorisasi_level = :otorisasi_level, diotorisasi_oleh = :diotorisasi_oleh, diotorisasi_at = :diotorisasi_at
WHERE id = :header_id AND otorisasi_level = 1;

-- name: lines_as_sent(header_id, size)
-- A document's lines as they were sent, at most so many.
SELECT kode_barang, qty_sistem, qty_fisik, harga_pokok, lot, gudang_kode, satuan, alasan
FROM so_details_staging
WHERE header_id = :header_id
ORDER BY baris
LIMIT :size;
