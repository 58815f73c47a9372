-- +goose Up

-- What the people of a team configure. The zone is an IANA name; the night begins and ends at times of its clocks. The
-- thresholds have the range in which each metric is fine, by its name: {"temp_c": {"low": 16, "high": 26}}.
ALTER TABLE teams
    ADD COLUMN time_zone text NOT NULL DEFAULT 'UTC',
    ADD COLUMN night_start time NOT NULL DEFAULT '22:00'
        CHECK (night_start < '24:00' AND night_start = date_trunc('minute', night_start)),
    ADD COLUMN night_end time NOT NULL DEFAULT '07:00'
        CHECK (night_end < '24:00' AND night_end = date_trunc('minute', night_end)),
    ADD CONSTRAINT night_not_empty CHECK (night_start <> night_end),
    ADD COLUMN thresholds jsonb NOT NULL
        DEFAULT '{"co2_ppm": {"high": 1200}, "temp_c": {"low": 16, "high": 26}, "humidity_pct": {"low": 30, "high": 65}, "spl_db": {"high": 45}}'
        CHECK (jsonb_typeof(thresholds) = 'object');

CREATE OR REPLACE TRIGGER audit
    AFTER INSERT OR DELETE OR UPDATE OF name, time_zone, night_start, night_end, thresholds ON teams
    FOR EACH ROW EXECUTE FUNCTION audit_record('team', 'id', 'name', 'time_zone', 'night_start', 'night_end', 'thresholds');

-- +goose Down
CREATE OR REPLACE TRIGGER audit AFTER INSERT OR DELETE OR UPDATE OF name ON teams
    FOR EACH ROW EXECUTE FUNCTION audit_record('team', 'id', 'name');
ALTER TABLE teams DROP COLUMN time_zone;
ALTER TABLE teams DROP COLUMN night_start;
ALTER TABLE teams DROP COLUMN night_end;
ALTER TABLE teams DROP COLUMN thresholds;
