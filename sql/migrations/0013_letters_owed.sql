-- Which failures still have no dead letter is asked every few seconds: found without a walk through all that ever failed.

ALTER TABLE rabbit_publish_shadow ADD KEY ix_shadow_surat (worker_status, dead_lettered_at, worker_at);
