-- Runs at the end of every `migrate up`, because the edition of TimescaleDB may have changed since the last one.
CALL ensure_readings_hourly();
