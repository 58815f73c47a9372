-- +goose Up

-- Readings arrive in the order of time, so that those of one device lie on as
-- many pages as there are. A chunk that stopped changing is put in the order of
-- its key once: which ones were, and how much was written to them by then.
CREATE TABLE ordered_chunks (
    chunk      text PRIMARY KEY,
    ordered_at timestamptz NOT NULL DEFAULT now(),
    written    bigint NOT NULL
);
COMMENT ON COLUMN ordered_chunks.written IS 'rows inserted, updated and deleted up to then, by the statistics';

-- chunks_to_order lists the chunks that ended before an instant and are not in
-- order, the newest first: those in rows that never were, and those into which
-- more than a twentieth of their rows was written since. Statistics that were
-- reset say less than before, which counts as nothing new.
-- +goose StatementBegin
CREATE FUNCTION chunks_to_order(ended_before timestamptz)
RETURNS TABLE (chunk text, range_start timestamptz, range_end timestamptz, bytes bigint)
STABLE LANGUAGE sql AS $function$
    SELECT name, c.range_start, c.range_end, pg_total_relation_size(s.relid)
    FROM timescaledb_information.chunks c
    CROSS JOIN LATERAL format('%I.%I', c.chunk_schema, c.chunk_name) name
    JOIN pg_stat_all_tables s ON s.relid = name::regclass
    LEFT JOIN ordered_chunks o ON o.chunk = name
    WHERE c.hypertable_schema = 'public' AND c.hypertable_name = 'readings'
      AND NOT c.is_compressed AND c.range_end <= ended_before
      AND s.n_tup_ins + s.n_tup_upd + s.n_tup_del - coalesce(o.written, -1)
          > CASE WHEN o.written IS NULL THEN 0 ELSE s.n_live_tup / 20 END
    ORDER BY c.range_end DESC
$function$;
-- +goose StatementEnd

-- order_chunk rewrites a chunk in the order of its key, and locks it meanwhile.
-- One process does so at a time: false says that another one is.
-- +goose StatementBegin
CREATE FUNCTION order_chunk(name text) RETURNS boolean
LANGUAGE plpgsql AS $function$
BEGIN
    IF NOT pg_try_advisory_xact_lock(7283400022) THEN
        RETURN false;
    END IF;
    EXECUTE (SELECT format('CLUSTER %s USING %I', name, i.relname)
             FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
             WHERE x.indrelid = name::regclass AND x.indisprimary);
    EXECUTE 'ANALYZE ' || name;
    INSERT INTO ordered_chunks AS o (chunk, written)
    SELECT name, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_all_tables WHERE relid = name::regclass
    ON CONFLICT (chunk) DO UPDATE SET ordered_at = now(), written = excluded.written;
    RETURN true;
END
$function$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION order_chunk(text);
DROP FUNCTION chunks_to_order(timestamptz);
DROP TABLE ordered_chunks;
