-- Which group an item belongs to, for the report `group`: optional, filled by whoever keeps the item master (docs/reports.md).

CREATE TABLE IF NOT EXISTS kelompok_barang (
    kode_barang VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    kelompok VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (kode_barang)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
