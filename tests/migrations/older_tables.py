"""Tables as an older application made them."""

from __future__ import annotations

BIN = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"


# As the application made them before us: no posting_id, urutan, sumber or created_at; counters of 4 bytes; a column
# of its own.
JURNAL = f"""
CREATE TABLE jurnal (
    id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    transaksi_id INT NULL,
    nomer_nota VARCHAR(150) {BIN} NULL,
    tanggal_wib DATETIME NOT NULL,
    kode_akun VARCHAR(30) {BIN} NOT NULL,
    keterangan VARCHAR(255) NULL,
    debet DECIMAL(30,4) NOT NULL DEFAULT 0,
    kredit DECIMAL(30,4) NOT NULL DEFAULT 0,
    cabang VARCHAR(20) NULL,
    KEY ix_cabang (cabang)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
INSERT INTO jurnal (nomer_nota, tanggal_wib, kode_akun, debet, kredit, cabang) VALUES
    ('LM-1', '2025-12-31 10:00:00', '1010030030', 10.5, 0, 'JKT'),
    ('LM-1', '2025-12-31 10:00:00', '7010150', 0, 10.5, 'JKT');
"""


KARTU_STOK = f"""
CREATE TABLE kartu_stok (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    nomer_nota VARCHAR(100) {BIN} NULL,
    transaksi_id BIGINT NULL,
    kode_barang VARCHAR(64) {BIN} NOT NULL,
    lot VARCHAR(64) {BIN} NOT NULL DEFAULT '',
    gudang_kode VARCHAR(40) {BIN} NOT NULL,
    tanggal_wib DATETIME NOT NULL,
    masuk DECIMAL(18,4) NOT NULL DEFAULT 0,
    keluar DECIMAL(18,4) NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
INSERT INTO kartu_stok (nomer_nota, kode_barang, gudang_kode, tanggal_wib, masuk) VALUES
    ('BELI-1', 'A', 'GD-A', '2025-12-30 08:00:00', 10);
"""


SHADOW = f"""
CREATE TABLE rabbit_publish_shadow (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    transaksi_id BIGINT NULL,
    nomer_nota VARCHAR(100) {BIN} NULL,
    payload LONGTEXT NULL,
    publish_status VARCHAR(20) NOT NULL DEFAULT 'PENDING',
    worker_status VARCHAR(20) NOT NULL DEFAULT 'PENDING'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
INSERT INTO rabbit_publish_shadow (worker_status) VALUES ('PENDING'), ('PROCESSING'), ('COMPLETED'), ('FAILED');
"""
