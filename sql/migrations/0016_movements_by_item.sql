-- What was entered since a count was frozen, by warehouse, time and item: whether one of the counted items moved is read in
-- the index alone. The shorter one it replaces led to the row of every movement.

ALTER TABLE kartu_stok ADD KEY ix_kartu_stok_masuk (gudang_kode, created_at, kode_barang);
ALTER TABLE kartu_stok DROP KEY ix_kartu_stok_segar;
