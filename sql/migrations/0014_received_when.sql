-- What another program may leave NULL (posting-rules): when a document was sent. Then it is when it came.

DROP TRIGGER IF EXISTS tr_so_headers_created;

CREATE TRIGGER tr_so_headers_created BEFORE INSERT ON so_headers_staging
FOR EACH ROW SET NEW.created_at = COALESCE(NEW.created_at, UTC_TIMESTAMP(6));
