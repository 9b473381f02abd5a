-- What the pages count and filter among many documents: days of counts and of postings, drafts, jobs by status. Without
-- these a filter that finds nothing reads every document there is, and each look at the list counts whole rows.

ALTER TABLE so_headers_staging ADD KEY ix_so_headers_tanggal (tanggal_opname, transaksi_id);
ALTER TABLE so_headers_staging ADD KEY ix_so_headers_otorisasi (otorisasi_level, id);
ALTER TABLE transaksi ADD KEY ix_transaksi_tanggal (tanggal_wib);
ALTER TABLE rabbit_publish_shadow ADD KEY ix_shadow_hitung (worker_status, transaksi_id, worker_at);
ALTER TABLE jurnal ADD KEY ix_jurnal_tanggal (tanggal_wib, posting_id);
