-- A nota belongs to one posting, whatever its kind: a count and a reversal of the same nota that commit at one instant
-- share no lock (other warehouses, other months), so only a key can tell one of them.

ALTER TABLE posting_sets ADD UNIQUE KEY uq_posting_sets_nomer_nota (nomer_nota);
