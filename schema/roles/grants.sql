-- The rights of the processes, in full: what a role had before is revoked first. `migrate up` runs this in one
-- transaction, with the names of the installation's roles, after the migrations. The owner of the tables may run it.
-- TimescaleDB passes rights on a hypertable on to its chunks, existing and future ones.
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM roomsensor_api, roomsensor_worker, roomsensor_receiver,
    roomsensor_dashboard, roomsensor_notify;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM roomsensor_api, roomsensor_worker, roomsensor_receiver,
    roomsensor_dashboard, roomsensor_notify;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM roomsensor_api, roomsensor_worker, roomsensor_receiver,
    roomsensor_dashboard, roomsensor_notify;
GRANT USAGE ON SCHEMA public TO roomsensor_api, roomsensor_worker, roomsensor_receiver,
    roomsensor_dashboard, roomsensor_notify;

-- The API reads everything that belongs to a team, and changes names, tags, the use of keys and its own bookkeeping.
GRANT SELECT ON teams, api_keys, devices, device_state, device_details, device_hardware, assignments, readings, readings_hourly,
    foreign_writes, feed_batches, feed_days, feed_state, reading_deletions, goose_db_version TO roomsensor_api;
GRANT SELECT, INSERT, UPDATE ON api_key_uses TO roomsensor_api;
GRANT UPDATE (display_name, metadata) ON devices TO roomsensor_api;
GRANT SELECT, INSERT ON service_secrets TO roomsensor_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys, idempotency_bytes, rate_windows, rate_counters
    TO roomsensor_api;
GRANT EXECUTE ON FUNCTION feed_reserve(), audit_expire(interval, integer), audit_trim(uuid, integer) TO roomsensor_api;

-- A worker stores readings and rejects. A process that is a receiver too has the role of a worker.
-- TimescaleDB shows how far readings_hourly is stored only to roles that may read it.
GRANT SELECT ON devices, device_hardware, readings_hourly, ingest_keys, sources, unit_aliases, ordered_chunks, goose_db_version
    TO roomsensor_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON source_state, source_hours TO roomsensor_worker;
GRANT SELECT, UPDATE ON device_state TO roomsensor_worker;
GRANT SELECT, INSERT, UPDATE ON readings, samples TO roomsensor_worker;
GRANT SELECT, INSERT, UPDATE (reason), DELETE ON rejected_uploads TO roomsensor_worker;
GRANT SELECT ON reject_usage TO roomsensor_worker;
GRANT SELECT, UPDATE, DELETE ON foreign_writes TO roomsensor_worker;
GRANT SELECT, INSERT ON streams TO roomsensor_worker;
GRANT SELECT, INSERT, DELETE ON stream_shares TO roomsensor_worker;
GRANT SELECT, INSERT ON receiver_secrets TO roomsensor_worker;
GRANT SELECT, INSERT, UPDATE ON ingest_key_uses TO roomsensor_worker;
GRANT EXECUTE ON FUNCTION order_chunk(text) TO roomsensor_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON postponed_chunks TO roomsensor_worker;
GRANT SELECT, INSERT, DELETE ON opened_chunks TO roomsensor_worker;
GRANT SELECT ON SEQUENCE feed_reserved TO roomsensor_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON feed_batches, feed_days TO roomsensor_worker;
GRANT SELECT, UPDATE ON feed_state TO roomsensor_worker;
GRANT SELECT, DELETE ON reading_deletions TO roomsensor_worker;
GRANT SELECT ON expiring_devices TO roomsensor_worker;
GRANT EXECUTE ON FUNCTION expire_readings(uuid, timestamptz) TO roomsensor_worker;
GRANT SELECT, UPDATE ON retention_state TO roomsensor_worker;

-- A receiver reads upload credentials and records their use. For dry runs it reads installations, for lists of rejects
-- everything but their payloads.
GRANT SELECT ON ingest_keys, sources, unit_aliases, device_hardware TO roomsensor_receiver;
GRANT SELECT (id, team_id, display_name, sampling) ON devices TO roomsensor_receiver;
GRANT SELECT (id, received_at, team_id, hardware_id, unit, source_id, reason, detail, replayed_at) ON rejected_uploads
    TO roomsensor_receiver;
GRANT SELECT, INSERT ON receiver_secrets TO roomsensor_receiver;
GRANT SELECT, INSERT, UPDATE ON ingest_key_uses TO roomsensor_receiver;

-- The dashboard reads what belongs to a team, and changes settings, names, tags, units and assignments. A right to update
-- a column also lets it lock a row.
GRANT SELECT ON audit_log TO roomsensor_dashboard;
GRANT INSERT, UPDATE (type, label, home_or_travel, external_ref, started_at, ended_at), DELETE ON assignments
    TO roomsensor_dashboard;
GRANT UPDATE (display_name, metadata, hardware_id, retired_at, sampling) ON devices TO roomsensor_dashboard;
GRANT UPDATE (removed_at) ON device_hardware TO roomsensor_dashboard;
GRANT UPDATE (name, time_zone, night_start, night_end, limits) ON teams TO roomsensor_dashboard;
GRANT SELECT ON teams, devices, device_state, device_details, device_hardware, assignments, readings, readings_hourly,
    foreign_writes, goose_db_version TO roomsensor_dashboard;
GRANT SELECT, INSERT, DELETE ON notes TO roomsensor_dashboard;
-- It manages people: their names, formats, passwords, teams, links, sessions and attempts to sign in.
GRANT SELECT, INSERT, UPDATE (display_name, password_hash, signed_out_at, fahrenheit, hour12, month_first) ON users TO roomsensor_dashboard;
GRANT SELECT, INSERT, UPDATE (role), DELETE ON memberships TO roomsensor_dashboard;
GRANT SELECT, INSERT, UPDATE (used_at), DELETE ON sign_in_links TO roomsensor_dashboard;
GRANT SELECT ON open_links, open_shares TO roomsensor_dashboard;
GRANT SELECT, INSERT, DELETE ON shared_links TO roomsensor_dashboard;
GRANT SELECT, INSERT, UPDATE, DELETE ON sessions, sign_in_attempts, sign_in_addresses TO roomsensor_dashboard;
-- It creates, replaces and revokes keys.
GRANT SELECT, INSERT, UPDATE (expires_at, revoked_at) ON api_keys, ingest_keys TO roomsensor_dashboard;
GRANT SELECT ON api_key_uses, ingest_key_uses TO roomsensor_dashboard;
-- It manages sources, registers units, and stores rejects again, as a worker does.
GRANT SELECT, INSERT, UPDATE, DELETE ON sources TO roomsensor_dashboard;
GRANT SELECT ON source_state, source_hours TO roomsensor_dashboard;
GRANT SELECT, INSERT ON unit_aliases TO roomsensor_dashboard;
GRANT INSERT ON devices, device_hardware TO roomsensor_dashboard;
GRANT SELECT, UPDATE (replayed_at) ON rejected_uploads TO roomsensor_dashboard;
GRANT UPDATE ON device_state TO roomsensor_dashboard;
GRANT INSERT, UPDATE ON readings TO roomsensor_dashboard;
GRANT SELECT, INSERT, UPDATE ON samples TO roomsensor_dashboard;
GRANT SELECT ON SEQUENCE feed_reserved TO roomsensor_dashboard;
GRANT SELECT, INSERT ON feed_batches, feed_days TO roomsensor_dashboard;
GRANT SELECT ON feed_state TO roomsensor_dashboard;
GRANT SELECT, INSERT, DELETE ON opened_chunks TO roomsensor_dashboard;
-- It shows alerts, and stores the rules of a team and which mails its members want.
GRANT UPDATE (alert_silent, alert_bad, alert_bad_at_night, alert_coverage, alert_rejects, mail_at, mail_weekday) ON teams
    TO roomsensor_dashboard;
GRANT SELECT ON alerts, alert_rounds, mails TO roomsensor_dashboard;
GRANT SELECT, INSERT, UPDATE (alerts, morning, weekly, told) ON mail_choices TO roomsensor_dashboard;

-- A process that notifies reads what alerts and reports are about, and writes alerts and mails. It cannot read passwords
-- or secrets, nor change a reading.
GRANT SELECT ON teams, devices, device_state, device_hardware, assignments, readings, memberships, goose_db_version
    TO roomsensor_notify;
GRANT SELECT (id, team_id, unit, reason, received_at, replayed_at) ON rejected_uploads TO roomsensor_notify;
GRANT SELECT (id, email, display_name, disabled_at, fahrenheit, hour12, month_first) ON users TO roomsensor_notify;
GRANT SELECT, INSERT, UPDATE ON alert_rounds TO roomsensor_notify;
GRANT SELECT, INSERT, UPDATE, DELETE ON alerts, mails TO roomsensor_notify;
GRANT SELECT, UPDATE (told) ON mail_choices TO roomsensor_notify;

-- A worker, and a dashboard that stores rejects again, copy readings into a temporary table, which every role may create
-- unless PUBLIC lost that right.
DO $$
BEGIN
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO roomsensor_api, roomsensor_worker, roomsensor_receiver, roomsensor_dashboard, roomsensor_notify',
        current_database());
    EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO roomsensor_worker, roomsensor_dashboard', current_database());
END
$$;
