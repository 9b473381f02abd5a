-- What the closing reads of the books, and the one row it writes per thing it did.

-- name: active_warehouses()
-- Every warehouse that is in use.
SELECT gudang_kode FROM gudang WHERE aktif = 1 ORDER BY gudang_kode;

-- name: open_documents(gudang_kode, first_day, next_month)$
-- Stock counts of the month that are not in the books yet.
SELECT COUNT(*)
FROM so_headers_staging h
LEFT JOIN posting_sets p ON p.transaksi_id = h.transaksi_id
WHERE h.gudang_kode = :gudang_kode AND p.id IS NULL
  AND COALESCE(h.tanggal_posting, h.tanggal_opname) >= :first_day
  AND COALESCE(h.tanggal_posting, h.tanggal_opname) < :next_month;

-- name: movements(gudang_kode, first_day, next_month)$
-- Rows of the stock card in the month.
SELECT COUNT(*)
FROM kartu_stok
WHERE gudang_kode = :gudang_kode AND tanggal_wib >= :first_day AND tanggal_wib < :next_month;

-- name: note(action, workflow_id, reason, detail)!
-- What the closing did.
INSERT INTO audit_log (actor, action, workflow_id, reason, after_value)
VALUES ('monthly_closing', :action, :workflow_id, :reason, :detail);
