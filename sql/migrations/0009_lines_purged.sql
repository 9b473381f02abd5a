-- When the lines of a posted document were purged (UTC); NULL = they stand. What was posted from them stays for ever.

ALTER TABLE so_headers_staging ADD COLUMN baris_dihapus_at DATETIME(6) NULL;
