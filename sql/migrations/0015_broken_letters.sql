-- Broken messages in the dead-letter queue, copied by the relay: the pages speak no AMQP, and show and drop them by these rows.

CREATE TABLE IF NOT EXISTS broken_letters (
    id BIGINT NOT NULL AUTO_INCREMENT,
    -- SHA-256 of the body: the same message twice is one row
    digest CHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    reason VARCHAR(500) NOT NULL,
    -- its beginning, undecodable bytes as \xNN; the whole stays in the queue
    body TEXT NOT NULL,
    body_bytes BIGINT NOT NULL,
    -- where it came from: exchange, routing key, deaths as the broker tells them
    origin VARCHAR(500) NOT NULL,
    copies INT NOT NULL,
    died_at DATETIME(6) NULL,
    first_seen_at DATETIME(6) NOT NULL,
    last_seen_at DATETIME(6) NOT NULL,
    -- a person wants it out of the queue; the relay takes it out afterwards
    dropped_by VARCHAR(100) NULL,
    dropped_at DATETIME(6) NULL,
    -- a whole reading of the queue did not find it any more; NULL = it lies there
    gone_at DATETIME(6) NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_broken_letters_digest (digest),
    KEY ix_broken_letters_gone (gone_at, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
