-- +goose Up

-- postponed_chunks has the chunks whose rewrite in primary-key order exceeded its time limit. Until postponed_until, no
-- process rewrites such a chunk with the same limit or a shorter one, because the chunk is locked during each attempt.
CREATE TABLE postponed_chunks (
    chunk           text PRIMARY KEY,
    postponed_until timestamptz NOT NULL,
    time_limit      interval NOT NULL
);

-- +goose Down
DROP TABLE postponed_chunks;
