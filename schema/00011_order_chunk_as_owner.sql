-- +goose Up

-- Only the owner of a table may CLUSTER it, and workers log in as a role that owns nothing. order_chunk therefore runs
-- with the rights of its owner. The fixed search_path keeps a caller from replacing what it calls, and only roles that
-- `migrate up` grants it to may call it.
ALTER FUNCTION order_chunk(text) SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp;
REVOKE EXECUTE ON FUNCTION order_chunk(text) FROM PUBLIC;

-- +goose Down
GRANT EXECUTE ON FUNCTION order_chunk(text) TO PUBLIC;
ALTER FUNCTION order_chunk(text) SECURITY INVOKER RESET search_path;
