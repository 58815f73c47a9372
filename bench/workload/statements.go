package workload

// The statements that pgbench runs: the least that finds or changes the same rows. They stand here and not in queries/,
// so that a change of the service cannot change what it is measured by.
const (
	// latestSQL is the newest reading of each device of a team.
	latestSQL = `
SELECT d.id, r.bucket_at, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db, r.ingested_at
FROM devices d
CROSS JOIN LATERAL (
    SELECT bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, ingested_at FROM readings
    WHERE readings.device_id = d.id AND readings.bucket_at >= :since::timestamptz
    ORDER BY readings.bucket_at DESC LIMIT 1
) r
WHERE d.team_id = :team::uuid;`

	// pageSQL is a page of a device's readings; %[1]s is the device, %[2]d the rows.
	pageSQL = `
SELECT r.bucket_at, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db, r.ingested_at
FROM readings r
WHERE r.device_id = %[1]s
  AND EXISTS (SELECT FROM devices d WHERE d.id = %[1]s AND d.team_id = :team::uuid)
  AND r.bucket_at >= to_timestamp(:f) AND r.bucket_at < to_timestamp(:t)
ORDER BY r.bucket_at DESC
LIMIT %[2]d;`

	// updateSQL changes a device; the %s is its id.
	updateSQL = `
UPDATE devices
SET display_name = 'Room', metadata = jsonb_build_object('building', 'b1', 'floor', '1', 'bench', :n::text)
WHERE team_id = :team::uuid AND id = %s;`
)
