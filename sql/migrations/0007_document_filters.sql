-- What the list of documents is filtered by: warehouse, sender, posted value. Without these a filter that finds little
-- reads every document there is.

ALTER TABLE so_headers_staging ADD KEY ix_so_headers_gudang (gudang_kode, id);
ALTER TABLE so_headers_staging ADD KEY ix_so_headers_pengirim (dibuat_oleh, id);
ALTER TABLE transaksi ADD KEY ix_transaksi_gudang (gudang_kode);
ALTER TABLE posting_sets ADD KEY ix_posting_sets_nilai (total_debet);
