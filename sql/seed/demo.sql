-- Master data of the demo. It may be loaded again and again: rows that stand already stay as they are.

INSERT INTO gudang (gudang_kode, nama) VALUES
    ('GD-A', 'Gudang A, Cikarang'),
    ('GD-B', 'Gudang B, Surabaya'),
    ('GD-01', 'Gudang 01, Medan'),
    ('GD-02', 'Gudang 02, Makassar'),
    ('GD-03', 'Gudang 03, Denpasar'),
    ('GD-04', 'Gudang 04, Balikpapan')
ON DUPLICATE KEY UPDATE gudang_kode = gudang.gudang_kode;

INSERT INTO gudang (gudang_kode, nama, aktif) VALUES
    ('GD-99', 'Gudang 99, ditutup', 0)
ON DUPLICATE KEY UPDATE gudang_kode = gudang.gudang_kode;

INSERT INTO akun (kode_akun, nama) VALUES
    ('1010030030', 'Persediaan barang'),
    ('7010150', 'Laba selisih persediaan'),
    ('7020020', 'Rugi selisih persediaan')
ON DUPLICATE KEY UPDATE kode_akun = akun.kode_akun;
