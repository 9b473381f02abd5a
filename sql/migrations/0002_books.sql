-- The books: posting sets, journal, stock card, and the archive of what a posting replaced.
-- `sumber` is '' for rows of programs that do not know the column, 'LAMA' for rows that stood here before us.

CREATE TABLE IF NOT EXISTS posting_sets (
    id BIGINT NOT NULL AUTO_INCREMENT,
    transaksi_id BIGINT NOT NULL,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    jenis VARCHAR(20) NOT NULL DEFAULT 'POSTING',
    membalik_id BIGINT NULL,
    shadow_id BIGINT NULL,
    dag_run_id VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    input_hash CHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    total_debet DECIMAL(24,2) NOT NULL,
    total_kredit DECIMAL(24,2) NOT NULL,
    baris_selisih INT NOT NULL,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (id),
    UNIQUE KEY uq_posting_sets_nota (jenis, nomer_nota),
    UNIQUE KEY uq_posting_sets_transaksi (transaksi_id),
    UNIQUE KEY uq_posting_sets_membalik (membalik_id),
    CONSTRAINT ck_posting_sets_jenis CHECK (jenis IN ('POSTING', 'PEMBALIKAN')),
    CONSTRAINT ck_posting_sets_seimbang CHECK (total_debet = total_kredit AND total_debet >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS jurnal (
    id BIGINT NOT NULL AUTO_INCREMENT,
    posting_id BIGINT NULL,
    urutan INT NULL,
    transaksi_id BIGINT NULL,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    sumber VARCHAR(20) NOT NULL DEFAULT '',
    tanggal_wib DATETIME NOT NULL,
    kode_akun VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    keterangan VARCHAR(255) NULL,
    debet DECIMAL(24,2) NOT NULL DEFAULT 0,
    kredit DECIMAL(24,2) NOT NULL DEFAULT 0,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (id),
    UNIQUE KEY uq_jurnal_posting_urutan (posting_id, urutan),
    KEY ix_jurnal_nota (nomer_nota, sumber),
    KEY ix_jurnal_akun_tanggal (kode_akun, tanggal_wib),
    CONSTRAINT ck_jurnal_satu_sisi CHECK (debet >= 0 AND kredit >= 0 AND ((debet > 0) <> (kredit > 0)))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS kartu_stok (
    id BIGINT NOT NULL AUTO_INCREMENT,
    posting_id BIGINT NULL,
    transaksi_id BIGINT NULL,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    sumber VARCHAR(20) NOT NULL DEFAULT '',
    kode_barang VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    lot VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    tanggal_wib DATETIME NOT NULL,
    masuk DECIMAL(18,4) NOT NULL DEFAULT 0,
    keluar DECIMAL(18,4) NOT NULL DEFAULT 0,
    harga_pokok DECIMAL(24,6) NULL,
    nilai DECIMAL(24,2) NULL,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (id),
    KEY ix_kartu_stok_kartu (kode_barang, lot, gudang_kode, tanggal_wib, id),
    KEY ix_kartu_stok_segar (gudang_kode, created_at),
    KEY ix_kartu_stok_posting (posting_id),
    KEY ix_kartu_stok_nota (nomer_nota, sumber),
    CONSTRAINT ck_kartu_stok_arah CHECK (masuk >= 0 AND keluar >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS jurnal_arsip (
    id BIGINT NOT NULL,
    posting_id BIGINT NULL,
    urutan INT NULL,
    transaksi_id BIGINT NULL,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    sumber VARCHAR(20) NOT NULL DEFAULT '',
    tanggal_wib DATETIME NOT NULL,
    kode_akun VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    keterangan VARCHAR(255) NULL,
    debet DECIMAL(24,2) NOT NULL DEFAULT 0,
    kredit DECIMAL(24,2) NOT NULL DEFAULT 0,
    created_at DATETIME(6) NOT NULL,
    diarsipkan_at DATETIME(6) NOT NULL,
    oleh_posting_id BIGINT NOT NULL,
    alasan VARCHAR(255) NOT NULL,
    PRIMARY KEY (id),
    KEY ix_jurnal_arsip_posting (oleh_posting_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS kartu_stok_arsip (
    id BIGINT NOT NULL,
    posting_id BIGINT NULL,
    transaksi_id BIGINT NULL,
    nomer_nota VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    sumber VARCHAR(20) NOT NULL DEFAULT '',
    kode_barang VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    lot VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
    gudang_kode VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    tanggal_wib DATETIME NOT NULL,
    masuk DECIMAL(18,4) NOT NULL DEFAULT 0,
    keluar DECIMAL(18,4) NOT NULL DEFAULT 0,
    harga_pokok DECIMAL(24,6) NULL,
    nilai DECIMAL(24,2) NULL,
    created_at DATETIME(6) NOT NULL,
    diarsipkan_at DATETIME(6) NOT NULL,
    oleh_posting_id BIGINT NOT NULL,
    alasan VARCHAR(255) NOT NULL,
    PRIMARY KEY (id),
    KEY ix_kartu_stok_arsip_posting (oleh_posting_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS posting_attempts (
    id BIGINT NOT NULL AUTO_INCREMENT,
    transaksi_id BIGINT NOT NULL,
    n INT NOT NULL,
    dag_run_id VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    outcome VARCHAR(20) NOT NULL,
    code INT NULL,
    input_hash CHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
    problems JSON NULL,
    replaced_lines JSON NULL,
    created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (id),
    KEY ix_posting_attempts_transaksi (transaksi_id, n),
    CONSTRAINT ck_posting_attempts_outcome CHECK (outcome IN ('COMPLETED', 'FAILED', 'REPLACED'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE OR REPLACE VIEW v_kartu_stok AS
SELECT k.id, k.posting_id, k.transaksi_id, k.nomer_nota, k.sumber, k.kode_barang, k.lot, k.gudang_kode, k.tanggal_wib,
       k.masuk, k.keluar, k.harga_pokok, k.nilai, k.created_at,
       SUM(k.masuk - k.keluar) OVER (
           PARTITION BY k.kode_barang, k.lot, k.gudang_kode ORDER BY k.tanggal_wib, k.id
           ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
       ) AS saldo
FROM kartu_stok k;
