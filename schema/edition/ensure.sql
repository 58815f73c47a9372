-- Run at the end of every migration upwards: the edition of TimescaleDB may
-- have changed since the last one.
CALL ensure_readings_hourly();
