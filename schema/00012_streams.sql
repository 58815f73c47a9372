-- +goose Up

-- streams has the creation time of the stream of uploads, so that workers notice another one in its place: uploads that
-- were in the old stream and not yet stored are lost. The first worker records it.
CREATE TABLE streams (
    name       text PRIMARY KEY,
    created_at timestamptz NOT NULL
);

-- +goose Down
DROP TABLE streams;
