-- A person has looked at a finding of the audit and says why it stands. For as long as it says the same.

ALTER TABLE audit_findings ADD COLUMN diakui_oleh VARCHAR(100) NULL;
ALTER TABLE audit_findings ADD COLUMN diakui_at DATETIME(6) NULL;
ALTER TABLE audit_findings ADD COLUMN diakui_alasan VARCHAR(500) NULL;
