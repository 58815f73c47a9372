-- +goose Up

-- idempotency_bytes counts the bytes of the large responses that an API key stored in idempotency_keys, by hour. It
-- limits what a key can store: one small change of a device with all tags stores 100 KB.
CREATE TABLE idempotency_bytes (
    key_id text NOT NULL REFERENCES api_keys (key_id),
    hour   timestamptz NOT NULL,
    bytes  bigint NOT NULL,
    PRIMARY KEY (key_id, hour)
);

-- +goose Down
DROP TABLE idempotency_bytes;
