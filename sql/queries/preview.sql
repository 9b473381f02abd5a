-- What a preview shows beside the rows that it was told of.

-- name: account_names(codes)
-- What accounts are called.
SELECT kode_akun, nama FROM akun WHERE kode_akun IN :codes;

-- name: posted_at(posting_id)$
-- The posting instant (WIB) of what was posted; NULL where it has no rows.
SELECT COALESCE(
    (SELECT MIN(tanggal_wib) FROM jurnal WHERE posting_id = :posting_id),
    (SELECT MIN(tanggal_wib) FROM kartu_stok WHERE posting_id = :posting_id));
