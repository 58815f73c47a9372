-- The rights of the processes, in full: what a role had before is revoked first. `migrate up` runs this in one
-- transaction, with the names of the installation's roles, after the migrations. The owner of the tables may run it.
-- TimescaleDB passes rights on a hypertable on to its chunks, existing and future ones.
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM roomsensor_api, roomsensor_worker, roomsensor_receiver;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM roomsensor_api, roomsensor_worker, roomsensor_receiver;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM roomsensor_api, roomsensor_worker, roomsensor_receiver;
GRANT USAGE ON SCHEMA public TO roomsensor_api, roomsensor_worker, roomsensor_receiver;

-- The API reads everything that belongs to a team, and changes names, tags and its own bookkeeping.
GRANT SELECT ON teams, api_keys, devices, device_details, device_hardware, assignments, readings, readings_hourly,
    imported_ranges, feed_batches, feed_days, feed_state, goose_db_version TO roomsensor_api;
GRANT UPDATE (display_name, metadata) ON devices TO roomsensor_api;
GRANT SELECT, INSERT ON service_secrets TO roomsensor_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys, idempotency_bytes, rate_windows, rate_counters TO roomsensor_api;
GRANT EXECUTE ON FUNCTION feed_reserve() TO roomsensor_api;

-- A worker stores readings and rejects. A process that is a receiver too has the role of a worker.
GRANT SELECT ON devices, device_hardware, ingest_keys, ordered_chunks, goose_db_version TO roomsensor_worker;
GRANT UPDATE (last_seen_at, rssi_dbm, signal_bars, signal_at, firmware_version, firmware_at, latest_bucket_at) ON devices
    TO roomsensor_worker;
GRANT SELECT, INSERT, UPDATE ON readings TO roomsensor_worker;
GRANT SELECT, INSERT, UPDATE (reason), DELETE ON rejected_uploads TO roomsensor_worker;
GRANT SELECT ON reject_usage TO roomsensor_worker;
GRANT SELECT, UPDATE, DELETE ON imported_ranges TO roomsensor_worker;
GRANT SELECT, INSERT ON streams TO roomsensor_worker;
GRANT SELECT, INSERT ON receiver_secrets TO roomsensor_worker;
GRANT EXECUTE ON FUNCTION order_chunk(text) TO roomsensor_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON postponed_chunks TO roomsensor_worker;
GRANT SELECT ON SEQUENCE feed_reserved TO roomsensor_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON feed_batches, feed_days TO roomsensor_worker;
GRANT SELECT, UPDATE ON feed_state TO roomsensor_worker;

-- A receiver reads upload credentials. For dry runs it reads installations, for lists of rejects everything but their
-- payloads.
GRANT SELECT ON ingest_keys, device_hardware TO roomsensor_receiver;
GRANT SELECT (id, team_id) ON devices TO roomsensor_receiver;
GRANT SELECT (id, received_at, team_id, hardware_id, reason, detail, replayed_at) ON rejected_uploads
    TO roomsensor_receiver;
GRANT SELECT, INSERT ON receiver_secrets TO roomsensor_receiver;

-- A worker copies readings into a temporary table, which every role may create unless PUBLIC lost that right.
DO $$
BEGIN
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO roomsensor_api, roomsensor_worker, roomsensor_receiver',
        current_database());
    EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO roomsensor_worker', current_database());
END
$$;
