-- Years of older rows in the books, as other programs left them: movements of the very items and warehouses that the
-- documents count, entered before any of them was counted, under ids of their own (:first_id and up). Numbers come from a table `angka` of 1 to 1,000.

-- name: make_numbers#
CREATE TABLE angka (n INT NOT NULL PRIMARY KEY);

-- name: numbers()!
INSERT INTO angka (n)
WITH RECURSIVE upto AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM upto WHERE n < 1000)
SELECT n FROM upto;

-- name: keys_of(table_name)
-- The secondary keys of a table, as ALTER TABLE names and makes them. Built after the rows they are built by sorting.
SELECT index_name AS name, IF(MAX(non_unique) = 1, 'KEY', 'UNIQUE KEY') AS kind,
       GROUP_CONCAT(column_name ORDER BY seq_in_index) AS columns
FROM information_schema.statistics
WHERE table_schema = DATABASE() AND table_name = :table_name AND index_name <> 'PRIMARY'
GROUP BY index_name;

-- name: movements(first, last, first_id, items, warehouses, warehouse)!
-- Row m moves item m modulo :items, in the warehouse that the documents count it in.
INSERT INTO kartu_stok
    (transaksi_id, nomer_nota, kode_barang, lot, gudang_kode, tanggal_wib, masuk, keluar, harga_pokok, nilai, created_at)
SELECT :first_id + m, CONCAT('LM-', m DIV 4), CONCAT('BRG-', LPAD(m MOD :items, 6, '0')), '',
       CONCAT(:warehouse, 1 + m MOD :items MOD :warehouses), '2020-01-01' + INTERVAL m MOD 2000 DAY,
       IF(m MOD 2, 2, 0), IF(m MOD 2, 0, 2), 1500, 3000, '2020-01-01' + INTERVAL m MOD 2000 DAY
FROM (SELECT :first + (a.n - 1) + 1000 * (b.n - 1) AS m FROM angka a JOIN angka b ON b.n <= 250) numbered
WHERE m < :last;

-- name: entries(first, last, first_id)!
INSERT INTO jurnal (transaksi_id, nomer_nota, tanggal_wib, kode_akun, debet, kredit, created_at)
SELECT :first_id + m, CONCAT('LM-', m DIV 2), '2020-01-01' + INTERVAL m MOD 2000 DAY, IF(m MOD 2, '1010030030', '7010150'),
       IF(m MOD 2, 1500, 0), IF(m MOD 2, 0, 1500), '2020-01-01' + INTERVAL m MOD 2000 DAY
FROM (SELECT :first + (a.n - 1) + 1000 * (b.n - 1) AS m FROM angka a JOIN angka b ON b.n <= 250) numbered
WHERE m < :last;
