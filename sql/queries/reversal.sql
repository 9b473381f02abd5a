-- Reversals: what was posted, read; its mirror, written; and who asked for it.
-- Lock order: the posting that is reversed is a business row, after month and warehouses (state protocol, "Locks").

-- name: posting(posting_id)^
-- A posting set and the nota of its reversal.
SELECT p.id, p.transaksi_id, p.nomer_nota, p.input_hash, p.total_debet, p.total_kredit, p.baris_selisih, p.jenis,
       b.nomer_nota AS dibalik_oleh
FROM posting_sets p
LEFT JOIN posting_sets b ON b.membalik_id = p.id
WHERE p.id = :posting_id;

-- name: warehouse_of(transaksi_id)$
-- The warehouse of an accounting document.
SELECT gudang_kode FROM transaksi WHERE id = :transaksi_id;

-- name: lock_namesakes(notas)
-- The posting, and every other one whose reversal could get the same name, in one order for all. Held until the
-- transaction ends: requests to reverse them come one after the other.
SELECT id FROM posting_sets WHERE nomer_nota LIKE :notas ESCAPE '!' ORDER BY nomer_nota FOR UPDATE;

-- name: reversal_of(posting_id)^
-- The reversal of a posting.
SELECT id, transaksi_id, nomer_nota, input_hash, total_debet, total_kredit, baris_selisih, jenis
FROM posting_sets
WHERE membalik_id = :posting_id;

-- name: warehouses(posting_id)
-- The warehouses that a posting moved, and that of its document.
SELECT gudang_kode FROM kartu_stok WHERE posting_id = :posting_id
UNION
SELECT t.gudang_kode FROM posting_sets p JOIN transaksi t ON t.id = p.transaksi_id
WHERE p.id = :posting_id AND t.gudang_kode IS NOT NULL;

-- name: journal(posting_id)
-- The journal rows of a posting.
SELECT urutan, kode_akun, keterangan, debet, kredit FROM jurnal WHERE posting_id = :posting_id ORDER BY urutan;

-- name: stock_card(posting_id)
-- The stock-card rows of a posting, in line order.
SELECT kode_barang, lot, gudang_kode, masuk, keluar, harga_pokok, nilai
FROM kartu_stok
WHERE posting_id = :posting_id
ORDER BY id;

-- name: insert_posting(transaksi_id, nomer_nota, membalik_id, shadow_id, dag_run_id, input_hash, total, baris_selisih)!
-- One reversal per posting: a second one is a duplicate key, whoever was first.
INSERT INTO posting_sets
    (transaksi_id, nomer_nota, jenis, membalik_id, shadow_id, dag_run_id, input_hash, total_debet, total_kredit,
     baris_selisih, created_at)
VALUES
    (:transaksi_id, :nomer_nota, 'PEMBALIKAN', :membalik_id, :shadow_id, :dag_run_id, :input_hash, :total, :total,
     :baris_selisih, UTC_TIMESTAMP(6));

-- name: write_document(transaksi_id, nomer_nota, tanggal_wib)!
-- The accounting document of a reversal stands since it was asked for; now it has its date.
INSERT INTO transaksi (id, nomer_nota, jenis, tanggal_wib) VALUES (:transaksi_id, :nomer_nota, 'PEMBALIKAN', :tanggal_wib)
ON DUPLICATE KEY UPDATE tanggal_wib = VALUES(tanggal_wib);

-- name: mirror_values(transaksi_id, original_transaksi_id)!
-- The lines that had a variance, with its sign turned. Nothing was counted, so there are no quantities.
INSERT INTO transaksi_values
    (transaksi_id, baris, kode_barang, lot, gudang_kode, qty_sistem, qty_fisik, harga_pokok, selisih_qty, nilai_debet,
     nilai_kredit)
SELECT :transaksi_id, v.baris, v.kode_barang, v.lot, v.gudang_kode, NULL, NULL, v.harga_pokok, -v.selisih_qty,
       v.nilai_kredit, v.nilai_debet
FROM transaksi_values v
WHERE v.transaksi_id = :original_transaksi_id AND v.selisih_qty <> 0;

-- name: insert_journal(posting_id, urutan, transaksi_id, nomer_nota, tanggal_wib, kode_akun, keterangan, debet, kredit)*!
-- The general-ledger rows of a reversal.
INSERT INTO jurnal
    (posting_id, urutan, transaksi_id, nomer_nota, sumber, tanggal_wib, kode_akun, keterangan, debet, kredit,
     created_at)
VALUES
    (:posting_id, :urutan, :transaksi_id, :nomer_nota, 'OPNAME', :tanggal_wib, :kode_akun, :keterangan, :debet,
     :kredit, UTC_TIMESTAMP(6));

-- name: mirror_stock_card(posting_id, transaksi_id, nomer_nota, tanggal_wib, original_id)!
-- The stock movements of a posting, backwards.
INSERT INTO kartu_stok
    (posting_id, transaksi_id, nomer_nota, sumber, kode_barang, lot, gudang_kode, tanggal_wib, masuk, keluar,
     harga_pokok, nilai, created_at)
SELECT :posting_id, :transaksi_id, :nomer_nota, 'OPNAME', k.kode_barang, k.lot, k.gudang_kode, :tanggal_wib, k.keluar,
       k.masuk, k.harga_pokok, -k.nilai, UTC_TIMESTAMP(6)
FROM kartu_stok k
WHERE k.posting_id = :original_id
ORDER BY k.id;

-- name: accounts_left(original_id, posting_id)
-- Accounts that the two postings together still move.
SELECT kode_akun, SUM(debet - kredit) AS sisa
FROM jurnal
WHERE posting_id IN (:original_id, :posting_id)
GROUP BY kode_akun
HAVING SUM(debet - kredit) <> 0
ORDER BY kode_akun;

-- name: stock_left(original_id, posting_id)
-- Stock that the two postings together still move, in quantity or in value.
SELECT kode_barang, lot, gudang_kode, SUM(masuk - keluar) AS qty, COALESCE(SUM(nilai), 0) AS nilai
FROM kartu_stok
WHERE posting_id IN (:original_id, :posting_id)
GROUP BY kode_barang, lot, gudang_kode
HAVING SUM(masuk - keluar) <> 0 OR COALESCE(SUM(nilai), 0) <> 0
ORDER BY kode_barang, lot, gudang_kode;

-- name: requests(keys)
-- Who asked for the reversal of a posting, newest first. The keys of its workflows begin with the posting's number.
SELECT r.id AS workflow_id, r.idempotency_key, r.status, r.dag_run_id, s.id AS shadow_id, s.transaksi_id, s.nomer_nota,
       s.worker_status, s.error_code, JSON_UNQUOTE(JSON_EXTRACT(r.payload, '$.oleh')) AS oleh,
       JSON_UNQUOTE(JSON_EXTRACT(r.payload, '$.alasan')) AS alasan
FROM workflow_runs r
JOIN rabbit_publish_shadow s ON s.id = r.carrier_shadow_id
WHERE r.workflow = 'opname_reversal' AND r.idempotency_key LIKE :keys
ORDER BY r.id DESC;

-- name: nota_is_taken(nomer_nota)$
-- Whether anything carries this nota, of ours or of another program.
SELECT EXISTS (SELECT 1 FROM so_headers_staging WHERE nomer_nota = :nomer_nota)
    OR EXISTS (SELECT 1 FROM rabbit_publish_shadow WHERE nomer_nota = :nomer_nota)
    OR EXISTS (SELECT 1 FROM transaksi WHERE nomer_nota = :nomer_nota)
    OR EXISTS (SELECT 1 FROM posting_sets WHERE jenis IN ('POSTING', 'PEMBALIKAN') AND nomer_nota = :nomer_nota)
    OR EXISTS (SELECT 1 FROM jurnal WHERE nomer_nota = :nomer_nota)
    OR EXISTS (SELECT 1 FROM kartu_stok WHERE nomer_nota = :nomer_nota);
