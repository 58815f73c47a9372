-- +goose Up

-- A session plans the statements of these functions once. If rate_windows is empty then, as after a quiet night, the
-- plan would read the whole table for each request until it is analyzed again, when it may have thousands of rows. Each
-- statement reads one row by the primary key, so that no other plan is ever better.
ALTER FUNCTION rate_window_hits(text, integer) SET enable_seqscan = off;

-- +goose Down
ALTER FUNCTION rate_window_hits(text, integer) RESET enable_seqscan;
