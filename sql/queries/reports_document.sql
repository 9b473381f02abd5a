-- The files of one document: what belongs to exactly this accounting document, whatever else carries its nota.
-- SELECTs only, run inside one snapshot.

-- name: posting_of_document(transaksi_id)^
-- Its posting, as `postings` has it. The header of a reversal is that of what it reverses.
SELECT p.id, p.transaksi_id, p.nomer_nota, p.jenis, o.nomer_nota AS membalik,
       t.tanggal_wib, t.gudang_kode, h.id AS header_id, h.tanggal_opname, h.diotorisasi_oleh,
       (SELECT COUNT(*) FROM transaksi_values v WHERE v.transaksi_id = p.transaksi_id) AS jumlah_baris
FROM posting_sets p
JOIN transaksi t ON t.id = p.transaksi_id
LEFT JOIN posting_sets o ON o.id = p.membalik_id
LEFT JOIN so_headers_staging h ON h.transaksi_id = COALESCE(o.transaksi_id, p.transaksi_id)
WHERE p.transaksi_id = :transaksi_id;

-- name: document_as_sent(transaksi_id)^
-- What was submitted, with the status of its newest job.
SELECT h.id AS header_id, h.transaksi_id, h.nomer_nota, h.gudang_kode, h.tanggal_opname, h.diotorisasi_oleh,
       (SELECT s.worker_status FROM rabbit_publish_shadow s WHERE s.transaksi_id = h.transaksi_id
        ORDER BY s.id DESC LIMIT 1) AS worker_status
FROM so_headers_staging h
WHERE h.transaksi_id = :transaksi_id;

-- name: journal_of_document(transaksi_id)
-- The general-ledger rows of its posting.
SELECT j.tanggal_wib, j.nomer_nota, p.jenis, j.urutan, j.kode_akun, a.nama, j.keterangan, j.debet, j.kredit, j.posting_id,
       j.id
FROM posting_sets p
JOIN jurnal j ON j.posting_id = p.id
LEFT JOIN akun a ON a.kode_akun = j.kode_akun
WHERE p.transaksi_id = :transaksi_id
ORDER BY j.urutan, j.id;

-- name: stock_card_of_document(transaksi_id)
-- The movements of its posting.
SELECT k.tanggal_wib, k.nomer_nota, k.kode_barang, k.lot, k.gudang_kode, k.masuk, k.keluar, k.harga_pokok, k.nilai,
       k.posting_id, k.id
FROM posting_sets p
JOIN kartu_stok k ON k.posting_id = p.id
WHERE p.transaksi_id = :transaksi_id
ORDER BY k.id;
