-- What Whence keeps in a PostgreSQL database (14 or newer) to know what changed: run it once, or again.

CREATE SCHEMA IF NOT EXISTS whence_capture;

CREATE TABLE IF NOT EXISTS whence_capture.changes (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    relation text NOT NULL,
    op text NOT NULL CHECK (op IN ('+', '-')),
    row jsonb NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS changes_of_relation ON whence_capture.changes (relation, seq);

-- A reader may begin after `snapshot`, which precedes the rows that were there at first, and go on after `forgotten`.
CREATE TABLE IF NOT EXISTS whence_capture.tables (
    relation text PRIMARY KEY,
    snapshot bigint NOT NULL,
    forgotten bigint NOT NULL DEFAULT 0
);

CREATE OR REPLACE FUNCTION whence_capture.record() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    -- Readers tell by transaction ids which numbers are still to come: the id has to be there before the number is drawn.
    PERFORM pg_current_xact_id();
    IF TG_OP = 'TRUNCATE' THEN
        EXECUTE format('INSERT INTO whence_capture.changes (relation, op, row) SELECT %L, ''-'', to_jsonb(t) FROM %I.%I AS t',
                       TG_ARGV[0], TG_TABLE_SCHEMA, TG_TABLE_NAME);
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND to_jsonb(OLD) = to_jsonb(NEW) THEN
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO whence_capture.changes (relation, op, row) VALUES (TG_ARGV[0], '-', to_jsonb(OLD));
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO whence_capture.changes (relation, op, row) VALUES (TG_ARGV[0], '+', to_jsonb(NEW));
    END IF;
    RETURN NULL;
END $$;

-- Deletes the changes of a relation up to the last one before a time. Readers that have not come so far say so and stop.
CREATE OR REPLACE FUNCTION whence_capture.forget(forgotten_relation text, before timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    last bigint := (SELECT max(seq) FROM whence_capture.changes WHERE relation = forgotten_relation AND at < before);
    count bigint;
BEGIN
    DELETE FROM whence_capture.changes WHERE relation = forgotten_relation AND seq <= last;
    GET DIAGNOSTICS count = ROW_COUNT;
    UPDATE whence_capture.tables SET forgotten = greatest(forgotten, last) WHERE relation = forgotten_relation;
    RETURN count;
END $$;
