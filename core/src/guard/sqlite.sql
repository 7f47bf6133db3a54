-- leasehold: the fence inside your own SQLite database, 3.37 or later.
--
-- Create a resource, once. A missing row is never taken for a new one:
--
--   INSERT INTO leasehold_fence(resource) VALUES ('payments') ON CONFLICT DO NOTHING;
--
-- Seal it, when a lease is won and before its first write. From then on every earlier token is refused.
-- Sealing again with the same token changes nothing. `proven` is 1 where the lease's record was read and
-- holds this token, else 0: then a token more than 1000000 terms above the floor is refused.
--
--   INSERT INTO leasehold_seal(resource, token, proven) VALUES ('payments', :token, 0);
--
-- Write: the guard and the effect in one transaction. `step` names the write, so that its retry is
-- refused with AlreadyApplied instead of being applied twice; '' is a write without a name. `digest` is
-- the SHA-256 of what the step does, in hex, so that another operation under the same name is refused
-- with KeyReuse; '' is none.
--
--   BEGIN IMMEDIATE;
--   INSERT INTO leasehold_admit(resource, token, step, digest) VALUES ('payments', :token, 'invoice-7', '');
--   INSERT INTO payment(invoice, amount) VALUES (7, 100);
--   COMMIT;
--
-- A refusal is the error `leasehold: VERDICT`. It undoes its own statement, NOT the transaction: a caller
-- that goes on after the error, as the sqlite3 shell does with a script, commits the payment. Run scripts
-- with `sqlite3 -bail`. Better, make it impossible: let the table admit its own rows. Then the guard and
-- the effect are one statement, whoever inserts (what else a script changes still needs -bail):
--
--   CREATE TABLE payment(invoice INTEGER PRIMARY KEY, amount INTEGER NOT NULL, token TEXT NOT NULL) STRICT;
--   CREATE TRIGGER payment_is_fenced AFTER INSERT ON payment BEGIN
--     INSERT INTO leasehold_admit(resource, token, step, digest) VALUES ('payments', NEW.token, NEW.invoice, '');
--   END;
--
-- AFTER, since a row that INSERT OR IGNORE leaves out was not written and must not count. It does not see
-- UPDATE (an upsert's, too) and DELETE: give those a trigger of their own, which admits or refuses.
--
-- Read what decides something: in one transaction with the SELECTs. A holder that has not sealed yet seals
-- with its first read, so that no earlier token can change afterwards what was read.
--
--   INSERT INTO leasehold_read(resource, token, proven) VALUES ('payments', :token, 0);
--
-- Cancel a step: without an error, this statement wrote its tombstone, the step was not applied, and a late
-- attempt is refused with Cancelled for ever. AlreadyApplied: too late. Cancelled: an earlier one did it.
--
--   INSERT INTO leasehold_cancel(resource, token, step) VALUES ('payments', :token, 'invoice-7');
--
-- Close the resource for good. Its row and its steps have to stay: they answer what comes late.
--
--   INSERT INTO leasehold_retire(resource, token) VALUES ('payments', :token);
--
-- After this database was restored from a copy, before anyone writes: raise the floor to the token that the
-- lease's record holds now. A floor that is not below it stays.
--
--   INSERT INTO leasehold_recover(resource, token) VALUES ('payments', :record);
--
-- An operator's decision, never a program's: obey another lease from now on, which its token names.
--
--   INSERT INTO leasehold_adopt(resource, token) VALUES ('payments', :token);
--
-- Read the numbers that belong to a refusal from leasehold_floor and leasehold_step. Reading these guards nothing.

-- A savepoint, not BEGIN, so that this text also runs within a transaction.
SAVEPOINT leasehold;

CREATE TABLE IF NOT EXISTS leasehold_schema (
  part TEXT NOT NULL PRIMARY KEY,
  version INTEGER NOT NULL
) STRICT;

-- ROLLBACK, since a script that runs on after this error would otherwise keep half of an old schema.
CREATE TRIGGER IF NOT EXISTS leasehold_schema_only_rises BEFORE UPDATE ON leasehold_schema
WHEN NEW.version < OLD.version
BEGIN
  SELECT RAISE(ROLLBACK, 'leasehold: NewerSchema: a newer leasehold wrote this database; nothing was changed; use that version or a later one');
END;

CREATE TABLE IF NOT EXISTS leasehold_fence (
  resource TEXT NOT NULL PRIMARY KEY CHECK (length(resource) BETWEEN 1 AND 128),
  lineage TEXT NOT NULL DEFAULT '',
  floor INTEGER NOT NULL DEFAULT 0,
  nonce TEXT NOT NULL DEFAULT '',
  retired INTEGER NOT NULL DEFAULT 0 CHECK (retired IN (0, 1)),
  seq INTEGER NOT NULL DEFAULT 0 CHECK (seq >= 0),
  CHECK (CASE floor
    WHEN 0 THEN lineage = '' AND nonce = ''
    ELSE floor > 0 AND length(lineage) = 32 AND length(nonce) = 16 AND lineage || nonce NOT GLOB '*[^0-9a-f]*'
  END)
) STRICT;

CREATE TABLE IF NOT EXISTS leasehold_step (
  resource TEXT NOT NULL,
  step TEXT NOT NULL CHECK (step <> ''),
  op_digest TEXT NOT NULL DEFAULT '',
  effect_digest TEXT NOT NULL DEFAULT '',
  seq INTEGER NOT NULL,
  cancelled INTEGER NOT NULL DEFAULT 0 CHECK (cancelled IN (0, 1)),
  PRIMARY KEY (resource, step)
) STRICT, WITHOUT ROWID;

CREATE VIEW IF NOT EXISTS leasehold_floor(resource, floor, token, seq, retired) AS
SELECT resource, floor, CASE floor WHEN 0 THEN '' ELSE lineage || '/' || floor || '/' || nonce END, seq, retired
FROM leasehold_fence;

-- The verbs: views without rows, for INSERT only.
CREATE VIEW IF NOT EXISTS leasehold_seal(resource, token, proven) AS SELECT '', '', 0 WHERE 0;
CREATE VIEW IF NOT EXISTS leasehold_admit(resource, token, step, digest) AS SELECT '', '', '', '' WHERE 0;
CREATE VIEW IF NOT EXISTS leasehold_read(resource, token, proven) AS SELECT '', '', 0 WHERE 0;
CREATE VIEW IF NOT EXISTS leasehold_cancel(resource, token, step) AS SELECT '', '', '' WHERE 0;
CREATE VIEW IF NOT EXISTS leasehold_retire(resource, token) AS SELECT '', '' WHERE 0;
CREATE VIEW IF NOT EXISTS leasehold_recover(resource, token) AS SELECT '', '' WHERE 0;
CREATE VIEW IF NOT EXISTS leasehold_adopt(resource, token) AS SELECT '', '' WHERE 0;

CREATE TRIGGER IF NOT EXISTS leasehold_seal_rules INSTEAD OF INSERT ON leasehold_seal
BEGIN
  -- Takes the write lock: before or after every admitted write, never between guard and commit.
  UPDATE leasehold_fence SET seq = seq WHERE resource = NEW.resource;

  SELECT CASE
    -- Put together again, the parts must give the text: so no sign, space, leading zero or overflow passes.
    WHEN typeof(NEW.token) <> 'text'
      OR NEW.token <> token.lineage || '/' || token.term || '/' || token.nonce
      OR token.lineage || token.nonce GLOB '*[^0-9a-f]*'
      OR token.term < 1 THEN RAISE(ABORT, 'leasehold: BadToken')
    WHEN fence.resource IS NULL THEN RAISE(ABORT, 'leasehold: NoResource')
    WHEN fence.retired THEN RAISE(ABORT, 'leasehold: Gone')
    WHEN fence.floor = 0 THEN 'Sealed'
    WHEN fence.lineage <> token.lineage THEN RAISE(ABORT, 'leasehold: ForeignLineage')
    WHEN token.term < fence.floor THEN RAISE(ABORT, 'leasehold: Fenced')
    WHEN token.term = fence.floor AND fence.nonce = token.nonce THEN 'AlreadySealed'
    WHEN token.term = fence.floor THEN RAISE(ABORT, 'leasehold: Collision')
    WHEN token.term - fence.floor > 1000000 AND NEW.proven IS NOT 1 THEN RAISE(ABORT, 'leasehold: Implausible')
    ELSE 'Sealed'
  END
  FROM (
    SELECT substr(NEW.token, 1, 32) AS lineage,
           CAST(substr(NEW.token, 34) AS INTEGER) AS term,
           substr(NEW.token, -16) AS nonce
  ) AS token
  LEFT JOIN leasehold_fence AS fence ON fence.resource = NEW.resource;

  UPDATE leasehold_fence
  SET lineage = substr(NEW.token, 1, 32), floor = CAST(substr(NEW.token, 34) AS INTEGER), nonce = substr(NEW.token, -16)
  WHERE resource = NEW.resource;
END;

CREATE TRIGGER IF NOT EXISTS leasehold_admit_rules INSTEAD OF INSERT ON leasehold_admit
BEGIN
  -- Takes the write lock: before or after every seal, and held until the effect is committed.
  UPDATE leasehold_fence SET seq = seq WHERE resource = NEW.resource;

  SELECT CASE
    WHEN typeof(NEW.token) <> 'text'
      OR NEW.token <> token.lineage || '/' || token.term || '/' || token.nonce
      OR token.lineage || token.nonce GLOB '*[^0-9a-f]*'
      OR token.term < 1 THEN RAISE(ABORT, 'leasehold: BadToken')
    -- A NULL is a value that was forgotten, not a write without a step.
    WHEN typeof(NEW.step) NOT IN ('text', 'integer') THEN RAISE(ABORT, 'leasehold: BadStep')
    WHEN typeof(NEW.digest) <> 'text'
      OR length(NEW.digest) NOT IN (0, 64)
      OR NEW.digest <> substr(NEW.digest, 1, 64) -- substr ends at a NUL, as length and GLOB do
      OR NEW.digest GLOB '*[^0-9a-f]*'
      OR NEW.digest <> '' AND NEW.step = '' THEN RAISE(ABORT, 'leasehold: BadDigest')
    WHEN fence.resource IS NULL THEN RAISE(ABORT, 'leasehold: NoResource')
    WHEN fence.floor = 0 THEN RAISE(ABORT, 'leasehold: NotSealed')
    WHEN fence.lineage <> token.lineage THEN RAISE(ABORT, 'leasehold: ForeignLineage')
    WHEN known.cancelled THEN RAISE(ABORT, 'leasehold: Cancelled')
    WHEN known.op_digest = NEW.digest THEN RAISE(ABORT, 'leasehold: AlreadyApplied')
    WHEN known.step IS NOT NULL THEN RAISE(ABORT, 'leasehold: KeyReuse')
    WHEN fence.retired THEN RAISE(ABORT, 'leasehold: Gone')
    WHEN token.term < fence.floor THEN RAISE(ABORT, 'leasehold: Fenced')
    WHEN token.term > fence.floor THEN RAISE(ABORT, 'leasehold: NotSealed')
    WHEN fence.nonce <> token.nonce THEN RAISE(ABORT, 'leasehold: Collision')
    WHEN fence.seq = 9223372036854775807 THEN RAISE(ABORT, 'leasehold: Full')
    ELSE 'Apply'
  END
  FROM (
    SELECT substr(NEW.token, 1, 32) AS lineage,
           CAST(substr(NEW.token, 34) AS INTEGER) AS term,
           substr(NEW.token, -16) AS nonce
  ) AS token
  LEFT JOIN leasehold_fence AS fence ON fence.resource = NEW.resource
  LEFT JOIN leasehold_step AS known ON known.resource = NEW.resource AND known.step = CAST(NEW.step AS TEXT);

  UPDATE leasehold_fence SET seq = seq + 1 WHERE resource = NEW.resource;

  INSERT INTO leasehold_step(resource, step, op_digest, seq)
  SELECT resource, CAST(NEW.step AS TEXT), NEW.digest, seq
  FROM leasehold_fence
  WHERE resource = NEW.resource AND NEW.step <> '';
END;

CREATE TRIGGER IF NOT EXISTS leasehold_read_rules INSTEAD OF INSERT ON leasehold_read
BEGIN
  -- Takes the write lock: no seal and no write comes between this and the end of the transaction.
  UPDATE leasehold_fence SET seq = seq WHERE resource = NEW.resource;

  SELECT CASE
    WHEN typeof(NEW.token) <> 'text'
      OR NEW.token <> token.lineage || '/' || token.term || '/' || token.nonce
      OR token.lineage || token.nonce GLOB '*[^0-9a-f]*'
      OR token.term < 1 THEN RAISE(ABORT, 'leasehold: BadToken')
    WHEN fence.resource IS NULL THEN RAISE(ABORT, 'leasehold: NoResource')
    WHEN fence.floor <> 0 AND fence.lineage <> token.lineage THEN RAISE(ABORT, 'leasehold: ForeignLineage')
    WHEN fence.retired THEN RAISE(ABORT, 'leasehold: Gone')
    WHEN fence.floor = 0 THEN 'Sealed'
    WHEN token.term < fence.floor THEN RAISE(ABORT, 'leasehold: Fenced')
    WHEN token.term = fence.floor AND fence.nonce = token.nonce THEN 'AlreadySealed'
    WHEN token.term = fence.floor THEN RAISE(ABORT, 'leasehold: Collision')
    WHEN token.term - fence.floor > 1000000 AND NEW.proven IS NOT 1 THEN RAISE(ABORT, 'leasehold: Implausible')
    ELSE 'Sealed'
  END
  FROM (
    SELECT substr(NEW.token, 1, 32) AS lineage,
           CAST(substr(NEW.token, 34) AS INTEGER) AS term,
           substr(NEW.token, -16) AS nonce
  ) AS token
  LEFT JOIN leasehold_fence AS fence ON fence.resource = NEW.resource;

  UPDATE leasehold_fence
  SET lineage = substr(NEW.token, 1, 32), floor = CAST(substr(NEW.token, 34) AS INTEGER), nonce = substr(NEW.token, -16)
  WHERE resource = NEW.resource;
END;

CREATE TRIGGER IF NOT EXISTS leasehold_cancel_rules INSTEAD OF INSERT ON leasehold_cancel
BEGIN
  -- Takes the write lock: before or after every write of the step.
  UPDATE leasehold_fence SET seq = seq WHERE resource = NEW.resource;

  SELECT CASE
    WHEN typeof(NEW.token) <> 'text'
      OR NEW.token <> token.lineage || '/' || token.term || '/' || token.nonce
      OR token.lineage || token.nonce GLOB '*[^0-9a-f]*'
      OR token.term < 1 THEN RAISE(ABORT, 'leasehold: BadToken')
    WHEN typeof(NEW.step) NOT IN ('text', 'integer') OR NEW.step = '' THEN RAISE(ABORT, 'leasehold: BadStep')
    WHEN fence.resource IS NULL THEN RAISE(ABORT, 'leasehold: NoResource')
    WHEN fence.floor = 0 THEN RAISE(ABORT, 'leasehold: NotSealed')
    WHEN fence.lineage <> token.lineage THEN RAISE(ABORT, 'leasehold: ForeignLineage')
    WHEN known.cancelled THEN RAISE(ABORT, 'leasehold: Cancelled')
    WHEN known.step IS NOT NULL THEN RAISE(ABORT, 'leasehold: AlreadyApplied')
    WHEN fence.retired THEN RAISE(ABORT, 'leasehold: Gone')
    WHEN token.term < fence.floor THEN RAISE(ABORT, 'leasehold: Fenced')
    WHEN token.term > fence.floor THEN RAISE(ABORT, 'leasehold: NotSealed')
    WHEN fence.nonce <> token.nonce THEN RAISE(ABORT, 'leasehold: Collision')
    WHEN fence.seq = 9223372036854775807 THEN RAISE(ABORT, 'leasehold: Full')
    ELSE 'Tombstoned'
  END
  FROM (
    SELECT substr(NEW.token, 1, 32) AS lineage,
           CAST(substr(NEW.token, 34) AS INTEGER) AS term,
           substr(NEW.token, -16) AS nonce
  ) AS token
  LEFT JOIN leasehold_fence AS fence ON fence.resource = NEW.resource
  LEFT JOIN leasehold_step AS known ON known.resource = NEW.resource AND known.step = CAST(NEW.step AS TEXT);

  UPDATE leasehold_fence SET seq = seq + 1 WHERE resource = NEW.resource;

  INSERT INTO leasehold_step(resource, step, seq, cancelled)
  SELECT resource, CAST(NEW.step AS TEXT), seq, 1
  FROM leasehold_fence
  WHERE resource = NEW.resource;
END;

CREATE TRIGGER IF NOT EXISTS leasehold_retire_rules INSTEAD OF INSERT ON leasehold_retire
BEGIN
  -- Takes the write lock: before or after every admitted write.
  UPDATE leasehold_fence SET seq = seq WHERE resource = NEW.resource;

  SELECT CASE
    WHEN typeof(NEW.token) <> 'text'
      OR NEW.token <> token.lineage || '/' || token.term || '/' || token.nonce
      OR token.lineage || token.nonce GLOB '*[^0-9a-f]*'
      OR token.term < 1 THEN RAISE(ABORT, 'leasehold: BadToken')
    WHEN fence.resource IS NULL THEN RAISE(ABORT, 'leasehold: NoResource')
    WHEN fence.floor = 0 THEN RAISE(ABORT, 'leasehold: NotSealed')
    WHEN fence.lineage <> token.lineage THEN RAISE(ABORT, 'leasehold: ForeignLineage')
    WHEN fence.retired AND token.term = fence.floor AND fence.nonce = token.nonce THEN 'AlreadyRetired'
    WHEN fence.retired THEN RAISE(ABORT, 'leasehold: Gone')
    WHEN token.term < fence.floor THEN RAISE(ABORT, 'leasehold: Fenced')
    WHEN token.term > fence.floor THEN RAISE(ABORT, 'leasehold: NotSealed')
    WHEN fence.nonce <> token.nonce THEN RAISE(ABORT, 'leasehold: Collision')
    ELSE 'Retired'
  END
  FROM (
    SELECT substr(NEW.token, 1, 32) AS lineage,
           CAST(substr(NEW.token, 34) AS INTEGER) AS term,
           substr(NEW.token, -16) AS nonce
  ) AS token
  LEFT JOIN leasehold_fence AS fence ON fence.resource = NEW.resource;

  UPDATE leasehold_fence SET retired = 1 WHERE resource = NEW.resource;
END;

CREATE TRIGGER IF NOT EXISTS leasehold_recover_rules INSTEAD OF INSERT ON leasehold_recover
BEGIN
  -- Takes the write lock: before or after every seal.
  UPDATE leasehold_fence SET seq = seq WHERE resource = NEW.resource;

  SELECT CASE
    WHEN typeof(NEW.token) <> 'text'
      OR NEW.token <> token.lineage || '/' || token.term || '/' || token.nonce
      OR token.lineage || token.nonce GLOB '*[^0-9a-f]*'
      OR token.term < 1 THEN RAISE(ABORT, 'leasehold: BadToken')
    WHEN fence.resource IS NULL THEN RAISE(ABORT, 'leasehold: NoResource')
    WHEN fence.retired THEN RAISE(ABORT, 'leasehold: Gone')
    WHEN fence.floor <> 0 AND fence.lineage <> token.lineage THEN RAISE(ABORT, 'leasehold: ForeignLineage')
    WHEN token.term <= fence.floor THEN 'Kept'
    ELSE 'Recovered'
  END
  FROM (
    SELECT substr(NEW.token, 1, 32) AS lineage,
           CAST(substr(NEW.token, 34) AS INTEGER) AS term,
           substr(NEW.token, -16) AS nonce
  ) AS token
  LEFT JOIN leasehold_fence AS fence ON fence.resource = NEW.resource;

  UPDATE leasehold_fence
  SET lineage = substr(NEW.token, 1, 32), floor = CAST(substr(NEW.token, 34) AS INTEGER), nonce = substr(NEW.token, -16)
  WHERE resource = NEW.resource AND floor < CAST(substr(NEW.token, 34) AS INTEGER);
END;

CREATE TRIGGER IF NOT EXISTS leasehold_adopt_rules INSTEAD OF INSERT ON leasehold_adopt
BEGIN
  -- Takes the write lock: before or after every seal.
  UPDATE leasehold_fence SET seq = seq WHERE resource = NEW.resource;

  SELECT CASE
    WHEN typeof(NEW.token) <> 'text'
      OR NEW.token <> token.lineage || '/' || token.term || '/' || token.nonce
      OR token.lineage || token.nonce GLOB '*[^0-9a-f]*'
      OR token.term < 1 THEN RAISE(ABORT, 'leasehold: BadToken')
    WHEN fence.resource IS NULL THEN RAISE(ABORT, 'leasehold: NoResource')
    WHEN fence.retired THEN RAISE(ABORT, 'leasehold: Gone')
    WHEN fence.lineage <> token.lineage THEN 'Adopted'
    WHEN token.term < fence.floor THEN RAISE(ABORT, 'leasehold: Fenced')
    WHEN token.term = fence.floor AND fence.nonce = token.nonce THEN 'AlreadySealed'
    WHEN token.term = fence.floor THEN RAISE(ABORT, 'leasehold: Collision')
    ELSE 'Adopted'
  END
  FROM (
    SELECT substr(NEW.token, 1, 32) AS lineage,
           CAST(substr(NEW.token, 34) AS INTEGER) AS term,
           substr(NEW.token, -16) AS nonce
  ) AS token
  LEFT JOIN leasehold_fence AS fence ON fence.resource = NEW.resource;

  UPDATE leasehold_fence
  SET lineage = substr(NEW.token, 1, 32), floor = CAST(substr(NEW.token, 34) AS INTEGER), nonce = substr(NEW.token, -16)
  WHERE resource = NEW.resource;
END;

-- Last, so that it rolls back all of the above where the database is newer.
INSERT INTO leasehold_schema(part, version) VALUES ('fence', 1)
ON CONFLICT(part) DO UPDATE SET version = excluded.version;

RELEASE leasehold;
