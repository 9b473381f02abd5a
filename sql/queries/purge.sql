-- What may go by age, and nothing else. The condition stands in the DELETE once more: between the two statements a job
-- may have been run again.

-- name: sent_messages(sent_before, after_id, size)
-- Messages that went out and whose job, if it is still there, is done for good.
SELECT o.id
FROM outbox o
LEFT JOIN rabbit_publish_shadow s ON s.id = o.shadow_id
WHERE o.id > :after_id AND o.published_at < :sent_before
  AND (s.id IS NULL OR s.worker_status IN ('COMPLETED', 'CANCELLED'))
ORDER BY o.id
LIMIT :size;

-- name: delete_sent_messages(ids)!
DELETE FROM outbox
WHERE id IN :ids AND published_at IS NOT NULL
  AND NOT EXISTS (
      SELECT 1 FROM rabbit_publish_shadow s
      WHERE s.id = outbox.shadow_id AND s.worker_status NOT IN ('COMPLETED', 'CANCELLED')
  );

-- name: next_posted_document(posted_before, after_id)^
-- The next document that was posted long ago, whose jobs are all over and that still has lines. Its header is held: first
-- in the lock order. What somebody holds just now (a posting holds its header) is left for the next purge.
SELECT h.id AS header_id, h.transaksi_id, h.nomer_nota, p.id AS posting_id,
       (SELECT COUNT(*) FROM so_details_staging d WHERE d.header_id = h.id) AS jumlah_baris
FROM so_headers_staging h
JOIN posting_sets p ON p.transaksi_id = h.transaksi_id AND p.nomer_nota = h.nomer_nota AND p.jenis = 'POSTING'
WHERE h.id > :after_id AND p.created_at < :posted_before
  AND EXISTS (SELECT 1 FROM so_details_staging d WHERE d.header_id = h.id)
  AND NOT EXISTS (
      SELECT 1 FROM rabbit_publish_shadow s
      WHERE s.transaksi_id = h.transaksi_id AND s.worker_status NOT IN ('COMPLETED', 'CANCELLED')
  )
ORDER BY h.id
LIMIT 1
FOR UPDATE SKIP LOCKED;

-- name: delete_lines(header_id, size)!
DELETE FROM so_details_staging WHERE header_id = :header_id ORDER BY baris LIMIT :size;

-- name: mark_lines_purged(header_id)!
UPDATE so_headers_staging SET baris_dihapus_at = COALESCE(baris_dihapus_at, UTC_TIMESTAMP(6)) WHERE id = :header_id;

-- name: runs_with_history(finished_before, after_id, size)
-- Runs of documents that came to their end long ago and whose steps are still kept. Held, so that two purges share the
-- work and nobody runs one again meanwhile; what somebody holds just now is left for the next one.
SELECT r.id
FROM workflow_runs r
WHERE r.id > :after_id
  AND r.status IN ('completed', 'cancelled')
  AND r.finished_at < :finished_before
  AND (r.compensation IS NULL OR r.compensation = 'done')
  AND EXISTS (SELECT 1 FROM rabbit_publish_shadow s WHERE s.workflow_id = r.id AND s.transaksi_id IS NOT NULL)
  AND NOT EXISTS (
      SELECT 1 FROM rabbit_publish_shadow s
      WHERE s.workflow_id = r.id AND s.worker_status NOT IN ('COMPLETED', 'CANCELLED')
  )
  AND (EXISTS (SELECT 1 FROM workflow_steps k WHERE k.workflow_id = r.id)
       OR EXISTS (SELECT 1 FROM workflow_events e WHERE e.workflow_id = r.id))
ORDER BY r.id
LIMIT :size
FOR UPDATE SKIP LOCKED;

-- name: delete_steps(run_ids)!
DELETE FROM workflow_steps WHERE workflow_id IN :run_ids;

-- name: delete_events(run_ids)!
DELETE FROM workflow_events WHERE workflow_id IN :run_ids;
