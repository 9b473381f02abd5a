-- Documents, master data and the books, as the posting steps read and write them.
-- A list parameter expands to (a, b, c); bulk writes take their rows as one JSON array, so that one bound parameter
-- carries thousands of rows and an exact decimal stays text until its column.

-- name: document_by_transaksi(transaksi_id)^
-- The submitted document of an accounting document.
SELECT id, transaksi_id, nomer_nota, gudang_kode, tanggal_opname, tanggal_posting, snapshot_at, otorisasi_level,
       diotorisasi_oleh, diotorisasi_at, dibuat_oleh, zona_waktu, created_at, baris_dihapus_at
FROM so_headers_staging
WHERE transaksi_id = :transaksi_id;

-- name: lock_document(transaksi_id)^
-- The same, held until the transaction ends: first in the lock order.
SELECT id, transaksi_id, nomer_nota, gudang_kode, tanggal_opname, tanggal_posting, snapshot_at, otorisasi_level,
       diotorisasi_oleh, diotorisasi_at, dibuat_oleh, zona_waktu, created_at, baris_dihapus_at
FROM so_headers_staging
WHERE transaksi_id = :transaksi_id
FOR UPDATE;

-- name: lines(header_id)
-- The counted lines of a document, as far as they are posted. Decimals as the text they are: what becomes of them is
-- decided where they are read.
SELECT baris, kode_barang, lot, gudang_kode, CAST(qty_sistem AS CHAR), CAST(qty_fisik AS CHAR),
       CAST(harga_pokok AS CHAR)
FROM so_details_staging
WHERE header_id = :header_id
ORDER BY baris;

-- name: whole_lines(header_id)
-- The same with what was written beside them.
SELECT baris, kode_barang, lot, gudang_kode, satuan, CAST(qty_sistem AS CHAR), CAST(qty_fisik AS CHAR),
       CAST(harga_pokok AS CHAR), alasan
FROM so_details_staging
WHERE header_id = :header_id
ORDER BY baris;

-- name: line_digests(header_id, gudang_kode, lines_per_block)
-- What `fingerprint.lines_digest` makes of each block of these lines, made where they stand: the same text, byte for byte.
-- GROUP_CONCAT leaves out a line whose code is NULL; a block with one has no digest.
SELECT CASE WHEN COUNT(*) = COUNT(kode_barang) THEN SHA2(
    CONCAT(
        COUNT(*), '\n',
        GROUP_CONCAT(
            baris, '\t', kode_barang, '\t', COALESCE(lot, ''), '\t', COALESCE(gudang_kode, :gudang_kode), '\t',
            COALESCE(qty_sistem, ''), '\t', COALESCE(qty_fisik, ''), '\t', COALESCE(harga_pokok, ''), '\n'
            ORDER BY baris SEPARATOR ''
        )
    ), 256) END
FROM so_details_staging
WHERE header_id = :header_id
GROUP BY baris DIV :lines_per_block
ORDER BY baris DIV :lines_per_block;

-- name: warehouses(codes)
-- Which of these warehouses exist, and whether they are active.
SELECT gudang_kode, aktif FROM gudang WHERE gudang_kode IN :codes;

-- name: lock_warehouses(codes)
-- One posting at a time per warehouse, in one order for all: makes the freshness check hold between two postings.
SELECT gudang_kode FROM gudang WHERE gudang_kode IN :codes ORDER BY gudang_kode FOR UPDATE;

-- name: warehouse_accounts(gudang_kode)^
-- Accounts of a warehouse where they differ from the common ones.
SELECT akun_persediaan, akun_laba_selisih, akun_rugi_selisih FROM akun_gudang WHERE gudang_kode = :gudang_kode;

-- name: accounts(codes)
-- Which of these accounts exist, and whether they are active.
SELECT kode_akun, aktif FROM akun WHERE kode_akun IN :codes;

-- name: closed_periods(periods)
-- Which of these months are closed. Read in one way everywhere (here, in periods.sql and audit.sql): OPEN in any spelling
-- is open, every other word closes the month.
SELECT periode FROM periode_akuntansi WHERE periode IN :periods AND UPPER(TRIM(status)) <> 'OPEN';

-- name: lock_period(periode)$
-- A month, shared: many postings may hold it, closing it waits for them.
SELECT IF(UPPER(TRIM(status)) = 'OPEN', 'OPEN', 'CLOSED') FROM periode_akuntansi WHERE periode = :periode LOCK IN SHARE MODE;

-- name: insert_period(periode)!
-- A month without a row is open, the column's default; the row is there to be locked. Without `status` in the statement
-- the account of the tasks needs no right to change it.
INSERT INTO periode_akuntansi (periode) VALUES (:periode)
ON DUPLICATE KEY UPDATE periode = periode_akuntansi.periode;

-- name: limits(gudang_kode)^
-- The approval limits: the warehouse's own row before that of all ('*').
SELECT batas_dokumen, batas_baris
FROM kebijakan_selisih
WHERE gudang_kode IN (:gudang_kode, '*')
ORDER BY gudang_kode = '*'
LIMIT 1;

-- name: posting_of(nomer_nota, transaksi_id)^
-- The posting set of an accounting document, else the one that carries this nota (a reversal's nota is taken, too).
SELECT p.id, p.transaksi_id, p.nomer_nota, p.input_hash, p.total_debet, p.total_kredit, p.baris_selisih, p.jenis,
       b.nomer_nota AS dibalik_oleh
FROM posting_sets p
LEFT JOIN posting_sets b ON b.membalik_id = p.id
WHERE (p.jenis IN ('POSTING', 'PEMBALIKAN') AND p.nomer_nota = :nomer_nota) OR p.transaksi_id = :transaksi_id
ORDER BY p.transaksi_id = :transaksi_id DESC, p.id
LIMIT 1;

-- name: job_of_older_system(nomer_nota)^
-- A job of this nota that an older system completed (it has no workflow of ours), else one that it is at work on (no
-- DAG run owns it). One statement: between two it could go from the one to the other unseen.
SELECT id AS shadow_id, UPPER(TRIM(worker_status)) AS worker_status
FROM rabbit_publish_shadow
WHERE nomer_nota = :nomer_nota
  AND ((worker_status = 'COMPLETED' AND workflow_id IS NULL) OR (worker_status = 'PROCESSING' AND dag_run_id IS NULL))
ORDER BY worker_status = 'PROCESSING', id
LIMIT 1;

-- name: nota_of_job(shadow_id)$
SELECT nomer_nota FROM rabbit_publish_shadow WHERE id = :shadow_id;

-- name: correctors(transaksi_id)
-- Who replaced the lines of a document (`submit --replace`), every time; the header keeps only who submitted it first.
-- Which names are one person is not for a collation to say (to most of them jose and josé are).
SELECT actor FROM audit_log WHERE transaksi_id = :transaksi_id AND action = 'replace' ORDER BY id;

-- name: last_answer(transaksi_id)$
-- What a person said last about a document that asked.
SELECT action FROM audit_log
WHERE transaksi_id = :transaksi_id AND action IN ('approve', 'reject')
ORDER BY id DESC
LIMIT 1;

-- name: announced_at(transaksi_id)^
-- The latest of the instants that stand beside a document, as its sender's programs wrote them; was_judged: whether an
-- attempt told somebody about it, or it was corrected, since. One that ended for reasons of ours told nobody anything.
SELECT GREATEST(h.created_at, COALESCE(MAX(s.created_at), h.created_at)) AS announced_at,
       EXISTS (SELECT 1 FROM posting_attempts a
               WHERE a.transaksi_id = h.transaksi_id
                 AND (a.outcome = 'REPLACED' OR COALESCE(a.code, 0) NOT IN (499, 500, 503, 504))) AS was_judged
FROM so_headers_staging h
LEFT JOIN rabbit_publish_shadow s ON s.transaksi_id = h.transaksi_id
WHERE h.transaksi_id = :transaksi_id
GROUP BY h.id, h.transaksi_id, h.created_at;

-- name: told_before(transaksi_id)
-- What every attempt said first; problems of the whole document come before those of its lines.
SELECT JSON_UNQUOTE(JSON_EXTRACT(problems, '$[0].pesan')) AS one, JSON_UNQUOTE(JSON_EXTRACT(problems, '$[1].pesan')) AS two
FROM posting_attempts
WHERE transaksi_id = :transaksi_id AND problems IS NOT NULL;

-- name: movements_since(header_id, codes, snapshot_utc, snapshot_foreign, foreign_second, entered_from, earliest)
-- Stock-card rows of these warehouses and of the items of this document, entered after its count was frozen. Our own rows
-- are UTC, those of other programs stand in their zone, so the instant comes in both; `entered_from` bounds the index
-- range. A row without fractions was stamped by a clock of whole seconds, somewhere in its. Second part: a row of ours is
-- stamped when it is written and seen when its posting commits, whose last words are those of its job: a posting that
-- ended after the snapshot was not seen by it; it began after `earliest`. An older column of
-- whole seconds may have rounded its stamp down.
-- A row that does not say its source is an older worker's count if its nota is one; what says another source is no count.
-- STRAIGHT_JOIN: what was entered since is little and comes first, out of ix_kartu_stok_masuk alone; the items are made
-- ready for the first such row only, and the row itself is read if its item was counted.
SELECT k.id, k.kode_barang, k.lot, k.gudang_kode, k.nomer_nota,
       (k.posting_id IS NOT NULL OR k.sumber = 'OPNAME'
        OR (k.sumber IN ('', 'LAMA')
            AND EXISTS (SELECT 1 FROM so_headers_staging h WHERE h.nomer_nota = k.nomer_nota))) AS is_opname,
       k.tanggal_wib, k.created_at, k.sumber, k.masuk, k.keluar
FROM kartu_stok entered
STRAIGHT_JOIN (SELECT DISTINCT d.kode_barang FROM so_details_staging d WHERE d.header_id = :header_id) counted
    ON counted.kode_barang = entered.kode_barang
STRAIGHT_JOIN kartu_stok k ON k.id = entered.id
WHERE entered.gudang_kode IN :codes
  AND entered.created_at >= :entered_from
  AND ((k.posting_id IS NOT NULL AND k.created_at > :snapshot_utc)
       OR (k.posting_id IS NULL
           AND (k.created_at > :snapshot_foreign
                OR (k.created_at = :foreign_second AND k.created_at < :snapshot_foreign))))
UNION ALL
SELECT k.id, k.kode_barang, k.lot, k.gudang_kode, k.nomer_nota, 1, k.tanggal_wib, k.created_at, k.sumber, k.masuk, k.keluar
FROM rabbit_publish_shadow s
STRAIGHT_JOIN posting_sets p ON p.transaksi_id = s.transaksi_id AND p.shadow_id = s.id
STRAIGHT_JOIN kartu_stok k ON k.posting_id = p.id
STRAIGHT_JOIN (SELECT DISTINCT d.kode_barang FROM so_details_staging d WHERE d.header_id = :header_id) counted
    ON counted.kode_barang = k.kode_barang
WHERE s.worker_status = 'COMPLETED' AND s.worker_at > :snapshot_utc
  AND p.created_at > :earliest AND p.created_at <= :snapshot_utc + INTERVAL 1 SECOND
  AND k.created_at <= :snapshot_utc AND k.gudang_kode IN :codes
ORDER BY id;

-- name: hold_accounting_document(transaksi_id)^
-- The accounting document as it stands, unchanged until the transaction ends: the posting refers to it.
SELECT nomer_nota, jenis, tanggal_wib, gudang_kode FROM transaksi WHERE id = :transaksi_id LOCK IN SHARE MODE;

-- name: accounting_document(transaksi_id)^
-- The same, for whoever only looks.
SELECT nomer_nota, jenis, tanggal_wib, gudang_kode FROM transaksi WHERE id = :transaksi_id;

-- name: lock_accounting_document(transaksi_id)^
-- The same, before it is written over.
SELECT nomer_nota, jenis, tanggal_wib, gudang_kode FROM transaksi WHERE id = :transaksi_id FOR UPDATE;

-- name: number_stands(transaksi_id)$
-- Whether a number is in use.
SELECT 1 FROM transaksi WHERE id = :transaksi_id;

-- name: type_of_numbers()$
-- What the column of the numbers can hold; an adopted table may have a smaller one.
SELECT column_type FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name = 'transaksi' AND column_name = 'id';

-- name: put_accounting_document(transaksi_id, nomer_nota, jenis, tanggal_wib, gudang_kode)!
-- Written once per attempt; the existing application may have written it before.
INSERT INTO transaksi (id, nomer_nota, jenis, tanggal_wib, gudang_kode)
VALUES (:transaksi_id, :nomer_nota, :jenis, :tanggal_wib, :gudang_kode)
ON DUPLICATE KEY UPDATE
    nomer_nota = VALUES(nomer_nota), jenis = VALUES(jenis), tanggal_wib = VALUES(tanggal_wib),
    gudang_kode = VALUES(gudang_kode);

-- name: values_of(transaksi_id)
-- The computed lines that stand already.
SELECT baris, kode_barang, lot, gudang_kode, qty_sistem, qty_fisik, harga_pokok, selisih_qty, nilai_debet, nilai_kredit
FROM transaksi_values
WHERE transaksi_id = :transaksi_id
ORDER BY baris;

-- name: hold_values(transaksi_id)
-- The same, unchanged until the transaction ends: the stock card is made of them.
SELECT baris, kode_barang, lot, gudang_kode, qty_sistem, qty_fisik, harga_pokok, selisih_qty, nilai_debet, nilai_kredit
FROM transaksi_values
WHERE transaksi_id = :transaksi_id
ORDER BY baris
LOCK IN SHARE MODE;

-- name: value_digests(transaksi_id, lines_per_block)
-- What `fingerprint.values_digest` makes of each block of them, computed columns in steps of their last digit; unchanged until the transaction ends.
SELECT SHA2(
    CONCAT(
        COUNT(*), '\n',
        GROUP_CONCAT(
            baris, '\t', kode_barang, '\t', lot, '\t', gudang_kode, '\t',
            COALESCE(qty_sistem, ''), '\t', COALESCE(qty_fisik, ''), '\t', COALESCE(harga_pokok, ''), '\t',
            selisih_qty * 10000, '\t', nilai_debet * 100, '\t', nilai_kredit * 100, '\n'
            ORDER BY baris SEPARATOR ''
        )
    ), 256)
FROM transaksi_values
WHERE transaksi_id = :transaksi_id
GROUP BY baris DIV :lines_per_block
ORDER BY baris DIV :lines_per_block
LOCK IN SHARE MODE;

-- name: delete_values(transaksi_id)!
-- Makes room for this attempt's lines.
DELETE FROM transaksi_values WHERE transaksi_id = :transaksi_id;

-- name: insert_values(transaksi_id, header_id, gudang_kode, rows)!
-- The values of this attempt (in cents; a shortage is negative), beside the lines they were computed from. What is
-- computed here is exact in every column: nothing is rounded but in `variance`. A line that another program changes at
-- this moment is noticed in step 3, whose digest covers every row.
INSERT INTO transaksi_values
    (transaksi_id, baris, kode_barang, lot, gudang_kode, qty_sistem, qty_fisik, harga_pokok, selisih_qty, nilai_debet,
     nilai_kredit)
SELECT :transaksi_id, d.baris, d.kode_barang, COALESCE(d.lot, ''), COALESCE(d.gudang_kode, :gudang_kode), d.qty_sistem,
       d.qty_fisik, d.harga_pokok, d.qty_fisik - d.qty_sistem, GREATEST(j.cents, 0) * 0.01, GREATEST(-j.cents, 0) * 0.01
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    baris INT PATH '$[0]' ERROR ON ERROR,
    cents DECIMAL(24,0) PATH '$[1]' ERROR ON ERROR
)) j
STRAIGHT_JOIN so_details_staging d ON d.header_id = :header_id AND d.baris = j.baris;

-- name: journal_leftovers(nomer_nota, transaksi_id, accounts)
-- Journal rows that an unfinished attempt at this nota left: ours by name, or unlabelled rows of the existing worker
-- with our accounts and this document.
SELECT id, tanggal_wib, kode_akun, debet, kredit
FROM jurnal
WHERE nomer_nota = :nomer_nota
  AND (sumber = 'OPNAME' OR (sumber = '' AND transaksi_id = :transaksi_id AND kode_akun IN :accounts))
  AND (posting_id IS NULL OR NOT EXISTS (SELECT 1 FROM posting_sets p WHERE p.id = jurnal.posting_id))
ORDER BY id;

-- name: stock_card_leftovers(nomer_nota, transaksi_id)
-- Stock-card rows of the same kind.
SELECT id, tanggal_wib, kode_barang, lot, gudang_kode, masuk, keluar, nilai
FROM kartu_stok
WHERE nomer_nota = :nomer_nota
  AND (sumber = 'OPNAME' OR (sumber = '' AND transaksi_id = :transaksi_id))
  AND (posting_id IS NULL OR NOT EXISTS (SELECT 1 FROM posting_sets p WHERE p.id = kartu_stok.posting_id))
ORDER BY id;

-- name: hold_journal(ids)
-- Leftovers as they stand, until they are replaced.
SELECT id FROM jurnal WHERE id IN :ids ORDER BY id FOR UPDATE;

-- name: hold_stock_card(ids)
SELECT id FROM kartu_stok WHERE id IN :ids ORDER BY id FOR UPDATE;

-- name: archive_journal(ids, posting_id, reason)!
-- The old rows, kept, with the posting that replaced them.
INSERT INTO jurnal_arsip
    (id, posting_id, urutan, transaksi_id, nomer_nota, sumber, tanggal_wib, kode_akun, keterangan, debet, kredit,
     created_at, diarsipkan_at, oleh_posting_id, alasan)
SELECT id, posting_id, urutan, transaksi_id, nomer_nota, sumber, tanggal_wib, kode_akun, keterangan, debet, kredit,
       created_at, UTC_TIMESTAMP(6), :posting_id, :reason
FROM jurnal
WHERE id IN :ids;

-- name: delete_journal(ids)!
-- Only after they were archived in the same transaction.
DELETE FROM jurnal WHERE id IN :ids;

-- name: archive_stock_card(ids, posting_id, reason)!
-- The same for the stock card.
INSERT INTO kartu_stok_arsip
    (id, posting_id, transaksi_id, nomer_nota, sumber, kode_barang, lot, gudang_kode, tanggal_wib, masuk, keluar,
     harga_pokok, nilai, created_at, diarsipkan_at, oleh_posting_id, alasan)
SELECT id, posting_id, transaksi_id, nomer_nota, sumber, kode_barang, lot, gudang_kode, tanggal_wib, masuk, keluar,
       harga_pokok, nilai, created_at, UTC_TIMESTAMP(6), :posting_id, :reason
FROM kartu_stok
WHERE id IN :ids;

-- name: delete_stock_card(ids)!
-- Only after they were archived in the same transaction.
DELETE FROM kartu_stok WHERE id IN :ids;

-- name: insert_posting(transaksi_id, nomer_nota, shadow_id, dag_run_id, input_hash, total_debet, total_kredit, baris_selisih)!
-- One posting per nota: a second one is a duplicate key, whoever was first.
INSERT INTO posting_sets
    (transaksi_id, nomer_nota, jenis, shadow_id, dag_run_id, input_hash, total_debet, total_kredit, baris_selisih,
     created_at)
VALUES
    (:transaksi_id, :nomer_nota, 'POSTING', :shadow_id, :dag_run_id, :input_hash, :total_debet, :total_kredit,
     :baris_selisih, UTC_TIMESTAMP(6));

-- name: insert_journal(posting_id, urutan, transaksi_id, nomer_nota, tanggal_wib, kode_akun, keterangan, debet, kredit)*!
-- The general-ledger rows of a posting.
INSERT INTO jurnal
    (posting_id, urutan, transaksi_id, nomer_nota, sumber, tanggal_wib, kode_akun, keterangan, debet, kredit,
     created_at)
VALUES
    (:posting_id, :urutan, :transaksi_id, :nomer_nota, 'OPNAME', :tanggal_wib, :kode_akun, :keterangan, :debet,
     :kredit, UTC_TIMESTAMP(6));

-- name: insert_stock_card(posting_id, transaksi_id, nomer_nota, tanggal_wib)!
-- The stock movements of a posting: one for each computed line with a variance, in line order.
INSERT INTO kartu_stok
    (posting_id, transaksi_id, nomer_nota, sumber, kode_barang, lot, gudang_kode, tanggal_wib, masuk, keluar,
     harga_pokok, nilai, created_at)
SELECT :posting_id, v.transaksi_id, :nomer_nota, 'OPNAME', v.kode_barang, v.lot, v.gudang_kode, :tanggal_wib,
       GREATEST(v.selisih_qty, 0), GREATEST(-v.selisih_qty, 0), v.harga_pokok, v.nilai_debet - v.nilai_kredit,
       UTC_TIMESTAMP(6)
FROM transaksi_values v
WHERE v.transaksi_id = :transaksi_id AND v.selisih_qty <> 0
ORDER BY v.baris;

-- name: journal_total(posting_id, akun_persediaan)^
-- What stands in the journal now, read back before the commit.
SELECT COALESCE(SUM(debet), 0) AS debet, COALESCE(SUM(kredit), 0) AS kredit,
       COALESCE(SUM(CASE WHEN kode_akun = :akun_persediaan THEN debet ELSE 0 END), 0) AS persediaan_debet,
       COALESCE(SUM(CASE WHEN kode_akun = :akun_persediaan THEN kredit ELSE 0 END), 0) AS persediaan_kredit
FROM jurnal
WHERE posting_id = :posting_id;

-- name: stock_card_total(posting_id)^
-- What stands in the stock card now.
SELECT COUNT(*) AS baris, COALESCE(SUM(CASE WHEN nilai > 0 THEN nilai ELSE 0 END), 0) AS naik,
       COALESCE(SUM(CASE WHEN nilai < 0 THEN -nilai ELSE 0 END), 0) AS turun
FROM kartu_stok
WHERE posting_id = :posting_id;

-- name: insert_attempt(transaksi_id, n, dag_run_id, outcome, code, input_hash, problems, replaced_lines)!
-- One attempt at a document.
INSERT INTO posting_attempts
    (transaksi_id, n, dag_run_id, outcome, code, input_hash, problems, replaced_lines, created_at)
VALUES
    (:transaksi_id, :n, :dag_run_id, :outcome, :code, :input_hash, :problems, :replaced_lines, UTC_TIMESTAMP(6));
