-- Run at the end of every migration upwards: the settings, in seconds or null
-- for never, may have changed since the last one.
CALL ensure_readings_layout(make_interval(secs => $1), make_interval(secs => $2));
