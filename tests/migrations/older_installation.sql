-- A database as an application of ten years ago left it: its server's character set latin1, sql_mode empty. Engines,
-- types, keys and zero dates are what such installations have.

CREATE TABLE gudang (
    gudang_kode VARCHAR(10) NOT NULL,
    nama VARCHAR(50) NOT NULL,
    alamat VARCHAR(200) NOT NULL,
    aktif TINYINT(1) NOT NULL DEFAULT '1',
    PRIMARY KEY (gudang_kode)
) ENGINE=InnoDB DEFAULT CHARSET=latin1;

INSERT INTO gudang VALUES ('GD-A', 'Gudang Café', 'Jl. Ängström 1', 1), ('GD-B', 'Gudang Zoë', 'Cikarang', 1);

CREATE TABLE akun (
    kode_akun VARCHAR(20) NOT NULL,
    nama VARCHAR(60) NOT NULL DEFAULT '',
    aktif TINYINT(1) NOT NULL DEFAULT '1',
    PRIMARY KEY (kode_akun)
) ENGINE=MyISAM DEFAULT CHARSET=latin1;

INSERT INTO akun VALUES ('1010030030', 'Persediaan', 1), ('7010150', 'Laba sélisih', 1), ('7020020', 'Rugi', 1);

CREATE TABLE so_headers_staging (
    id INT UNSIGNED NOT NULL AUTO_INCREMENT,
    transaksi_id INT NOT NULL,
    nomer_nota VARCHAR(30) NOT NULL DEFAULT '',
    gudang_kode VARCHAR(10) NOT NULL DEFAULT '',
    tanggal_opname DATE NOT NULL DEFAULT '0000-00-00',
    snapshot_at DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00',
    otorisasi_level TINYINT NOT NULL DEFAULT '0',
    diotorisasi_oleh VARCHAR(50) NOT NULL DEFAULT '',
    diotorisasi_at DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00',
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=latin1;

INSERT INTO so_headers_staging (transaksi_id, nomer_nota, gudang_kode, tanggal_opname, snapshot_at, otorisasi_level, diotorisasi_oleh, diotorisasi_at, created_at) VALUES
    (11, 'SO-11', 'GD-A', '2024-01-31', '2024-01-31 08:00:00', 2, 'Zoë', '2024-01-31 09:00:00', '2024-01-31 08:30:00'),
    (12, 'SO-12', 'GD-A', '0000-00-00', '0000-00-00 00:00:00', 0, '', '0000-00-00 00:00:00', '2024-02-29 08:30:00'),
    (12, 'SO-12', 'GD-A', '2024-02-29', '0000-00-00 00:00:00', 0, '', '0000-00-00 00:00:00', '2024-02-29 08:30:01');

CREATE TABLE so_details_staging (
    id INT UNSIGNED NOT NULL AUTO_INCREMENT,
    header_id INT UNSIGNED NOT NULL,
    baris SMALLINT NOT NULL DEFAULT '0',
    kode_barang VARCHAR(30) NOT NULL DEFAULT '',
    satuan VARCHAR(10) NOT NULL DEFAULT '',
    qty_sistem DOUBLE NOT NULL DEFAULT '0',
    qty_fisik DOUBLE NOT NULL DEFAULT '0',
    harga_pokok FLOAT NOT NULL DEFAULT '0',
    alasan VARCHAR(100) NOT NULL DEFAULT '',
    PRIMARY KEY (id),
    KEY header_id (header_id)
) ENGINE=MyISAM DEFAULT CHARSET=latin1;

INSERT INTO so_details_staging (header_id, baris, kode_barang, satuan, qty_sistem, qty_fisik, harga_pokok, alasan) VALUES
    (1, 1, 'A', 'PCS', 10, 12.5, 1500, 'ditemukan di café');

CREATE TABLE transaksi (
    id INT NOT NULL AUTO_INCREMENT,
    nomer_nota VARCHAR(30) NOT NULL DEFAULT '',
    jenis ENUM('JUAL','BELI','OPNAME') NOT NULL DEFAULT 'JUAL',
    tanggal_wib DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00',
    gudang_kode VARCHAR(10) NOT NULL DEFAULT '',
    pelanggan VARCHAR(60) NOT NULL DEFAULT '',
    PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=latin1;

INSERT INTO transaksi VALUES (7, 'JL-7', 'JUAL', '2024-01-02 10:00:00', 'GD-A', 'Toko Zoë'), (11, 'SO-11', 'OPNAME', '2024-01-31 16:00:00', 'GD-A', '');

CREATE TABLE jurnal (
    id INT UNSIGNED NOT NULL AUTO_INCREMENT,
    transaksi_id INT NOT NULL DEFAULT '0',
    nomer_nota VARCHAR(30) NOT NULL DEFAULT '',
    tanggal_wib DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00',
    kode_akun VARCHAR(20) NOT NULL DEFAULT '',
    keterangan VARCHAR(100) NOT NULL DEFAULT '',
    debet DOUBLE NOT NULL DEFAULT '0',
    kredit DOUBLE NOT NULL DEFAULT '0',
    PRIMARY KEY (id)
) ENGINE=MyISAM DEFAULT CHARSET=latin1;

INSERT INTO jurnal (transaksi_id, nomer_nota, tanggal_wib, kode_akun, keterangan, debet, kredit) VALUES
    (11, 'SO-11', '2024-01-31 16:00:00', '1010030030', 'Opname café', 3750, 0),
    (11, 'SO-11', '2024-01-31 16:00:00', '7010150', 'Opname café', 0, 3750),
    (7, 'JL-7', '2024-01-02 10:00:00', '1010030030', 'Penjualan', 0.1, 0),
    (7, 'JL-7', '0000-00-00 00:00:00', '1010030030', 'kosong', 0, 0);

CREATE TABLE kartu_stok (
    id INT UNSIGNED NOT NULL AUTO_INCREMENT,
    nomer_nota VARCHAR(30) NOT NULL DEFAULT '',
    transaksi_id INT NOT NULL DEFAULT '0',
    kode_barang VARCHAR(30) NOT NULL DEFAULT '',
    lot VARCHAR(20) NOT NULL DEFAULT '',
    gudang_kode VARCHAR(10) NOT NULL DEFAULT '',
    tanggal_wib DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00',
    masuk DOUBLE NOT NULL DEFAULT '0',
    keluar DOUBLE NOT NULL DEFAULT '0',
    harga_pokok DOUBLE NOT NULL DEFAULT '0',
    created_at DATETIME NOT NULL DEFAULT NOW(),
    PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=latin1;

INSERT INTO kartu_stok (nomer_nota, transaksi_id, kode_barang, gudang_kode, tanggal_wib, masuk, keluar, harga_pokok, created_at) VALUES
    ('BL-1', 1, 'A', 'GD-A', '2023-12-30 08:00:00', 10, 0, 1500, '2023-12-30 01:00:00'),
    ('SO-11', 11, 'A', 'GD-A', '2024-01-31 16:00:00', 2.5, 0, 1500, '2024-01-31 09:00:00');

CREATE TABLE rabbit_publish_shadow (
    id INT UNSIGNED NOT NULL AUTO_INCREMENT,
    transaksi_id INT NOT NULL DEFAULT '0',
    nomer_nota VARCHAR(30) NOT NULL DEFAULT '',
    payload TEXT NOT NULL,
    publish_status ENUM('PENDING','PUBLISHED') NOT NULL DEFAULT 'PENDING',
    worker_status ENUM('PENDING','PROCESSING','COMPLETED','FAILED') NOT NULL DEFAULT 'PENDING',
    worker_at DATETIME NOT NULL DEFAULT '0000-00-00 00:00:00',
    error VARCHAR(255) NOT NULL DEFAULT '',
    created_at DATETIME NOT NULL DEFAULT NOW(),
    PRIMARY KEY (id),
    KEY transaksi_id (transaksi_id)
) ENGINE=InnoDB DEFAULT CHARSET=latin1;

INSERT INTO rabbit_publish_shadow (id, transaksi_id, nomer_nota, payload, publish_status, worker_status, worker_at, created_at) VALUES
    (1, 11, 'SO-11', '{}', 'PUBLISHED', 'COMPLETED', '2024-01-31 09:01:00', '2024-01-31 09:00:00'),
    (2, 12, 'SO-12', '{}', 'PUBLISHED', 'FAILED', '2024-02-29 09:01:00', '2024-02-29 09:00:00'),
    (3, 12, 'SO-12', '{}', 'PENDING', 'PENDING', '0000-00-00 00:00:00', '2024-02-29 09:00:00'),
    (4, 13, 'SO-13', '{}', 'PUBLISHED', 'PROCESSING', '2024-03-01 09:00:00', '2024-03-01 08:59:00');
