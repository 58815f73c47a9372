package main

// examples are command lines without the name of the program, by command. A test parses each of them.
var examples = map[string][]string{
	"api":       {"api", "api --api-addr 0.0.0.0:8080 --public-url https://air.example.com"},
	"ingest":    {"ingest", "ingest --no-worker", "ingest --no-receiver --maintain-window 02:00-04:00"},
	"dashboard": {"dashboard", "dashboard --dashboard-addr 0.0.0.0:8082 --dashboard-url https://dashboard.example.com"},
	"notify": {
		"notify",
		"notify --smtp-url smtp://smtp.example.com --mail-from rooms@example.com --dashboard-url https://rooms.example.com",
	},
	"mqtt": {
		"mqtt --subscribe zigbee2mqtt/+=6fa459ea-ee8a-4ca4-894e-db77e160355e",
		"mqtt --mqtt-url mqtts://a.example --protocol 3 --subscribe tele/+/SENSOR=6fa459ea-ee8a-4ca4-894e-db77e160355e",
	},

	"migrate up":     {"migrate up", "migrate up --columnstore-after 14d --readings-keep 730d"},
	"migrate status": {"migrate status", "migrate status --output json"},

	"upload": {"upload uploads.jsonl", "upload - <uploads.jsonl"},

	"rejects list": {
		"rejects list --team 'Riverside Athletics' --reason unknown_unit",
		"rejects list --since 2026-01-31T08:00:00Z --limit 100 --output json",
	},
	"rejects show": {"rejects show 6fa459ea-ee8a-4ca4-894e-db77e160355e"},
	"rejects replay": {
		"rejects replay 6fa459ea-ee8a-4ca4-894e-db77e160355e",
		"rejects replay --reason unknown_unit",
		"rejects replay --source Gateway --team 'Riverside Athletics'",
	},

	"stream status":  {"stream status", "stream status --output json"},
	"stream replay":  {"stream replay", "stream replay --since 2026-01-31T08:00:00Z"},
	"stream update":  {"stream update --stream-max-bytes 16GiB"},
	"stream confirm": {"stream confirm"},
	"stream skip":    {"stream skip 4711"},

	"restore check": {"restore check", "restore check --to 2026-01-31T08:00:00Z"},

	"maintain": {"maintain", "maintain --after 30d --limit 10"},

	"team create": {"team create --name 'Riverside Athletics'", "team create --name 'Riverside Athletics' --output text"},
	"team list":   {"team list", "team list --output json"},
	"team show":   {"team show 'Riverside Athletics'"},
	"team set": {
		"team set 'Riverside Athletics' --time-zone Europe/Berlin --night 22:00-07:00",
		"team set 'Riverside Athletics' --limit co2_ppm=..900/1200 --limit temp_c=16/14..24/27 --limit spl_db=..",
	},
	"team set-retention": {
		"team set-retention 'Riverside Athletics' 400d", "team set-retention 'Riverside Athletics' none",
	},
	"team rename": {"team rename 'Riverside Athletics' --name 'Riverside AC'"},
	"team delete": {"team delete 'Riverside Athletics'", "team delete 6fa459ea-ee8a-4ca4-894e-db77e160355e --yes"},

	"user invite": {
		"user invite --team 'Riverside Athletics' --email ana@example.com --role admin",
		"user invite --team 'Riverside Athletics' --email kim@a.example --role viewer --dashboard-url https://rooms.example",
	},
	"user list":    {"user list"},
	"user reset":   {"user reset ana@example.com"},
	"user disable": {"user disable ana@example.com"},
	"user enable":  {"user enable ana@example.com"},
	"user delete":  {"user delete ana@example.com", "user delete ana@example.com --erase-audit-log"},

	"key create": {
		"key create --team 'Riverside Athletics'",
		"key create --team 'Riverside Athletics' --scope read_write --label 'coach app' --expires-at 2027-01-01T00:00:00Z",
	},
	"key list":   {"key list --team 'Riverside Athletics'"},
	"key rotate": {"key rotate om4smmowqyzy7gny", "key rotate om4smmowqyzy7gny --overlap 7d"},
	"key revoke": {"key revoke om4smmowqyzy7gny"},

	"ingest-key create": {"ingest-key create --team 'Riverside Athletics' --label 'gateway 1'"},
	"ingest-key list":   {"ingest-key list --team 'Riverside Athletics'"},
	"ingest-key rotate": {"ingest-key rotate zd3kq2yqbvt5n4wm", "ingest-key rotate zd3kq2yqbvt5n4wm --overlap 30d"},
	"ingest-key revoke": {"ingest-key revoke zd3kq2yqbvt5n4wm"},

	"source create": {
		"source create --team 'Riverside Athletics' --name 'The Things Stack' --format tts",
		"source create --team 'Riverside Athletics' --name Gateway --format notehub --mapping mapping.json",
	},
	"source list": {"source list --team 'Riverside Athletics'"},
	"source show": {"source show Gateway --team 'Riverside Athletics'"},
	"source set": {
		"source set Gateway --team 'Riverside Athletics' --mapping mapping.json",
		"source set 6fa459ea-ee8a-4ca4-894e-db77e160355e --disable",
	},
	"source test": {
		"source test Gateway --team 'Riverside Athletics' message.json --suggest",
		"source test Gateway --team 'Riverside Athletics' message.json --mapping mapping.json",
	},
	"source delete":  {"source delete Gateway --team 'Riverside Athletics'"},
	"source formats": {"source formats", "source formats notehub"},

	"device create": {
		"device create --team 'Riverside Athletics' --hardware-id dev:864475046552567 --name 'Weight room'",
		"device create --team 'Riverside Athletics' --hardware-id dev:864475046552567 --metadata building=gym",
		"device create --team 'Riverside Athletics' --alias a84041b9d1c2f3e4 --name 'Weight room'",
	},
	"device list": {
		"device list --team 'Riverside Athletics'", "device list --team 'Riverside Athletics' --retired",
	},
	"device show":          {"device show 'Weight room'", "device show dev:864475046552567"},
	"device rename":        {"device rename 'Weight room' --team 'Riverside Athletics' --name 'Weight room, north'"},
	"device set-sampling":  {"device set-sampling 'Weight room' mean"},
	"device set-retention": {"device set-retention 'Weight room' 90d", "device set-retention 'Weight room' none"},
	"device retire":        {"device retire 'Weight room'"},
	"device delete":        {"device delete 'Weight room'", "device delete 6fa459ea-ee8a-4ca4-894e-db77e160355e --yes"},
	"device replace-hardware": {
		"device replace-hardware 'Weight room' --hardware-id dev:864475046552568",
		"device replace-hardware 'Weight room' --hardware-id dev:864475046552568 --at 2026-01-31T08:00:00Z",
	},
	"device remove-hardware": {"device remove-hardware 'Weight room'"},
	"reading archive": {
		"reading archive --to /srv/archive", "reading archive --to s3://readings/archive --older-than 400d",
		"reading archive --to /srv/archive --team 'Riverside Athletics' --deletions",
	},
	"reading delete": {
		"reading delete 'Weight room' --from 2026-01-27 --to 2026-01-30 --reason 'The sensor was wet.'",
		"reading delete 'Weight room' --from 2026-01-31T08:00:00Z --to 2026-01-31T09:00:00Z --reason Calibration --yes",
	},

	"assignment start": {
		"assignment start 'Weight room' --type place --label 'Weight room'",
		"assignment start 'Dorm 12' --type athlete --label 'Kim Lee' --home-or-travel travel",
	},
	"assignment transfer": {
		"assignment transfer 6fa459ea-ee8a-4ca4-894e-db77e160355e --type athlete --label 'Kim Lee'",
	},
	"assignment move": {
		"assignment move 6fa459ea-ee8a-4ca4-894e-db77e160355e --to 'Dorm 12'",
		"assignment move 6fa459ea-ee8a-4ca4-894e-db77e160355e --to 'Dorm 12' --if-occupied swap --at 2026-01-31T20:00:00Z",
	},
	"assignment edit": {
		"assignment edit 6fa459ea-ee8a-4ca4-894e-db77e160355e --label 'Kim Lee' --reason 'misspelt' --dry-run",
		"assignment edit 6fa459ea-ee8a-4ca4-894e-db77e160355e --started-at 2026-01-31T20:00:00Z --no-end",
	},
	"assignment end":    {"assignment end 6fa459ea-ee8a-4ca4-894e-db77e160355e"},
	"assignment delete": {"assignment delete 6fa459ea-ee8a-4ca4-894e-db77e160355e --reason 'wrong room'"},
	"assignment list":   {"assignment list 'Weight room'"},

	"person export": {
		"person export --team 'Riverside Athletics' --label 'Kim Lee' --to kim-lee",
		"person export --team 'Riverside Athletics' --external-ref crm-4711 --to crm-4711",
	},
	"person erase": {
		"person erase --team 'Riverside Athletics' --label 'Kim Lee' --dry-run",
		"person erase --team 'Riverside Athletics' --external-ref crm-4711 --mentions",
	},

	"audit list": {
		"audit list --team 'Riverside Athletics'",
		"audit list --since 2026-01-01T00:00:00Z --object 'Weight room'",
		"audit list --actor kim@example.com --output json",
	},

	"get devices": {
		"get devices", "get devices --output table | less", "get devices --metadata building=gym --output csv",
	},
	"get current": {"get current", "get current --metadata building=gym --output json"},
	"get readings": {
		"get readings 'Weight room'",
		"get readings 'Weight room' --last 7d --output csv >readings.csv",
		"get readings 6fa459ea-ee8a-4ca4-894e-db77e160355e --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z",
	},
	"get changes": {
		"get changes --since 2026-01-31", "get changes --follow --devices 'Weight room' >>changes.jsonl",
		"get changes --since AY3_p5w0VSDJQie2vQphXUA67KJW7Osj8CJZbmFE1f6WpRTlkuTgK03dB295kq80mOc1YXus4r4n",
	},
	"get assignments": {"get assignments", "get assignments --last 365d --external-ref crm-7 --output csv"},
	"get nights": {
		"get nights", "get nights --from-night 2026-01-01 --external-ref crm-7", "get nights --night 2026-01-31 --output csv",
	},
	"get coverage": {"get coverage", "get coverage --last 7d --metadata building=gym --output csv"},
	"get gaps":     {"get gaps 'Weight room' --last 7d --min 30m"},
	"get aggregates": {
		"get aggregates 'Weight room'",
		"get aggregates 'Weight room' --interval 1d --time-zone Europe/Berlin --last 90d --metrics co2_ppm --output csv",
	},
	"export check": {"export check year.csv"},
	"export": {
		"export --last 365d --output year.csv",
		"export --from 2026-01-01T00:00:00Z --to 2027-01-01T00:00:00Z --by-month --output readings-2026",
		"export --last 90d --metadata building=gym --output gym.parquet",
		"export --last 30d --devices 'Weight room' --shape wide -o weight-room.csv --overwrite",
	},

	"sync": {"sync readings.db", "sync readings.db --once", "sync copy/ --from 2026-01-01T00:00:00Z"},

	"import": {
		"import readings.csv --units units.csv",
		"import logger.csv.gz --device dev:864475046552567 --time Time --metric co2_ppm=CO2 --dry-run",
		"import *.csv --time Zeit --time-format local --time-zone Europe/Berlin --unit Sensor --units units.csv " +
			"--metric 'temp_c=Temp*0.1-40' --skip-bad bad.csv",
	},

	"probe": {
		"probe --once",
		"probe --roomsensor-url https://sensors.example.com --ingest-url https://uploads.example.com --interval 5m",
	},

	"support-bundle": {
		"support-bundle", "support-bundle --file bundle.tar.gz --process 10.0.0.5:9080,10.0.0.6:9081 --log api.log",
	},

	"doctor": {
		"doctor", "doctor --public-url https://sensors.example.com --nats-monitoring-url http://127.0.0.1:8222",
	},
	"healthcheck": {"healthcheck", "healthcheck --ops-addr 127.0.0.1:9081"},
}
