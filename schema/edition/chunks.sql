-- Runs at the end of a `migrate up` that is given the length of new chunks, in seconds.
CALL ensure_chunk_interval(make_interval(secs => $1));
