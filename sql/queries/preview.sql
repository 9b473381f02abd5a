-- What a preview reads of the transaction that it rolls back, and what posted books hold.

-- name: bound_lock_waits(seconds)!
-- Whoever only looks does not queue behind a posting at work.
SET SESSION innodb_lock_wait_timeout = :seconds;

-- name: journal_of_posting(posting_id)
-- The journal of one posting, with the names of its accounts.
SELECT j.urutan, j.tanggal_wib, j.kode_akun, COALESCE(a.nama, '') AS nama_akun, j.keterangan, j.debet, j.kredit
FROM jurnal j
LEFT JOIN akun a ON a.kode_akun = j.kode_akun
WHERE j.posting_id = :posting_id
ORDER BY j.urutan, j.id;

-- name: stock_card_of_posting(posting_id)
-- The stock card of one posting, in line order.
SELECT kode_barang, lot, gudang_kode, tanggal_wib, masuk, keluar, harga_pokok, nilai
FROM kartu_stok
WHERE posting_id = :posting_id
ORDER BY id;
