-- The invariants of the books: every statement returns the rows that break one, nothing when all is well.
-- Plain consistent reads: they take no lock and wait for none. Large tables are walked in windows, `after` (not
-- included) to `upto` (included), so that no statement is long and no old snapshot is kept; `next_*` finds the end of
-- a window. What belongs together is compared within one statement, so a commit in between is seen whole or not at all.

-- name: next_posting(after, size)$
SELECT MAX(w.id) FROM (SELECT id FROM posting_sets WHERE id > :after ORDER BY id LIMIT :size) w;

-- name: next_journal_row(after, size)$
SELECT MAX(w.id) FROM (SELECT id FROM jurnal WHERE id > :after ORDER BY id LIMIT :size) w;

-- name: next_stock_card_row(after, size)$
SELECT MAX(w.id) FROM (SELECT id FROM kartu_stok WHERE id > :after ORDER BY id LIMIT :size) w;

-- name: next_job(after, size)$
SELECT MAX(w.id) FROM (SELECT id FROM rabbit_publish_shadow WHERE id > :after ORDER BY id LIMIT :size) w;

-- name: next_item(after, size)$
-- Along the index; an item's rows are never in two windows.
SELECT MAX(w.kode_barang)
FROM (SELECT kode_barang FROM kartu_stok WHERE kode_barang > :after ORDER BY kode_barang LIMIT :size) w;

-- name: before_posting_of(since)$
-- The last posting made before an instant (UTC); ids grow with time.
SELECT COALESCE(MAX(id), 0) FROM posting_sets WHERE created_at < :since;

-- name: unbalanced(after, upto)
-- Totals of the posting set = Σ debet = Σ kredit of its journal, and every row has one side.
SELECT p.id AS posting_id, p.nomer_nota, p.total_debet, p.total_kredit, COALESCE(SUM(j.debet), 0) AS debet,
       COALESCE(SUM(j.kredit), 0) AS kredit,
       COALESCE(SUM(j.debet < 0 OR j.kredit < 0 OR (j.debet > 0) = (j.kredit > 0)), 0) AS baris_cacat
FROM posting_sets p
LEFT JOIN jurnal j ON j.posting_id = p.id
WHERE p.id > :after AND p.id <= :upto
GROUP BY p.id, p.nomer_nota, p.total_debet, p.total_kredit
HAVING p.total_debet <> p.total_kredit OR p.total_debet <> COALESCE(SUM(j.debet), 0)
    OR p.total_kredit <> COALESCE(SUM(j.kredit), 0)
    OR SUM(j.debet < 0 OR j.kredit < 0 OR (j.debet > 0) = (j.kredit > 0)) > 0
ORDER BY p.id;

-- name: inventory_differs(after, upto)
-- The inventory account's two sides = positive and negative values of the stock card. Which account that is, is read
-- from the rows of the original posting (urutan 1 and 4): accounts of a warehouse may have changed since.
SELECT c.posting_id, c.nomer_nota, c.akun, c.persediaan_debet, c.persediaan_kredit, c.naik, c.turun, c.baris,
       c.baris_selisih
FROM (
    SELECT p.id AS posting_id, p.nomer_nota, p.baris_selisih, a.akun, a.akun_lain,
           COALESCE((SELECT SUM(j.debet) FROM jurnal j WHERE j.posting_id = p.id AND j.kode_akun = a.akun), 0)
               AS persediaan_debet,
           COALESCE((SELECT SUM(j.kredit) FROM jurnal j WHERE j.posting_id = p.id AND j.kode_akun = a.akun), 0)
               AS persediaan_kredit,
           COALESCE(k.naik, 0) AS naik, COALESCE(k.turun, 0) AS turun, COALESCE(k.baris, 0) AS baris
    FROM posting_sets p
    LEFT JOIN (
        SELECT w.id, MIN(i.kode_akun) AS akun, MAX(i.kode_akun) AS akun_lain
        FROM posting_sets w
        JOIN jurnal i ON i.posting_id = COALESCE(w.membalik_id, w.id) AND i.urutan IN (1, 4)
        WHERE w.id > :after AND w.id <= :upto
        GROUP BY w.id
    ) a ON a.id = p.id
    LEFT JOIN (
        SELECT posting_id, COUNT(*) AS baris, SUM(CASE WHEN nilai > 0 THEN nilai ELSE 0 END) AS naik,
               SUM(CASE WHEN nilai < 0 THEN -nilai ELSE 0 END) AS turun
        FROM kartu_stok
        WHERE posting_id > :after AND posting_id <= :upto
        GROUP BY posting_id
    ) k ON k.posting_id = p.id
    WHERE p.id > :after AND p.id <= :upto
) c
WHERE c.persediaan_debet <> c.naik OR c.persediaan_kredit <> c.turun OR c.baris <> c.baris_selisih
   OR c.akun <> c.akun_lain
ORDER BY c.posting_id;

-- name: completed_without_posting(after, upto)
-- Not: jobs that an older system completed (no workflow), a nota that such a job had posted, other modules' workflows.
SELECT s.transaksi_id, MIN(s.id) AS shadow_id, s.nomer_nota
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.id > :after AND s.id <= :upto AND s.worker_status = 'COMPLETED' AND s.transaksi_id IS NOT NULL
  AND s.workflow_id IS NOT NULL AND (r.id IS NULL OR r.workflow IN ('opname_posting', 'opname_reversal'))
  AND NOT EXISTS (SELECT 1 FROM posting_sets p WHERE p.transaksi_id = s.transaksi_id)
  AND NOT EXISTS (
      SELECT 1 FROM rabbit_publish_shadow o
      WHERE o.nomer_nota = s.nomer_nota AND o.worker_status = 'COMPLETED' AND o.workflow_id IS NULL
  )
GROUP BY s.transaksi_id, s.nomer_nota
ORDER BY s.transaksi_id;

-- name: posting_without_completed(after, upto)
-- A posting set and COMPLETED are one commit.
SELECT p.id AS posting_id, p.transaksi_id, p.nomer_nota,
       COALESCE((SELECT GROUP_CONCAT(DISTINCT s.worker_status ORDER BY s.worker_status)
                 FROM rabbit_publish_shadow s WHERE s.transaksi_id = p.transaksi_id), 'tidak ada') AS worker_status
FROM posting_sets p
WHERE p.id > :after AND p.id <= :upto
  AND NOT EXISTS (
      SELECT 1 FROM rabbit_publish_shadow s WHERE s.transaksi_id = p.transaksi_id AND s.worker_status = 'COMPLETED'
  )
ORDER BY p.id;

-- name: journal_without_posting(after, upto)
-- Rows that say OPNAME and belong to no posting set, rows that name one that does not exist or is another nota's, and
-- rows of a program that does not say, for a document that a posting set has, on its accounts: posted a second time.
SELECT j.id AS jurnal_id, j.posting_id, j.nomer_nota, j.kode_akun, j.debet, j.kredit
FROM jurnal j
LEFT JOIN posting_sets p ON p.id = j.posting_id
WHERE j.id > :after AND j.id <= :upto
  AND ((j.posting_id IS NULL AND j.sumber = 'OPNAME')
       OR (j.posting_id IS NULL AND j.sumber = ''
           AND EXISTS (SELECT 1 FROM posting_sets d JOIN jurnal dj ON dj.posting_id = d.id
                       WHERE d.transaksi_id = j.transaksi_id AND d.nomer_nota = j.nomer_nota
                         AND dj.kode_akun = j.kode_akun))
       OR (j.posting_id IS NOT NULL
           AND (p.id IS NULL OR NOT (j.transaksi_id <=> p.transaksi_id) OR NOT (j.nomer_nota <=> p.nomer_nota))))
ORDER BY j.id;

-- name: stock_card_without_posting(after, upto)
-- The same for the stock card.
SELECT k.id AS kartu_stok_id, k.posting_id, k.nomer_nota, k.kode_barang, k.lot, k.gudang_kode, k.masuk, k.keluar
FROM kartu_stok k
LEFT JOIN posting_sets p ON p.id = k.posting_id
WHERE k.id > :after AND k.id <= :upto
  AND ((k.posting_id IS NULL AND k.sumber = 'OPNAME')
       OR (k.posting_id IS NULL AND k.sumber = ''
           AND EXISTS (SELECT 1 FROM posting_sets d
                       WHERE d.transaksi_id = k.transaksi_id AND d.nomer_nota = k.nomer_nota))
       OR (k.posting_id IS NOT NULL
           AND (p.id IS NULL OR NOT (k.transaksi_id <=> p.transaksi_id) OR NOT (k.nomer_nota <=> p.nomer_nota))))
ORDER BY k.id;

-- name: reversal_of_nothing(after, upto)
-- A reversal names a posting of the same total and number of rows; a posting names none.
SELECT p.id AS posting_id, p.nomer_nota, p.jenis, p.membalik_id, o.nomer_nota AS nota_asal, p.total_debet,
       o.total_debet AS total_asal
FROM posting_sets p
LEFT JOIN posting_sets o ON o.id = p.membalik_id
WHERE p.id > :after AND p.id <= :upto
  AND ((p.jenis = 'PEMBALIKAN' AND (o.id IS NULL OR o.jenis <> 'POSTING' OR o.total_debet <> p.total_debet
                                    OR o.baris_selisih <> p.baris_selisih))
       OR (p.jenis <> 'PEMBALIKAN' AND p.membalik_id IS NOT NULL))
ORDER BY p.id;

-- name: journal_not_mirrored(after, upto)
-- Journal rows of a reversal, sides swapped back, beside those of the original: the same rows, as often.
SELECT m.posting_id, m.nomer_nota, m.membalik_id, m.kode_akun, m.debet, m.kredit, SUM(m.asal) AS asal,
       SUM(m.cermin) AS cermin
FROM (
    SELECT p.id AS posting_id, p.nomer_nota, p.membalik_id, j.kode_akun, j.debet, j.kredit, 1 AS asal, 0 AS cermin
    FROM posting_sets p
    JOIN jurnal j ON j.posting_id = p.membalik_id
    WHERE p.id > :after AND p.id <= :upto AND p.membalik_id IS NOT NULL
    UNION ALL
    SELECT p.id, p.nomer_nota, p.membalik_id, j.kode_akun, j.kredit, j.debet, 0, 1
    FROM posting_sets p
    JOIN jurnal j ON j.posting_id = p.id
    WHERE p.id > :after AND p.id <= :upto AND p.membalik_id IS NOT NULL
) m
GROUP BY m.posting_id, m.nomer_nota, m.membalik_id, m.kode_akun, m.debet, m.kredit
HAVING SUM(m.asal) <> SUM(m.cermin)
ORDER BY m.posting_id, m.kode_akun, m.debet, m.kredit;

-- name: stock_card_not_mirrored(after, upto)
-- The same for the stock card: masuk and keluar swapped, the value's sign turned.
SELECT m.posting_id, m.nomer_nota, m.membalik_id, m.kode_barang, m.lot, m.gudang_kode, m.masuk, m.keluar, m.nilai,
       SUM(m.asal) AS asal, SUM(m.cermin) AS cermin
FROM (
    SELECT p.id AS posting_id, p.nomer_nota, p.membalik_id, k.kode_barang, k.lot, k.gudang_kode, k.masuk, k.keluar,
           k.nilai, 1 AS asal, 0 AS cermin
    FROM posting_sets p
    JOIN kartu_stok k ON k.posting_id = p.membalik_id
    WHERE p.id > :after AND p.id <= :upto AND p.membalik_id IS NOT NULL
    UNION ALL
    SELECT p.id, p.nomer_nota, p.membalik_id, k.kode_barang, k.lot, k.gudang_kode, k.keluar, k.masuk, -k.nilai, 0, 1
    FROM posting_sets p
    JOIN kartu_stok k ON k.posting_id = p.id
    WHERE p.id > :after AND p.id <= :upto AND p.membalik_id IS NOT NULL
) m
GROUP BY m.posting_id, m.nomer_nota, m.membalik_id, m.kode_barang, m.lot, m.gudang_kode, m.masuk, m.keluar, m.nilai
HAVING SUM(m.asal) <> SUM(m.cermin)
ORDER BY m.posting_id, m.kode_barang, m.lot, m.gudang_kode;

-- name: empty_stock_with_value(after, upto)
-- Nothing there, and yet a value. An item with a movement that its module entered without a value is not judged.
SELECT kode_barang, lot, gudang_kode, SUM(nilai) AS nilai, COUNT(*) AS gerakan, MAX(nomer_nota) AS salah_satu_nota
FROM kartu_stok
WHERE kode_barang > :after AND kode_barang <= :upto
GROUP BY kode_barang, lot, gudang_kode
HAVING SUM(masuk - keluar) = 0 AND SUM(nilai) <> 0 AND SUM(nilai IS NULL) = 0
ORDER BY kode_barang, lot, gudang_kode;

-- name: closed_months()
SELECT periode FROM periode_akuntansi WHERE UPPER(TRIM(status)) <> 'OPEN';

-- name: closings()
-- When months were closed and opened, by people.
SELECT created_at, action, JSON_UNQUOTE(JSON_EXTRACT(after_value, '$.periode')) AS periode
FROM audit_log
WHERE action IN ('period_close', 'period_open')
ORDER BY id;

-- name: entered_while_closed(after, upto, closings)
-- What is dated in a month and was entered while that month was closed: posting sets, journal, stock card.
SELECT e.tabel, e.posting_id, e.nomer_nota, MIN(e.tanggal_wib) AS tanggal_wib, MIN(e.created_at) AS created_at,
       c.ditutup_at
FROM (
    SELECT 'posting' AS tabel, p.id AS posting_id, p.nomer_nota, t.tanggal_wib, p.created_at
    FROM posting_sets p
    JOIN transaksi t ON t.id = p.transaksi_id
    WHERE p.id > :after AND p.id <= :upto
    UNION ALL
    SELECT 'jurnal', j.posting_id, j.nomer_nota, j.tanggal_wib, j.created_at
    FROM jurnal j
    WHERE j.posting_id > :after AND j.posting_id <= :upto
    UNION ALL
    SELECT 'kartu stok', k.posting_id, k.nomer_nota, k.tanggal_wib, k.created_at
    FROM kartu_stok k
    WHERE k.posting_id > :after AND k.posting_id <= :upto
) e
JOIN JSON_TABLE(:closings, '$[*]' COLUMNS (
    bulan INT PATH '$[0]' ERROR ON ERROR,
    ditutup_at DATETIME(6) PATH '$[1]' ERROR ON ERROR,
    dibuka_at DATETIME(6) PATH '$[2]'
)) c ON c.bulan = YEAR(e.tanggal_wib) * 100 + MONTH(e.tanggal_wib)
    AND e.created_at > c.ditutup_at AND (c.dibuka_at IS NULL OR e.created_at < c.dibuka_at)
GROUP BY e.tabel, e.posting_id, e.nomer_nota, c.ditutup_at
ORDER BY e.posting_id, e.tabel;

-- name: was_approved(posting_id)$
-- Whether a person approved the document of a posting.
SELECT EXISTS (
    SELECT 1 FROM posting_sets p JOIN audit_log l ON l.transaksi_id = p.transaksi_id AND l.action = 'approve'
    WHERE p.id = :posting_id
);

-- name: overdue_jobs(after, grace_s, foreign_before, size)
-- PENDING is due: what is to wait says WAITING. Not due is only a message that was written to go out much later. A
-- row of another program has no worker_at, and its created_at is an instant of that program's zone.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, COALESCE(s.worker_at, s.created_at) AS sejak
FROM rabbit_publish_shadow s
WHERE s.worker_status = 'PENDING' AND s.id > :after
  AND (s.worker_at <= UTC_TIMESTAMP(6) - INTERVAL :grace_s SECOND
       OR (s.worker_at IS NULL AND s.created_at <= :foreign_before))
  AND NOT EXISTS (
      SELECT 1 FROM outbox o
      WHERE o.shadow_id = s.id AND o.published_at IS NULL AND o.available_at > UTC_TIMESTAMP(6)
        AND o.available_at > o.created_at + INTERVAL :grace_s SECOND
  )
ORDER BY s.id
LIMIT :size;

-- name: failed_without_letter(after, grace_s, size)
-- A fault needs a dead letter; a person's refusal (403) does not. The carrier's stands for all rows of its workflow.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, s.error_code, s.worker_at AS sejak
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.worker_status = 'FAILED' AND s.id > :after AND s.dead_lettered_at IS NULL
  AND (s.error_code IS NULL OR s.error_code <> 403)
  AND (s.worker_at IS NULL OR s.worker_at <= UTC_TIMESTAMP(6) - INTERVAL :grace_s SECOND)
  AND (s.workflow_id IS NULL OR r.id IS NULL OR r.carrier_shadow_id = s.id)
ORDER BY s.id
LIMIT :size;

-- name: letters_owed(grace_s)^
-- How many letters must lie in the dead-letter queue at least, and how many are still on their way there. Failures
-- from before us (decision 0044) have a mark and no letter.
SELECT (SELECT COUNT(*) FROM rabbit_publish_shadow
        WHERE worker_status = 'FAILED' AND dead_lettered_at > '1970-01-02'
          AND dead_lettered_at <= UTC_TIMESTAMP(6) - INTERVAL :grace_s SECOND) AS dokumen,
       (SELECT COUNT(*) FROM outbox WHERE exchange = 'everest.jobs.dlx' AND published_at IS NULL) AS di_jalan;

-- name: jobs_at_work(after, grace_s, size)
-- PROCESSING and without news for a while. A follower's run is its carrier's.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, COALESCE(s.dag_id, r.dag_id) AS dag_id, s.dag_run_id,
       s.worker_at AS sejak
FROM rabbit_publish_shadow s
LEFT JOIN workflow_runs r ON r.id = s.workflow_id
WHERE s.worker_status = 'PROCESSING' AND s.id > :after
  AND (s.worker_at IS NULL OR s.worker_at <= UTC_TIMESTAMP(6) - INTERVAL :grace_s SECOND)
ORDER BY s.id
LIMIT :size;

-- name: is_still_at_work(shadow_id, dag_run_id, sejak)$
-- Whether nothing was committed about a job since it was read.
SELECT COUNT(*) FROM rabbit_publish_shadow
WHERE id = :shadow_id AND worker_status = 'PROCESSING' AND dag_run_id <=> :dag_run_id AND worker_at <=> :sejak;

-- name: begin_run(invariant, actor, dag_run_id, since_at)!
INSERT INTO audit_runs (invariant, actor, dag_run_id, since_at, outcome, started_at)
VALUES (:invariant, :actor, :dag_run_id, :since_at, 'RUNNING', UTC_TIMESTAMP(6));

-- name: put_findings(run_id, invariant, rows)!
-- A finding that was there before keeps when it was first seen; one that had gone away is open again. What somebody
-- acknowledged holds for the same words only. (Assignments see what those before them have set.)
INSERT INTO audit_findings
    (invariant, finding_key, pesan, detail, first_seen_at, last_seen_at, first_run_id, last_run_id)
SELECT :invariant, f.finding_key, f.pesan, f.detail, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), :run_id, :run_id
FROM JSON_TABLE(:rows, '$[*]' COLUMNS (
    finding_key VARCHAR(200) PATH '$[0]' ERROR ON ERROR,
    pesan VARCHAR(1000) PATH '$[1]' ERROR ON ERROR,
    detail LONGTEXT PATH '$[2]' ERROR ON ERROR
)) f
ON DUPLICATE KEY UPDATE
    diakui_at = IF(audit_findings.resolved_at IS NULL AND audit_findings.pesan = VALUES(pesan), audit_findings.diakui_at, NULL),
    diakui_oleh = IF(diakui_at IS NULL, NULL, audit_findings.diakui_oleh),
    diakui_alasan = IF(diakui_at IS NULL, NULL, audit_findings.diakui_alasan),
    pesan = VALUES(pesan), detail = VALUES(detail), last_seen_at = VALUES(last_seen_at), last_run_id = VALUES(last_run_id),
    reopened = audit_findings.reopened + (audit_findings.resolved_at IS NOT NULL), resolved_at = NULL;

-- name: new_findings(run_id, invariant)$
SELECT COUNT(*) FROM audit_findings WHERE invariant = :invariant AND first_run_id = :run_id;

-- name: resolve_findings(run_id, invariant)!
-- Those that this run looked for and did not find any more.
UPDATE audit_findings SET resolved_at = UTC_TIMESTAMP(6)
WHERE invariant = :invariant AND resolved_at IS NULL AND last_run_id < :run_id;

-- name: end_run(run_id, outcome, found, new_found, resolved, note)!
UPDATE audit_runs
SET outcome = :outcome, found = :found, new_found = :new_found, resolved = :resolved, note = :note,
    finished_at = UTC_TIMESTAMP(6)
WHERE id = :run_id;

-- name: standing(run_id, invariant)
-- The findings of a run as they are stored: their numbers, and what was acknowledged.
SELECT id, finding_key, diakui_oleh, diakui_at, diakui_alasan
FROM audit_findings
WHERE invariant = :invariant AND last_run_id = :run_id;

-- name: hold_finding(number)^
SELECT id, invariant, pesan, resolved_at, diakui_oleh, diakui_alasan FROM audit_findings WHERE id = :number FOR UPDATE;

-- name: acknowledge(number, who, reason)!
-- Or, without a name, taken back.
UPDATE audit_findings
SET diakui_oleh = :who, diakui_at = IF(:who IS NULL, NULL, UTC_TIMESTAMP(6)), diakui_alasan = :reason
WHERE id = :number;
