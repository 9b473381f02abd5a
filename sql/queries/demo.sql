-- What the demo writes in the place of the existing web application, and how it looks at the books.

-- name: web_transaksi(nomer_nota, gudang_kode)!
-- The web application takes its number from the accounting document it writes first.
INSERT INTO transaksi (nomer_nota, jenis, gudang_kode) VALUES (:nomer_nota, 'OPNAME', :gudang_kode);

-- name: web_header(transaksi_id, nomer_nota, gudang_kode, tanggal_opname, snapshot_at, otorisasi_level, diotorisasi_oleh, dibuat_oleh)!
-- Only the columns that another program knows.
INSERT INTO so_headers_staging
    (transaksi_id, nomer_nota, gudang_kode, tanggal_opname, snapshot_at, otorisasi_level, diotorisasi_oleh,
     diotorisasi_at, dibuat_oleh)
VALUES
    (:transaksi_id, :nomer_nota, :gudang_kode, :tanggal_opname, :snapshot_at, :otorisasi_level, :diotorisasi_oleh,
     UTC_TIMESTAMP(6), :dibuat_oleh);

-- name: web_line(header_id, baris, kode_barang, gudang_kode, satuan, qty_sistem, qty_fisik, harga_pokok)*!
-- Its lines, unchecked.
INSERT INTO so_details_staging
    (header_id, baris, kode_barang, gudang_kode, satuan, qty_sistem, qty_fisik, harga_pokok)
VALUES (:header_id, :baris, :kode_barang, :gudang_kode, :satuan, :qty_sistem, :qty_fisik, :harga_pokok);

-- name: web_shadow(transaksi_id, nomer_nota, payload)!
-- Its job: it publishes the message itself and says so.
INSERT INTO rabbit_publish_shadow (transaksi_id, nomer_nota, payload, publish_status, worker_status)
VALUES (:transaksi_id, :nomer_nota, :payload, 'PUBLISHED', 'PENDING');

-- name: web_movement(nomer_nota, kode_barang, gudang_kode, tanggal_wib, masuk)!
-- What another module enters into the stock card, now and dated earlier.
INSERT INTO kartu_stok
    (nomer_nota, sumber, kode_barang, lot, gudang_kode, tanggal_wib, masuk, keluar, harga_pokok, nilai, created_at)
VALUES (:nomer_nota, 'BELI', :kode_barang, '', :gudang_kode, :tanggal_wib, :masuk, 0, 0, 0, UTC_TIMESTAMP(6));

-- name: jobs(shadow_ids)
-- The demo's jobs as they stand now; seconds: from submission to the newest change.
SELECT s.id AS shadow_id, s.worker_status, s.current_step, s.error_code, s.response, s.dead_lettered_at,
       TIMESTAMPDIFF(MICROSECOND, s.created_at, s.worker_at) / 1000000 AS seconds,
       p.total_debet, p.total_kredit, p.baris_selisih
FROM rabbit_publish_shadow s
LEFT JOIN posting_sets p ON p.transaksi_id = s.transaksi_id
WHERE s.id IN :shadow_ids;

-- name: postings()
-- Every posting beside what its rows sum to: journal sides, inventory movement, stock-card value.
SELECT p.id, p.nomer_nota, p.total_debet, p.total_kredit,
       COALESCE(j.debet, 0) AS debet, COALESCE(j.kredit, 0) AS kredit, COALESCE(j.persediaan, 0) AS persediaan,
       COALESCE(k.nilai, 0) AS nilai
FROM posting_sets p
LEFT JOIN (
    SELECT jurnal.posting_id, SUM(jurnal.debet) AS debet, SUM(jurnal.kredit) AS kredit,
           SUM(CASE WHEN jurnal.kode_akun = COALESCE(g.akun_persediaan, '1010030030')
                    THEN jurnal.debet - jurnal.kredit ELSE 0 END) AS persediaan
    FROM jurnal
    LEFT JOIN transaksi t ON t.id = jurnal.transaksi_id
    LEFT JOIN akun_gudang g ON g.gudang_kode = t.gudang_kode
    WHERE jurnal.posting_id IS NOT NULL
    GROUP BY jurnal.posting_id
) j ON j.posting_id = p.id
LEFT JOIN (
    SELECT posting_id, SUM(nilai) AS nilai FROM kartu_stok WHERE posting_id IS NOT NULL GROUP BY posting_id
) k ON k.posting_id = p.id
ORDER BY p.id;
