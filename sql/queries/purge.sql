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
