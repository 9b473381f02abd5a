-- What the whole workflow layer adds to its tables: which slot works on an item, and the way from a parent to its
-- nested run.

ALTER TABLE workflow_items ADD COLUMN slot VARCHAR(20) NULL;

ALTER TABLE workflow_runs ADD INDEX ix_workflow_runs_nested (parent_id, parent_step, parent_visit);
