-- Who did what, when, on which document.

-- name: entries(nomer_nota, shadow_id, actor, action, since, until, before, size)
-- The newest first. A document's entries are those of its nota and of every job that carries it. since, until: UTC, the
-- second not included.
SELECT l.id, l.created_at, l.actor, l.action, l.transaksi_id, l.nomer_nota, l.shadow_id, l.workflow_id, l.reason,
       l.before_value, l.after_value
FROM audit_log l
WHERE (:before IS NULL OR l.id < :before)
  AND (:nomer_nota IS NULL OR l.nomer_nota = :nomer_nota
       OR l.transaksi_id IN (SELECT s.transaksi_id FROM rabbit_publish_shadow s WHERE s.nomer_nota = :nomer_nota))
  AND (:shadow_id IS NULL OR l.shadow_id = :shadow_id
       OR l.transaksi_id IN (SELECT s.transaksi_id FROM rabbit_publish_shadow s WHERE s.id = :shadow_id))
  AND (:actor IS NULL OR l.actor = :actor)
  AND (:action IS NULL OR l.action = :action)
  AND (:since IS NULL OR l.created_at >= :since)
  AND (:until IS NULL OR l.created_at < :until)
ORDER BY l.id DESC
LIMIT :size;
