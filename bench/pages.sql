-- What the pages are measured on: a schema full of documents, as the web application, the steps and the workflows leave
-- them, written in bulk. Document n of :documents was counted n/140 days after the first. Times are UTC.

-- name: make_numbers#
CREATE TABLE angka (n INT NOT NULL PRIMARY KEY);

-- name: ten()!
INSERT INTO angka (n) VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10);

-- name: numbers(documents)!
INSERT INTO angka (n)
SELECT m.n
FROM (SELECT a.n + 10 * (b.n - 1) + 100 * (c.n - 1) + 1000 * (d.n - 1) + 10000 * (e.n - 1) AS n
      FROM angka a JOIN angka b JOIN angka c JOIN angka d JOIN angka e) m
WHERE m.n > 10 AND m.n <= :documents;

-- name: warehouses()!
INSERT INTO gudang (gudang_kode, nama)
SELECT CONCAT('GD-', LPAD(n, 2, '0')),
       CONCAT(ELT(1 + n MOD 4, 'Gudang Utama ', 'Toko ', 'Gudang Transit ', 'Gudang Dingin '),
              ELT(1 + n MOD 7, 'Cikarang', 'Surabaya', 'Semarang', 'Medan', 'Makassar', 'Bandung', 'Denpasar'))
FROM angka WHERE n <= 40;

-- name: headers(documents, today)!
INSERT INTO so_headers_staging
    (id, transaksi_id, nomer_nota, gudang_kode, tanggal_opname, snapshot_at, otorisasi_level, diotorisasi_oleh,
     diotorisasi_at, dibuat_oleh, submit_token, zona_waktu, created_at)
SELECT n, n, CONCAT('SO-', DATE_FORMAT(:today - INTERVAL (:documents - n) DIV 140 DAY, '%%y%%m%%d'), '-', LPAD(n, 6, '0')),
       CONCAT('GD-', LPAD(1 + n MOD 39, 2, '0')), :today - INTERVAL (:documents - n) DIV 140 DAY,
       :today - INTERVAL (:documents - n) DIV 140 DAY, 2, CONCAT('kepala-', n MOD 9), :today - INTERVAL (:documents - n) DIV 140 DAY,
       IF(n MOD 1000 = 0, 'warehouse', CONCAT('gudang-', n MOD 60)), CONCAT('bench-', n), 'UTC',
       :today - INTERVAL (:documents - n) DIV 140 DAY
FROM angka;

-- name: details()!
INSERT INTO so_details_staging
    (header_id, baris, kode_barang, lot, gudang_kode, satuan, qty_sistem, qty_fisik, harga_pokok, alasan)
SELECT a.n, b.n, CONCAT('BRG-', LPAD(1 + (a.n * 7 + b.n * 131) MOD 3000, 5, '0')), '', CONCAT('GD-', LPAD(1 + a.n MOD 39, 2, '0')),
       'PCS', 20 + a.n MOD 40, 20 + a.n MOD 40 + IF(b.n = 1, 0, IF((a.n + b.n) MOD 2 = 0, 1 + a.n MOD 9, -(1 + a.n MOD 7))),
       1000 + (a.n * 13 + b.n * 17) MOD 90000, IF(b.n = 1, NULL, ELT(1 + (a.n + b.n) MOD 5, 'rusak', 'hilang', 'salah hitung', 'kedaluwarsa', 'susut'))
FROM angka a JOIN angka b ON b.n <= 3;

-- name: transactions()!
INSERT INTO transaksi (id, nomer_nota, jenis, gudang_kode, tanggal_wib)
SELECT h.transaksi_id, h.nomer_nota, 'OPNAME', h.gudang_kode, h.tanggal_opname + INTERVAL 10 + h.id MOD 8 HOUR
FROM so_headers_staging h;

-- name: computed()!
INSERT INTO transaksi_values
    (transaksi_id, baris, kode_barang, lot, gudang_kode, qty_sistem, qty_fisik, harga_pokok, selisih_qty, nilai_debet, nilai_kredit)
SELECT d.header_id, d.baris, d.kode_barang, d.lot, d.gudang_kode, d.qty_sistem, d.qty_fisik, d.harga_pokok, d.qty_fisik - d.qty_sistem,
       GREATEST(ROUND((d.qty_fisik - d.qty_sistem) * d.harga_pokok, 2), 0), GREATEST(ROUND((d.qty_sistem - d.qty_fisik) * d.harga_pokok, 2), 0)
FROM so_details_staging d;

-- name: runs()!
INSERT INTO workflow_runs
    (id, workflow, version, definition_hash, idempotency_key, payload, state, status, current_step, n, dag_id, dag_run_id,
     carrier_shadow_id, created_at, updated_at, finished_at)
SELECT h.id, 'opname_posting', '1', REPEAT('0', 64), h.transaksi_id, '{}', '{}', IF(h.id MOD 200 = 0, 'failed', 'completed'),
       IF(h.id MOD 200 = 0, 'compute_variance', NULL), 1, 'opname_posting', CONCAT('opname_posting__', h.transaksi_id, '__', h.id, '__1'),
       h.id, h.created_at, h.created_at + INTERVAL 3 SECOND, h.created_at + INTERVAL 3 SECOND
FROM so_headers_staging h;

-- name: jobs()!
INSERT INTO rabbit_publish_shadow
    (id, transaksi_id, nomer_nota, workflow_id, publish_status, published_at, worker_status, worker_at, attempts, current_step,
     response, error_code, error, dag_id, dag_run_id, n, created_at, updated_at)
SELECT h.id, h.transaksi_id, h.nomer_nota, h.id, 'PUBLISHED', h.created_at, IF(h.id MOD 200 = 0, 'FAILED', 'COMPLETED'),
       h.created_at + INTERVAL 3 SECOND, 1, IF(h.id MOD 200 = 0, 'compute_variance', NULL),
       IF(h.id MOD 200 = 0,
          '{"status": "error", "code": 422, "message": "dokumen ditolak: 1 masalah", "errors": [{"baris": 2, "kolom": "qty_fisik", "pesan": "belum dihitung"}]}',
          '{"status": "success", "message": "diposting: 2 baris selisih"}'),
       IF(h.id MOD 200 = 0, 422, NULL), IF(h.id MOD 200 = 0, 'dokumen ditolak: 1 masalah', NULL), 'opname_posting',
       CONCAT('opname_posting__', h.transaksi_id, '__', h.id, '__1'), 1, h.created_at, h.created_at + INTERVAL 3 SECOND
FROM so_headers_staging h;

-- name: events()!
INSERT INTO workflow_events (workflow_id, event, step, visit, attempt, n, created_at)
SELECT r.id, ELT(k.n, 'dispatched', 'started', 'completed', 'finished'), IF(k.n IN (2, 3), 'post_jurnal', NULL), 1, 1, 1,
       r.created_at + INTERVAL k.n SECOND
FROM workflow_runs r JOIN angka k ON k.n <= 4;

-- name: acts()!
INSERT INTO audit_log (created_at, actor, action, transaksi_id, nomer_nota, shadow_id)
SELECT h.created_at, IF(k.n = 1, h.dibuat_oleh, h.diotorisasi_oleh), IF(k.n = 1, 'draft', 'authorise'), h.transaksi_id, h.nomer_nota, h.id
FROM so_headers_staging h JOIN angka k ON k.n <= 2;

-- name: postings()!
INSERT INTO posting_sets (id, transaksi_id, nomer_nota, shadow_id, input_hash, total_debet, total_kredit, baris_selisih, created_at)
SELECT s.id, s.transaksi_id, s.nomer_nota, s.id, REPEAT('0', 64), v.jumlah, v.jumlah, v.beda, s.worker_at
FROM rabbit_publish_shadow s
JOIN (SELECT transaksi_id, SUM(nilai_debet + nilai_kredit) AS jumlah, SUM(selisih_qty <> 0) AS beda FROM transaksi_values GROUP BY transaksi_id) v
     ON v.transaksi_id = s.transaksi_id
WHERE s.worker_status = 'COMPLETED';

-- name: drop_values_of_failed()!
DELETE v FROM transaksi_values v JOIN rabbit_publish_shadow s ON s.transaksi_id = v.transaksi_id WHERE s.worker_status = 'FAILED';

-- name: journal()!
INSERT INTO jurnal (posting_id, urutan, transaksi_id, nomer_nota, sumber, tanggal_wib, kode_akun, keterangan, debet, kredit)
SELECT p.id, 2 * k.n + s.n - 2, p.transaksi_id, p.nomer_nota, 'OPNAME', t.tanggal_wib,
       IF((k.n = 1) = (s.n = 1), '1010030030', IF(k.n = 1, '7010150', '7020020')), CONCAT('Stok opname ', p.nomer_nota),
       IF(s.n = 1, v.nilai, 0), IF(s.n = 1, 0, v.nilai)
FROM posting_sets p
JOIN transaksi t ON t.id = p.transaksi_id
JOIN angka k ON k.n <= 2
JOIN angka s ON s.n <= 2
JOIN (SELECT transaksi_id, 1 AS sisi, SUM(nilai_debet) AS nilai FROM transaksi_values GROUP BY transaksi_id
      UNION ALL SELECT transaksi_id, 2, SUM(nilai_kredit) FROM transaksi_values GROUP BY transaksi_id) v
     ON v.transaksi_id = p.transaksi_id AND v.sisi = k.n
WHERE v.nilai > 0;

-- name: cards()!
INSERT INTO kartu_stok
    (posting_id, transaksi_id, nomer_nota, sumber, kode_barang, lot, gudang_kode, tanggal_wib, masuk, keluar, harga_pokok, nilai)
SELECT p.id, p.transaksi_id, p.nomer_nota, 'OPNAME', v.kode_barang, v.lot, v.gudang_kode, t.tanggal_wib, GREATEST(v.selisih_qty, 0),
       GREATEST(-v.selisih_qty, 0), v.harga_pokok, v.nilai_debet - v.nilai_kredit
FROM posting_sets p
JOIN transaksi t ON t.id = p.transaksi_id
JOIN transaksi_values v ON v.transaksi_id = p.transaksi_id
WHERE v.selisih_qty <> 0;

-- name: movements()!
-- A receipt for each document, of the item of its second line, entered when it came; one in 500 two days before the count
-- and entered two days after it.
INSERT INTO kartu_stok (nomer_nota, sumber, kode_barang, lot, gudang_kode, tanggal_wib, masuk, keluar, harga_pokok, nilai, created_at)
SELECT CONCAT('BELI-', v.transaksi_id), 'BELI', v.kode_barang, v.lot, v.gudang_kode,
       h.snapshot_at + INTERVAL 7 HOUR + INTERVAL IF(h.id MOD 500 = 0, -48, 1 + h.id MOD 12) HOUR, 5, 0, v.harga_pokok, 5 * v.harga_pokok,
       h.snapshot_at + INTERVAL IF(h.id MOD 500 = 0, 48, 1 + h.id MOD 12) HOUR + INTERVAL 1 MINUTE
FROM so_headers_staging h JOIN transaksi_values v ON v.transaksi_id = h.transaksi_id AND v.baris = 2;

-- name: drafts(documents, today)!
INSERT INTO so_headers_staging
    (id, transaksi_id, nomer_nota, gudang_kode, tanggal_opname, snapshot_at, otorisasi_level, dibuat_oleh, submit_token, zona_waktu, created_at)
SELECT :documents + n, :documents + n, CONCAT('SO-DRAF-', n), 'GD-07', :today, :today, 1, CONCAT('gudang-', n MOD 60),
       CONCAT('draf-', n), 'UTC', :today
FROM angka WHERE n <= 60;

-- name: draft_lines(documents)!
INSERT INTO so_details_staging (header_id, baris, kode_barang, lot, gudang_kode, satuan, qty_sistem, qty_fisik, harga_pokok)
SELECT :documents + a.n, b.n, CONCAT('BRG-', LPAD(b.n, 5, '0')), '', 'GD-07', 'PCS', 10, 10 + b.n MOD 3, 1500
FROM angka a JOIN angka b ON b.n <= 40 WHERE a.n <= 60;

-- name: limit_of_waiting()!
INSERT INTO kebijakan_selisih (gudang_kode, batas_dokumen, batas_baris) VALUES ('GD-40', 0, 0);

-- name: uncount(transaksi_id)!
-- Every line of a document was not counted: it will be refused, by line.
UPDATE so_details_staging d JOIN so_headers_staging h ON h.id = d.header_id SET d.qty_fisik = NULL WHERE h.transaksi_id = :transaksi_id;

-- name: number_of_documents()$
SELECT COUNT(*) FROM rabbit_publish_shadow WHERE transaksi_id IS NOT NULL;

-- name: number_of_lines(transaksi_id)$
SELECT COUNT(*) FROM so_details_staging d JOIN so_headers_staging h ON h.id = d.header_id WHERE h.transaksi_id = :transaksi_id;

-- name: known()
SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE';
