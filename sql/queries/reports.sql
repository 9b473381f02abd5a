-- What finance, auditors and analysts read. SELECTs only, run inside one snapshot.
-- A filter that is not given is NULL and folds away before the plan is made. :until is the first day not included.
-- A posted line is a computed line of a posting. Those of a reversal are the original's with the sign turned: so sums
-- over posted lines are the movements of the inventory account.

-- name: room_for_groups()!
-- A group for each posting of some years fits into memory; with what servers grant by default it goes to a file, which takes
-- four times as long.
SET SESSION tmp_table_size = 67108864, max_heap_table_size = 67108864;

-- name: document_exists(nomer_nota)$
-- Whether anything is known by this number.
SELECT EXISTS (SELECT 1 FROM posting_sets WHERE nomer_nota = :nomer_nota)
    OR EXISTS (SELECT 1 FROM so_headers_staging WHERE nomer_nota = :nomer_nota)
    OR EXISTS (SELECT 1 FROM rabbit_publish_shadow WHERE nomer_nota = :nomer_nota)
    OR EXISTS (SELECT 1 FROM kartu_stok WHERE nomer_nota = :nomer_nota);

-- name: transaksi_of_nota(nomer_nota)$
-- The document of a number: the posted one, else the newest.
SELECT COALESCE(
    (SELECT p.transaksi_id FROM posting_sets p WHERE p.nomer_nota = :nomer_nota),
    (SELECT h.transaksi_id FROM so_headers_staging h WHERE h.nomer_nota = :nomer_nota ORDER BY h.id DESC LIMIT 1),
    (SELECT s.transaksi_id FROM rabbit_publish_shadow s WHERE s.nomer_nota = :nomer_nota ORDER BY s.id DESC LIMIT 1)
);

-- name: books_begin()$
-- When the first accounting document is dated, whoever made it: the first entry of an index.
SELECT MIN(tanggal_wib) FROM transaksi WHERE tanggal_wib >= '1000-01-01';

-- name: postings_of_nota(nomer_nota)
-- The accounting documents that a number stands for: what was posted under it, and what reverses that.
SELECT p.transaksi_id FROM posting_sets p WHERE p.nomer_nota = :nomer_nota
UNION
SELECT r.transaksi_id FROM posting_sets o JOIN posting_sets r ON r.membalik_id = o.id WHERE o.nomer_nota = :nomer_nota;

-- name: postings(since, until, after_wib, after_id, every_nota, transaksi_ids, gudang_kode, kode_barang, lot, kelompok, alasan, size)
-- The next postings of a range by their instant, of which some line fits, each with its number of lines. The header of a
-- reversal is that of what it reverses. Read along the index of instants: a page costs what it holds, however many
-- postings there are.
SELECT p.id, p.transaksi_id, p.nomer_nota, p.jenis, o.nomer_nota AS membalik,
       t.tanggal_wib, t.gudang_kode, h.id AS header_id, h.tanggal_opname, h.diotorisasi_oleh,
       (SELECT COUNT(*) FROM transaksi_values v WHERE v.transaksi_id = p.transaksi_id) AS jumlah_baris
FROM transaksi t
STRAIGHT_JOIN posting_sets p ON p.transaksi_id = t.id
LEFT JOIN posting_sets o ON o.id = p.membalik_id
LEFT JOIN so_headers_staging h ON h.transaksi_id = COALESCE(o.transaksi_id, p.transaksi_id)
WHERE t.tanggal_wib >= :after_wib AND (t.tanggal_wib > :after_wib OR t.id > :after_id)
  AND (:since IS NULL OR t.tanggal_wib >= :since)
  AND (:until IS NULL OR t.tanggal_wib < :until)
  AND (:every_nota OR t.id IN :transaksi_ids)
  AND ((:gudang_kode IS NULL AND :kode_barang IS NULL AND :lot IS NULL AND :kelompok IS NULL)
       OR EXISTS (SELECT 1 FROM transaksi_values v
                  WHERE v.transaksi_id = p.transaksi_id
                    AND (:gudang_kode IS NULL OR v.gudang_kode = :gudang_kode)
                    AND (:kode_barang IS NULL OR v.kode_barang = :kode_barang)
                    AND (:lot IS NULL OR v.lot = :lot)
                    AND (:kelompok IS NULL OR :kelompok = COALESCE(
                         (SELECT NULLIF(k.kelompok, '') FROM kelompok_barang k WHERE k.kode_barang = v.kode_barang),
                         '(tanpa kelompok)'))))
  AND (:alasan IS NULL
       OR EXISTS (SELECT 1 FROM transaksi_values v
                  LEFT JOIN so_details_staging d
                         ON d.header_id = h.id AND d.baris = v.baris AND d.kode_barang = v.kode_barang
                  WHERE v.transaksi_id = p.transaksi_id AND v.selisih_qty <> 0
                    AND COALESCE(NULLIF(d.alasan, ''), '(tanpa alasan)') = :alasan))
ORDER BY t.tanggal_wib, t.id
LIMIT :size;

-- name: variance_totals(since, until, every_nota, transaksi_ids, gudang_kode, kode_barang, lot, kelompok, alasan)
-- How many posted lines there are and what they add up to, without reading them.
SELECT COUNT(*), SUM(v.nilai_debet), SUM(v.nilai_kredit), SUM(v.nilai_debet - v.nilai_kredit)
FROM posting_sets p
JOIN transaksi t ON t.id = p.transaksi_id
JOIN transaksi_values v ON v.transaksi_id = p.transaksi_id
WHERE (:since IS NULL OR t.tanggal_wib >= :since)
  AND (:until IS NULL OR t.tanggal_wib < :until)
  AND (:every_nota OR p.transaksi_id IN :transaksi_ids)
  AND (:gudang_kode IS NULL OR v.gudang_kode = :gudang_kode)
  AND (:kode_barang IS NULL OR v.kode_barang = :kode_barang)
  AND (:lot IS NULL OR v.lot = :lot)
  AND (:kelompok IS NULL OR :kelompok = COALESCE(
       (SELECT NULLIF(k.kelompok, '') FROM kelompok_barang k WHERE k.kode_barang = v.kode_barang), '(tanpa kelompok)'))
  AND (:alasan IS NULL OR (v.selisih_qty <> 0 AND :alasan = COALESCE(
       (SELECT NULLIF(d.alasan, '')
        FROM so_headers_staging h
        JOIN so_details_staging d ON d.header_id = h.id AND d.baris = v.baris AND d.kode_barang = v.kode_barang
        WHERE h.transaksi_id = COALESCE((SELECT o.transaksi_id FROM posting_sets o WHERE o.id = p.membalik_id),
                                        p.transaksi_id)),
       '(tanpa alasan)')));

-- name: posted_lines(transaksi_ids, gudang_kode, kode_barang, lot, kelompok, alasan, after, batch)
-- The computed lines of some postings; of a single one, those after a line. Unit and reason are the staging row's, unless
-- it is another item's now.
SELECT v.transaksi_id, v.baris, v.kode_barang, v.lot, v.gudang_kode, d.satuan, v.qty_sistem, v.qty_fisik, v.selisih_qty,
       v.harga_pokok, v.nilai_debet, v.nilai_kredit, d.alasan
FROM posting_sets p
JOIN transaksi_values v ON v.transaksi_id = p.transaksi_id
LEFT JOIN posting_sets o ON o.id = p.membalik_id
LEFT JOIN so_headers_staging h ON h.transaksi_id = COALESCE(o.transaksi_id, p.transaksi_id)
LEFT JOIN so_details_staging d ON d.header_id = h.id AND d.baris = v.baris AND d.kode_barang = v.kode_barang
WHERE p.transaksi_id IN :transaksi_ids AND v.baris > :after
  AND (:gudang_kode IS NULL OR v.gudang_kode = :gudang_kode)
  AND (:kode_barang IS NULL OR v.kode_barang = :kode_barang)
  AND (:lot IS NULL OR v.lot = :lot)
  AND (:kelompok IS NULL OR :kelompok = COALESCE(
       (SELECT NULLIF(k.kelompok, '') FROM kelompok_barang k WHERE k.kode_barang = v.kode_barang), '(tanpa kelompok)'))
  AND (:alasan IS NULL
       OR (v.selisih_qty <> 0 AND COALESCE(NULLIF(d.alasan, ''), '(tanpa alasan)') = :alasan))
ORDER BY v.transaksi_id, v.baris
LIMIT :batch;

-- name: hint_lines(transaksi_ids)
-- The computed lines that a smell hint can be about: all others agree with the books.
SELECT transaksi_id, baris, kode_barang, lot, gudang_kode, qty_sistem, qty_fisik, nilai_debet - nilai_kredit
FROM transaksi_values
WHERE transaksi_id IN :transaksi_ids AND qty_sistem IS NOT NULL AND qty_fisik IS NOT NULL
  AND (selisih_qty <> 0 OR qty_sistem < 0)
ORDER BY transaksi_id, baris;

-- name: waiting_document(nomer_nota)^
-- The newest document of a number under which nothing is posted, with the status of its newest job.
SELECT h.id AS header_id, h.transaksi_id, h.nomer_nota, h.gudang_kode, h.tanggal_opname, h.diotorisasi_oleh,
       (SELECT s.worker_status FROM rabbit_publish_shadow s WHERE s.transaksi_id = h.transaksi_id
        ORDER BY s.id DESC LIMIT 1) AS worker_status
FROM so_headers_staging h
WHERE h.nomer_nota = :nomer_nota
  AND NOT EXISTS (SELECT 1 FROM posting_sets p WHERE p.transaksi_id = h.transaksi_id OR p.nomer_nota = h.nomer_nota)
ORDER BY h.id DESC
LIMIT 1;

-- name: staged_lines(header_id, header_gudang, gudang_kode, kode_barang, lot, kelompok, alasan, after, batch)
-- The counted lines of a document that is not posted, after a line.
SELECT d.baris, d.kode_barang, COALESCE(d.lot, ''), COALESCE(d.gudang_kode, :header_gudang), d.satuan, d.qty_sistem,
       d.qty_fisik, d.harga_pokok, d.alasan
FROM so_details_staging d
WHERE d.header_id = :header_id AND d.baris > :after
  AND (:gudang_kode IS NULL OR COALESCE(d.gudang_kode, :header_gudang) = :gudang_kode)
  AND (:kode_barang IS NULL OR d.kode_barang = :kode_barang)
  AND (:lot IS NULL OR COALESCE(d.lot, '') = :lot)
  AND (:kelompok IS NULL OR :kelompok = COALESCE(
       (SELECT NULLIF(k.kelompok, '') FROM kelompok_barang k WHERE k.kode_barang = d.kode_barang), '(tanpa kelompok)'))
  AND (:alasan IS NULL
       OR (d.qty_fisik <> d.qty_sistem AND COALESCE(NULLIF(d.alasan, ''), '(tanpa alasan)') = :alasan))
ORDER BY d.baris
LIMIT :batch;

-- name: documents(since, until, every_nota, transaksi_ids, gudang_kode, kode_barang, lot, at_most)
-- One row per posting, along the index of instants; the reversal of a count without variance has no line.
SELECT d.tanggal_wib, d.nomer_nota, d.jenis, d.membalik, d.dibalik_oleh, d.gudang_kode, d.id, COUNT(v.baris),
       COALESCE(SUM(v.selisih_qty <> 0), 0),
       COALESCE(SUM(v.nilai_debet), 0),
       COALESCE(SUM(v.nilai_kredit), 0),
       COALESCE(SUM(v.nilai_debet - v.nilai_kredit), 0)
FROM (
    SELECT t.tanggal_wib, p.nomer_nota, p.jenis, o.nomer_nota AS membalik, r.nomer_nota AS dibalik_oleh, t.gudang_kode,
           p.id, p.transaksi_id
    FROM transaksi t
    STRAIGHT_JOIN posting_sets p ON p.transaksi_id = t.id
    LEFT JOIN posting_sets o ON o.id = p.membalik_id
    LEFT JOIN posting_sets r ON r.membalik_id = p.id
    WHERE (:since IS NULL OR t.tanggal_wib >= :since)
      AND (:until IS NULL OR t.tanggal_wib < :until)
      AND (:every_nota OR t.id IN :transaksi_ids)
      AND ((:gudang_kode IS NULL AND :kode_barang IS NULL AND :lot IS NULL)
           OR EXISTS (SELECT 1 FROM transaksi_values f
                      WHERE f.transaksi_id = p.transaksi_id
                        AND (:gudang_kode IS NULL OR f.gudang_kode = :gudang_kode)
                        AND (:kode_barang IS NULL OR f.kode_barang = :kode_barang)
                        AND (:lot IS NULL OR f.lot = :lot)))
    ORDER BY t.tanggal_wib, t.id
    LIMIT :at_most
) d
LEFT JOIN transaksi_values v
       ON v.transaksi_id = d.transaksi_id
      AND (:gudang_kode IS NULL OR v.gudang_kode = :gudang_kode)
      AND (:kode_barang IS NULL OR v.kode_barang = :kode_barang)
      AND (:lot IS NULL OR v.lot = :lot)
GROUP BY d.tanggal_wib, d.transaksi_id, d.nomer_nota, d.jenis, d.membalik, d.dibalik_oleh, d.gudang_kode, d.id
ORDER BY d.tanggal_wib, d.transaksi_id;

-- name: documents_totals(since, until, every_nota, transaksi_ids, gudang_kode, kode_barang, lot)
-- The same added up.
SELECT COUNT(*), SUM(d.jumlah_baris), SUM(d.beda), SUM(d.lebih), SUM(d.kurang), SUM(d.lebih) - SUM(d.kurang)
FROM (
    SELECT COUNT(v.baris) AS jumlah_baris, COUNT(NULLIF(v.selisih_qty, 0)) AS beda,
           COALESCE(SUM(v.nilai_debet), 0) AS lebih, COALESCE(SUM(v.nilai_kredit), 0) AS kurang
    FROM posting_sets p
    JOIN transaksi t ON t.id = p.transaksi_id
    LEFT JOIN transaksi_values v ON v.transaksi_id = p.transaksi_id
    WHERE (:since IS NULL OR t.tanggal_wib >= :since)
      AND (:until IS NULL OR t.tanggal_wib < :until)
      AND (:every_nota OR p.transaksi_id IN :transaksi_ids)
      AND (:gudang_kode IS NULL OR v.gudang_kode = :gudang_kode)
      AND (:kode_barang IS NULL OR v.kode_barang = :kode_barang)
      AND (:lot IS NULL OR v.lot = :lot)
    GROUP BY p.id
) d;

-- name: by_warehouse(since, until, gudang_kode, kode_barang, lot, every_nota, transaksi_ids)
-- Posted lines per warehouse of the line; a reversal counts nothing.
SELECT d.gudang_kode, MAX(g.nama), COUNT(*), SUM(d.is_count), SUM(d.is_count AND d.beda = 0),
       ROUND(100 * SUM(d.is_count AND d.beda = 0) / NULLIF(SUM(d.is_count), 0), 2),
       SUM(d.beda), SUM(d.lebih), SUM(d.kurang), SUM(d.lebih) - SUM(d.kurang)
FROM (
    SELECT v.gudang_kode, MAX(p.jenis = 'POSTING') AS is_count, COUNT(NULLIF(v.selisih_qty, 0)) AS beda,
           SUM(v.nilai_debet) AS lebih, SUM(v.nilai_kredit) AS kurang
    FROM posting_sets p
    JOIN transaksi t ON t.id = p.transaksi_id
    JOIN transaksi_values v ON v.transaksi_id = p.transaksi_id
    WHERE (:since IS NULL OR t.tanggal_wib >= :since)
      AND (:until IS NULL OR t.tanggal_wib < :until)
      AND (:gudang_kode IS NULL OR v.gudang_kode = :gudang_kode)
      AND (:kode_barang IS NULL OR v.kode_barang = :kode_barang)
      AND (:lot IS NULL OR v.lot = :lot)
      AND (:every_nota OR p.transaksi_id IN :transaksi_ids)
    GROUP BY p.id, v.gudang_kode
) d
LEFT JOIN gudang g ON g.gudang_kode = d.gudang_kode
GROUP BY d.gudang_kode
ORDER BY d.gudang_kode;

-- name: by_item(since, until, gudang_kode, kode_barang, lot, every_nota, transaksi_ids)
-- Posted lines per item, over all its lots and warehouses. What follows from two sums is made of them outside: inside, each
-- one more is computed for every line.
SELECT i.kode_barang, i.jumlah_gudang, i.jumlah_posting, i.beda, i.lebih, i.lebih - i.bersih, i.bersih, i.debet, i.kredit,
       i.debet - i.kredit
FROM (
    SELECT v.kode_barang, COUNT(DISTINCT v.gudang_kode) AS jumlah_gudang, COUNT(DISTINCT p.id) AS jumlah_posting,
           COUNT(NULLIF(v.selisih_qty, 0)) AS beda, SUM(IF(v.selisih_qty > 0, v.selisih_qty, 0)) AS lebih,
           SUM(v.selisih_qty) AS bersih, SUM(v.nilai_debet) AS debet, SUM(v.nilai_kredit) AS kredit
    FROM posting_sets p
    JOIN transaksi t ON t.id = p.transaksi_id
    JOIN transaksi_values v ON v.transaksi_id = p.transaksi_id
    WHERE (:since IS NULL OR t.tanggal_wib >= :since)
      AND (:until IS NULL OR t.tanggal_wib < :until)
      AND (:gudang_kode IS NULL OR v.gudang_kode = :gudang_kode)
      AND (:kode_barang IS NULL OR v.kode_barang = :kode_barang)
      AND (:lot IS NULL OR v.lot = :lot)
      AND (:every_nota OR p.transaksi_id IN :transaksi_ids)
    GROUP BY v.kode_barang
) i
ORDER BY i.kode_barang;

-- name: by_group(since, until, gudang_kode, kode_barang, lot, every_nota, transaksi_ids)
-- Posted lines per group of the item, as kelompok_barang says it now; items that it does not name are a group of their
-- own, so that none is lost.
SELECT COALESCE(NULLIF(k.kelompok, ''), '(tanpa kelompok)') AS nama_kelompok, COUNT(DISTINCT v.kode_barang), COUNT(DISTINCT p.id),
       SUM(v.selisih_qty <> 0),
       SUM(v.nilai_debet),
       SUM(v.nilai_kredit),
       SUM(v.nilai_debet - v.nilai_kredit)
FROM posting_sets p
JOIN transaksi t ON t.id = p.transaksi_id
JOIN transaksi_values v ON v.transaksi_id = p.transaksi_id
LEFT JOIN kelompok_barang k ON k.kode_barang = v.kode_barang
WHERE (:since IS NULL OR t.tanggal_wib >= :since)
  AND (:until IS NULL OR t.tanggal_wib < :until)
  AND (:gudang_kode IS NULL OR v.gudang_kode = :gudang_kode)
  AND (:kode_barang IS NULL OR v.kode_barang = :kode_barang)
  AND (:lot IS NULL OR v.lot = :lot)
  AND (:every_nota OR p.transaksi_id IN :transaksi_ids)
GROUP BY nama_kelompok
ORDER BY nama_kelompok;

-- name: by_month(since, until, gudang_kode, kode_barang, lot, every_nota, transaksi_ids)
-- Posted lines per accounting month, with postings that have no line; a reversal counts nothing. The inner grouping is by
-- a primary key alone, so that it runs along it and needs no table of its own.
SELECT DATE_FORMAT(d.tanggal_wib, '%%Y-%%m') AS bulan, COUNT(*), SUM(d.is_count), SUM(d.is_count AND d.beda = 0),
       ROUND(100 * SUM(d.is_count AND d.beda = 0) / NULLIF(SUM(d.is_count), 0), 2),
       SUM(d.beda), SUM(d.lebih), SUM(d.kurang), SUM(d.lebih) - SUM(d.kurang)
FROM (
    SELECT MAX(t.tanggal_wib) AS tanggal_wib, MAX(p.jenis = 'POSTING') AS is_count,
           COUNT(NULLIF(v.selisih_qty, 0)) AS beda,
           COALESCE(SUM(v.nilai_debet), 0) AS lebih,
           COALESCE(SUM(v.nilai_kredit), 0) AS kurang
    FROM posting_sets p
    JOIN transaksi t ON t.id = p.transaksi_id
    LEFT JOIN transaksi_values v ON v.transaksi_id = p.transaksi_id
    WHERE (:since IS NULL OR t.tanggal_wib >= :since)
      AND (:until IS NULL OR t.tanggal_wib < :until)
      AND (:gudang_kode IS NULL OR v.gudang_kode = :gudang_kode)
      AND (:kode_barang IS NULL OR v.kode_barang = :kode_barang)
      AND (:lot IS NULL OR v.lot = :lot)
      AND (:every_nota OR p.transaksi_id IN :transaksi_ids)
    GROUP BY p.id
) d
GROUP BY bulan
ORDER BY bulan;

-- name: by_reason(since, until, gudang_kode, kode_barang, lot, every_nota, transaksi_ids)
-- Posted lines with a variance per reason; lines without one are a group of their own, so that none is lost.
SELECT COALESCE(NULLIF(d.alasan, ''), '(tanpa alasan)') AS sebab, COUNT(DISTINCT p.id), SUM(v.selisih_qty <> 0),
       SUM(v.nilai_debet),
       SUM(v.nilai_kredit),
       SUM(v.nilai_debet - v.nilai_kredit)
FROM posting_sets p
JOIN transaksi t ON t.id = p.transaksi_id
LEFT JOIN posting_sets o ON o.id = p.membalik_id
JOIN transaksi_values v ON v.transaksi_id = p.transaksi_id
LEFT JOIN so_headers_staging h ON h.transaksi_id = COALESCE(o.transaksi_id, p.transaksi_id)
LEFT JOIN so_details_staging d ON d.header_id = h.id AND d.baris = v.baris AND d.kode_barang = v.kode_barang
WHERE v.selisih_qty <> 0
  AND (:since IS NULL OR t.tanggal_wib >= :since)
  AND (:until IS NULL OR t.tanggal_wib < :until)
  AND (:gudang_kode IS NULL OR v.gudang_kode = :gudang_kode)
  AND (:kode_barang IS NULL OR v.kode_barang = :kode_barang)
  AND (:lot IS NULL OR v.lot = :lot)
  AND (:every_nota OR p.transaksi_id IN :transaksi_ids)
GROUP BY sebab
ORDER BY sebab;

-- name: journal(since, until, gudang_kode, kode_akun, every_nota, transaksi_ids, at_most)
-- The general-ledger rows of postings, by their instant. As many postings as rows are wanted, read along an index: each has
-- a row of it.
SELECT j.tanggal_wib, j.nomer_nota, p.jenis, j.urutan, j.kode_akun, a.nama, j.keterangan, j.debet, j.kredit,
       t.gudang_kode, j.posting_id, j.id
FROM (SELECT w.tanggal_wib, w.posting_id
      FROM jurnal w
      STRAIGHT_JOIN posting_sets q ON q.id = w.posting_id
      LEFT JOIN transaksi u ON u.id = q.transaksi_id
      WHERE (:since IS NULL OR w.tanggal_wib >= :since)
        AND (:until IS NULL OR w.tanggal_wib < :until)
        AND (:gudang_kode IS NULL OR u.gudang_kode = :gudang_kode)
        AND (:kode_akun IS NULL OR w.kode_akun = :kode_akun)
        AND (:every_nota OR q.transaksi_id IN :transaksi_ids)
      GROUP BY w.tanggal_wib, w.posting_id
      ORDER BY w.tanggal_wib, w.posting_id
      LIMIT :at_most) wanted
STRAIGHT_JOIN jurnal j ON j.posting_id = wanted.posting_id AND j.tanggal_wib = wanted.tanggal_wib
JOIN posting_sets p ON p.id = j.posting_id
LEFT JOIN transaksi t ON t.id = p.transaksi_id
LEFT JOIN akun a ON a.kode_akun = j.kode_akun
WHERE (:kode_akun IS NULL OR j.kode_akun = :kode_akun)
ORDER BY j.tanggal_wib, j.posting_id, j.urutan, j.id
LIMIT :at_most;

-- name: journal_totals(since, until, gudang_kode, kode_akun, every_nota, transaksi_ids)
-- The same added up.
SELECT COUNT(*), SUM(j.debet), SUM(j.kredit)
FROM jurnal j
JOIN posting_sets p ON p.id = j.posting_id
LEFT JOIN transaksi t ON t.id = p.transaksi_id
WHERE (:since IS NULL OR j.tanggal_wib >= :since)
  AND (:until IS NULL OR j.tanggal_wib < :until)
  AND (:gudang_kode IS NULL OR t.gudang_kode = :gudang_kode)
  AND (:kode_akun IS NULL OR j.kode_akun = :kode_akun)
  AND (:every_nota OR p.transaksi_id IN :transaksi_ids);

-- name: stock_card_totals(since, until, gudang_kode, kode_barang, lot, nomer_nota)
-- What the rows of the cards, or of one nota, add up to.
SELECT COUNT(*), SUM(masuk), SUM(keluar), SUM(nilai)
FROM kartu_stok
WHERE (:since IS NULL OR tanggal_wib >= :since)
  AND (:until IS NULL OR tanggal_wib < :until)
  AND (:gudang_kode IS NULL OR gudang_kode = :gudang_kode)
  AND (:kode_barang IS NULL OR kode_barang = :kode_barang)
  AND (:lot IS NULL OR lot = :lot)
  AND (:nomer_nota IS NULL OR nomer_nota = :nomer_nota);

-- name: stock_card(since, until, gudang_kode, kode_barang, lot, at_most)
-- The card as v_kartu_stok has it, with the window over the asked-for cards alone: the inner filters are whole
-- partitions of the window, or what comes after the asked-for days.
SELECT s.tanggal_wib, s.kode_barang, s.lot, s.gudang_kode, s.nomer_nota, s.sumber, s.masuk, s.keluar, s.saldo,
       s.harga_pokok, s.nilai, s.posting_id, s.created_at, s.id
FROM (
    SELECT k.id, k.posting_id, k.nomer_nota, k.sumber, k.kode_barang, k.lot, k.gudang_kode, k.tanggal_wib, k.masuk,
           k.keluar, k.harga_pokok, k.nilai, k.created_at,
           SUM(k.masuk - k.keluar) OVER (
               PARTITION BY k.kode_barang, k.lot, k.gudang_kode ORDER BY k.tanggal_wib, k.id
               ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
           ) AS saldo
    FROM kartu_stok k
    WHERE (:kode_barang IS NULL OR k.kode_barang = :kode_barang)
      AND (:lot IS NULL OR k.lot = :lot)
      AND (:gudang_kode IS NULL OR k.gudang_kode = :gudang_kode)
      AND (:until IS NULL OR k.tanggal_wib < :until)
) s
WHERE (:since IS NULL OR s.tanggal_wib >= :since)
ORDER BY s.kode_barang, s.lot, s.gudang_kode, s.tanggal_wib, s.id
LIMIT :at_most;

-- name: stock_card_of_nota(since, until, gudang_kode, kode_barang, lot, nomer_nota, at_most)
-- The rows of one nota, each with the balance of its whole card. As many cards as rows are wanted: each has a row of it.
SELECT s.tanggal_wib, s.kode_barang, s.lot, s.gudang_kode, s.nomer_nota, s.sumber, s.masuk, s.keluar, s.saldo,
       s.harga_pokok, s.nilai, s.posting_id, s.created_at, s.id
FROM (
    SELECT k.id, k.posting_id, k.nomer_nota, k.sumber, k.kode_barang, k.lot, k.gudang_kode, k.tanggal_wib, k.masuk,
           k.keluar, k.harga_pokok, k.nilai, k.created_at,
           SUM(k.masuk - k.keluar) OVER (
               PARTITION BY k.kode_barang, k.lot, k.gudang_kode ORDER BY k.tanggal_wib, k.id
               ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
           ) AS saldo
    FROM (SELECT n.kode_barang, n.lot, n.gudang_kode
          FROM kartu_stok n
          WHERE n.nomer_nota = :nomer_nota
            AND (:kode_barang IS NULL OR n.kode_barang = :kode_barang)
            AND (:lot IS NULL OR n.lot = :lot)
            AND (:gudang_kode IS NULL OR n.gudang_kode = :gudang_kode)
            AND (:since IS NULL OR n.tanggal_wib >= :since)
            AND (:until IS NULL OR n.tanggal_wib < :until)
          GROUP BY n.kode_barang, n.lot, n.gudang_kode
          ORDER BY n.kode_barang, n.lot, n.gudang_kode
          LIMIT :at_most) asked
    STRAIGHT_JOIN kartu_stok k
        ON k.kode_barang = asked.kode_barang AND k.lot = asked.lot AND k.gudang_kode = asked.gudang_kode
    WHERE (:until IS NULL OR k.tanggal_wib < :until)
) s
WHERE s.nomer_nota = :nomer_nota AND (:since IS NULL OR s.tanggal_wib >= :since)
ORDER BY s.kode_barang, s.lot, s.gudang_kode, s.tanggal_wib, s.id
LIMIT :at_most;

-- name: frozen_counts(since, until, nomer_nota, posted_since, gudang_kode)
-- Counts that were posted and that nobody has reversed: when each was frozen, as it is written, and the first and the last
-- of the warehouses it counted. since, until: days they are dated; posted_since: when they were posted (UTC). Instants as
-- text: there are very many, and the driver takes ten times as long over one as Python.
SELECT p.transaksi_id, CAST(IF(YEAR(h.snapshot_at) > 0, h.snapshot_at, h.created_at) AS CHAR), h.zona_waktu,
       MIN(v.gudang_kode), MAX(v.gudang_kode)
FROM posting_sets p
JOIN transaksi t ON t.id = p.transaksi_id
JOIN so_headers_staging h ON h.transaksi_id = p.transaksi_id
JOIN transaksi_values v ON v.transaksi_id = p.transaksi_id
WHERE p.jenis = 'POSTING'
  AND NOT EXISTS (SELECT 1 FROM posting_sets r WHERE r.membalik_id = p.id)
  AND (:since IS NULL OR t.tanggal_wib >= :since)
  AND (:until IS NULL OR t.tanggal_wib < :until)
  AND (:nomer_nota IS NULL OR p.nomer_nota = :nomer_nota)
  AND (:posted_since IS NULL OR p.created_at >= :posted_since)
  AND (:gudang_kode IS NULL OR v.gudang_kode = :gudang_kode)
GROUP BY p.id;

-- name: posted_warehouses(transaksi_ids)
-- The warehouses that each of some documents counted.
SELECT DISTINCT transaksi_id, gudang_kode FROM transaksi_values WHERE transaksi_id IN :transaksi_ids;

-- name: late_candidates(codes, earliest, snapshot_wib, kode_barang, lot)
-- Movements of other modules in these warehouses that were entered in the second of the first of some snapshots or later,
-- and are dated at or before the last one: where and when. In no order: few of them are wanted, and these are read whole
-- then. Instants as text, as above.
SELECT k.id, k.gudang_kode, CAST(k.tanggal_wib AS CHAR), CAST(k.created_at AS CHAR)
FROM kartu_stok k
WHERE k.gudang_kode IN :codes AND k.created_at >= :earliest AND k.tanggal_wib <= :snapshot_wib
  AND k.posting_id IS NULL AND k.sumber <> 'OPNAME'
  AND NOT (k.sumber IN ('', 'LAMA') AND EXISTS (SELECT 1 FROM so_headers_staging h WHERE h.nomer_nota = k.nomer_nota))
  AND (:kode_barang IS NULL OR k.kode_barang = :kode_barang)
  AND (:lot IS NULL OR k.lot = :lot);

-- name: movements(ids)
-- Movements of the stock card.
SELECT k.id, k.kode_barang, k.lot, k.gudang_kode, k.nomer_nota, k.sumber, k.masuk, k.keluar, k.nilai
FROM kartu_stok k
WHERE k.id IN :ids;

-- name: postings_in_doubt(transaksi_ids)
-- Postings by the day they are dated.
SELECT p.transaksi_id, p.id AS posting_id, p.nomer_nota AS nota, p.created_at AS posted_at, t.tanggal_wib
FROM posting_sets p
JOIN transaksi t ON t.id = p.transaksi_id
WHERE p.transaksi_id IN :transaksi_ids
ORDER BY t.tanggal_wib, p.id;

-- name: counted_keys(transaksi_ids, items)
-- Which lines of some documents count these items.
SELECT transaksi_id, baris, kode_barang, lot, gudang_kode
FROM transaksi_values
WHERE transaksi_id IN :transaksi_ids AND kode_barang IN :items;

-- name: staged_hint_lines(header_id, header_gudang)
-- The same of a document that is not posted; its values are not computed yet.
SELECT d.baris, d.kode_barang, COALESCE(d.lot, ''), COALESCE(d.gudang_kode, :header_gudang), d.qty_sistem, d.qty_fisik,
       d.harga_pokok
FROM so_details_staging d
WHERE d.header_id = :header_id AND d.kode_barang IS NOT NULL AND d.qty_sistem IS NOT NULL AND d.qty_fisik IS NOT NULL
  AND (d.qty_fisik <> d.qty_sistem OR d.qty_sistem < 0)
ORDER BY d.baris;

-- name: neighbours(transaksi_id, since, until, newest)
-- Other counts posted in these days that nobody has reversed, newest first.
SELECT p.transaksi_id, p.nomer_nota
FROM posting_sets p
JOIN transaksi t ON t.id = p.transaksi_id
WHERE p.jenis = 'POSTING' AND p.transaksi_id <> :transaksi_id
  AND t.tanggal_wib >= :since AND t.tanggal_wib < :until
  AND NOT EXISTS (SELECT 1 FROM posting_sets r WHERE r.membalik_id = p.id)
ORDER BY p.id DESC
LIMIT :newest;

-- name: variances_of_items(transaksi_ids, items)
-- What these documents counted of these items, where it differed from the books.
SELECT v.transaksi_id, v.kode_barang, v.gudang_kode, v.qty_sistem, v.qty_fisik
FROM transaksi_values v
WHERE v.transaksi_id IN :transaksi_ids AND v.kode_barang IN :items AND v.selisih_qty <> 0
  AND v.qty_sistem IS NOT NULL AND v.qty_fisik IS NOT NULL;
