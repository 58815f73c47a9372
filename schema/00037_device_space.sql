-- +goose Up

-- Each upload updates a row of devices. With space for a second version on the same page, the update is a HOT update: it
-- changes no index, and the next one reuses the space. Pages that exist get it as their rows are updated.
ALTER TABLE devices SET (fillfactor = 50);

-- +goose Down
ALTER TABLE devices RESET (fillfactor);
