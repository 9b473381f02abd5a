-- Documents that wait for a person. SELECTs only: answers go through the workflow layer.

-- name: waiting_documents(after_id, size)
-- Runs of documents that stand at a wait for an answer, paused ones too, the oldest first; after_id is the last run of
-- the page before. Which of them are open questions of a posting is the engine's rule. batas_..._kini: the approval limits
-- as they are now, as `limits` of books.sql picks them.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, s.worker_status, r.id AS workflow_id, h.gudang_kode,
       h.tanggal_opname, h.dibuat_oleh, h.diotorisasi_oleh,
       (SELECT k.batas_dokumen FROM kebijakan_selisih k WHERE k.gudang_kode IN (h.gudang_kode, '*')
        ORDER BY k.gudang_kode = '*' LIMIT 1) AS batas_dokumen_kini,
       (SELECT k.batas_baris FROM kebijakan_selisih k WHERE k.gudang_kode IN (h.gudang_kode, '*')
        ORDER BY k.gudang_kode = '*' LIMIT 1) AS batas_baris_kini
FROM workflow_runs r
JOIN rabbit_publish_shadow s ON s.id = r.carrier_shadow_id
LEFT JOIN so_headers_staging h ON h.transaksi_id = s.transaksi_id
WHERE r.status IN ('waiting_for_signal', 'paused') AND r.waiting IS NOT NULL AND s.transaksi_id IS NOT NULL
  AND r.id > :after_id
ORDER BY r.id
LIMIT :size;

-- name: waiting_document(shadow_id)^
-- The same of one document, by the job that carries it.
SELECT s.id AS shadow_id, s.transaksi_id, s.nomer_nota, s.worker_status, r.id AS workflow_id, h.gudang_kode,
       h.tanggal_opname, h.dibuat_oleh, h.diotorisasi_oleh,
       (SELECT k.batas_dokumen FROM kebijakan_selisih k WHERE k.gudang_kode IN (h.gudang_kode, '*')
        ORDER BY k.gudang_kode = '*' LIMIT 1) AS batas_dokumen_kini,
       (SELECT k.batas_baris FROM kebijakan_selisih k WHERE k.gudang_kode IN (h.gudang_kode, '*')
        ORDER BY k.gudang_kode = '*' LIMIT 1) AS batas_baris_kini
FROM rabbit_publish_shadow s
JOIN workflow_runs r ON r.id = s.workflow_id AND r.carrier_shadow_id = s.id
LEFT JOIN so_headers_staging h ON h.transaksi_id = s.transaksi_id
WHERE s.id = :shadow_id AND r.status IN ('waiting_for_signal', 'paused') AND r.waiting IS NOT NULL
  AND s.transaksi_id IS NOT NULL;
