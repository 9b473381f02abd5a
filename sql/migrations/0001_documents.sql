-- Stock-count documents as they are submitted, the accounting documents they become, and the master data they name.
-- No foreign keys on tables that other programs write: their insert order is not ours to decide.

CREATE TABLE IF NOT EXISTS so_headers_staging (
    id BIGINT NOT NULL AUTO_INCREMENT,
    transaksi_id BIGINT NOT NULL,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    tanggal_opname DATE NOT NULL,
    tanggal_posting DATE NULL,
    snapshot_at DATETIME(6) NULL,
    otorisasi_level INT NOT NULL DEFAULT 0,
    diotorisasi_oleh VARCHAR(100) NULL,
    diotorisasi_at DATETIME(6) NULL,
    dibuat_oleh VARCHAR(100) NULL,
    submit_token VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    -- zone of this row's instants; NULL = a foreign program wrote it, the setting EVEREST_FOREIGN_ZONE names the zone
    zona_waktu VARCHAR(40) NULL,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (id),
    UNIQUE KEY uq_so_headers_transaksi (transaksi_id),
    UNIQUE KEY uq_so_headers_submit_token (submit_token),
    KEY ix_so_headers_nota (nomer_nota)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS so_details_staging (
    id BIGINT NOT NULL AUTO_INCREMENT,
    header_id BIGINT NOT NULL,
    baris INT NOT NULL,
    kode_barang VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    lot VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL DEFAULT '',
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    satuan VARCHAR(20) NULL,
    qty_sistem DECIMAL(18,4) NULL,
    qty_fisik DECIMAL(18,4) NULL,
    harga_pokok DECIMAL(24,6) NULL,
    alasan VARCHAR(255) NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uq_so_details_baris (header_id, baris)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS transaksi (
    id BIGINT NOT NULL AUTO_INCREMENT,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    jenis VARCHAR(20) NOT NULL,
    tanggal_wib DATETIME NULL,
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    PRIMARY KEY (id),
    KEY ix_transaksi_nota (nomer_nota)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS transaksi_values (
    transaksi_id BIGINT NOT NULL,
    baris INT NOT NULL,
    kode_barang VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    lot VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    qty_sistem DECIMAL(18,4) NULL,
    qty_fisik DECIMAL(18,4) NULL,
    harga_pokok DECIMAL(24,6) NULL,
    selisih_qty DECIMAL(18,4) NOT NULL,
    nilai_debet DECIMAL(24,2) NOT NULL,
    nilai_kredit DECIMAL(24,2) NOT NULL,
    PRIMARY KEY (transaksi_id, baris),
    CONSTRAINT ck_transaksi_values_satu_sisi CHECK (nilai_debet >= 0 AND nilai_kredit >= 0 AND (nilai_debet = 0 OR nilai_kredit = 0))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS gudang (
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    nama VARCHAR(150) NOT NULL DEFAULT '',
    aktif TINYINT NOT NULL DEFAULT 1,
    PRIMARY KEY (gudang_kode)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS akun (
    kode_akun VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    nama VARCHAR(150) NOT NULL DEFAULT '',
    aktif TINYINT NOT NULL DEFAULT 1,
    PRIMARY KEY (kode_akun)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS akun_gudang (
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    akun_persediaan VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    akun_laba_selisih VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    akun_rugi_selisih VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    PRIMARY KEY (gudang_kode)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS periode_akuntansi (
    periode CHAR(7) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    status VARCHAR(10) NOT NULL DEFAULT 'OPEN',
    PRIMARY KEY (periode),
    CONSTRAINT ck_periode_status CHECK (status IN ('OPEN', 'CLOSED'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS kebijakan_selisih (
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    batas_dokumen DECIMAL(24,2) NULL,
    batas_baris DECIMAL(24,2) NULL,
    PRIMARY KEY (gudang_kode)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- The chart of accounts needs the three accounts of posting-rules; a site that has its own rows keeps them.
INSERT INTO akun (kode_akun, nama) VALUES
    ('1010030030', 'Persediaan barang'),
    ('7010150', 'Laba selisih persediaan'),
    ('7020020', 'Rugi selisih persediaan')
ON DUPLICATE KEY UPDATE kode_akun = akun.kode_akun;
