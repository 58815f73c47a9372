-- Runs at the end of every `migrate up`, because the settings may have changed since the last one. The parameters are ages
-- in seconds; null means never.
CALL ensure_readings_layout(make_interval(secs => $1), make_interval(secs => $2));
