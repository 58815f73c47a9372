-- Read only by sqlc and never run: objects of the extension, and those that a procedure or a connection creates.
CREATE FUNCTION time_bucket(width interval, at timestamptz) RETURNS timestamptz LANGUAGE sql;

CREATE FUNCTION hypertable_size(hypertable regclass) RETURNS bigint LANGUAGE sql;
CREATE FUNCTION approximate_row_count(relation regclass) RETURNS bigint LANGUAGE sql;

CREATE TABLE readings_hourly (
    device_id          uuid NOT NULL,
    hour               timestamptz NOT NULL,
    reading_count      bigint NOT NULL,
    co2_ppm_min        real,
    co2_ppm_max        real,
    co2_ppm_count      bigint NOT NULL,
    co2_ppm_sum        double precision,
    temp_c_min         real,
    temp_c_max         real,
    temp_c_count       bigint NOT NULL,
    temp_c_sum         double precision,
    humidity_pct_min   real,
    humidity_pct_max   real,
    humidity_pct_count bigint NOT NULL,
    humidity_pct_sum   double precision,
    lux_min            real,
    lux_max            real,
    lux_count          bigint NOT NULL,
    lux_sum            double precision,
    spl_db_min         real,
    spl_db_max         real,
    spl_db_count       bigint NOT NULL,
    spl_db_sum         double precision
);

CREATE SCHEMA timescaledb_information;
CREATE TABLE timescaledb_information.dimensions (
    hypertable_schema text NOT NULL, hypertable_name text NOT NULL, time_interval interval NOT NULL
);
CREATE TABLE timescaledb_information.chunks (
    hypertable_schema text NOT NULL, hypertable_name text NOT NULL,
    chunk_schema text NOT NULL, chunk_name text NOT NULL,
    range_start timestamptz NOT NULL, range_end timestamptz NOT NULL
);
CREATE TABLE timescaledb_information.jobs (
    job_id int NOT NULL, application_name text NOT NULL, scheduled boolean NOT NULL, hypertable_name text
);
CREATE TABLE timescaledb_information.job_stats (job_id int NOT NULL, last_run_status text, next_start timestamptz);

CREATE TABLE pg_stat_activity (
    pid int NOT NULL, datname text, backend_type text, xact_start timestamptz,
    usename text, application_name text, state text
);
CREATE TABLE pg_locks (
    pid int, granted boolean NOT NULL, waitstart timestamptz, database oid, relation oid, mode text
);
CREATE TABLE pg_class (oid oid NOT NULL, relname text NOT NULL, relnamespace oid NOT NULL);
CREATE TABLE pg_tables (schemaname text, tablename text, tableowner text);
CREATE TABLE pg_database (oid oid NOT NULL, datname text NOT NULL, datdba oid NOT NULL);
CREATE TABLE pg_stat_archiver (
    last_archived_time timestamptz, failed_count bigint NOT NULL, last_failed_wal text, last_failed_time timestamptz
);
CREATE TABLE pg_extension (extname text NOT NULL, extversion text NOT NULL);
CREATE TABLE pg_stat_database (numbackends int NOT NULL);

-- A temporary table, see ReadingIncomingCreate.
CREATE TABLE reading_incoming (
    device_id    uuid NOT NULL,
    bucket_at    timestamptz NOT NULL,
    measured_at  timestamptz NOT NULL,
    co2_ppm      real,
    temp_c       real,
    humidity_pct real,
    lux          real,
    spl_db       real
);
