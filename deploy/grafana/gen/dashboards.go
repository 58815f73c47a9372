package main

import (
	"fmt"
	"slices"
)

// dashboards returns the dashboards by the names of their files.
func dashboards() map[string]dashboard {
	return map[string]dashboard{
		"overview": newDashboard("overview", "Is the service available, fast, and up to date?", overview()),
		"requests": newDashboard("requests",
			"Rate, errors and durations of the API, the dashboard and the receivers, and their limits.",
			slices.Concat(requests("api", "API"), requests("dashboard", "dashboard"), requests("receiver", "receivers"),
				limits())),
		"ingest":   newDashboard("ingest", "The queue, the workers, and what they reject.", ingest()),
		"database": newDashboard("database", "Connections, size, chunks and maintenance.", database()),
	}
}

// rate is the rate of a counter per second over five minutes.
func rate(counter string) string { return "rate(" + counter + "[5m])" }

// quantile is a quantile of a histogram over five minutes, by some labels.
func quantile(q float64, histogram, by string) string {
	if by != "" {
		by = ", " + by
	}
	return fmt.Sprintf("histogram_quantile(%g, sum by (le%s) (rate(%s_bucket[5m])))", q, by, histogram)
}

// errorRatio is the part of requests that failed, 0 if none did.
func errorRatio(listener string) string {
	counter := "roomsensor_" + listener + "_requests_total"
	return "(sum(" + rate(counter+`{status=~"5.."}`) + ") or vector(0)) / sum(" + rate(counter) + ")"
}

func one(expr, legend string) []query { return []query{{expr, legend}} }

func overview() []graph {
	stat := func(title, about, unit, expr string, limit float64) graph {
		return graph{title: title, about: about, unit: unit, queries: one(expr, ""), isStat: true, limit: limit}
	}
	ready := stat("Ready processes", "Part of the processes whose /readyz is 200.", unitPercent,
		"avg(roomsensor_process_ready)", 1)
	ready.belowIsBad = true
	return []graph{
		ready,
		stat("API errors", "Part of the requests with 5xx.", unitPercent, errorRatio("api"), 0.05),
		stat("Receiver errors", "Part of the requests with 5xx.", unitPercent, errorRatio("receiver"), 0.05),
		stat("Oldest upload that waits", "How late the tables are.", unitSeconds,
			"max(roomsensor_queue_oldest_unacknowledged_seconds)", 600),
		stat("Stream used", "At 1, receivers refuse uploads.", unitPercent,
			"max(roomsensor_queue_stream_bytes) / max(roomsensor_queue_stream_max_bytes)", 0.95),
		stat("Devices offline", "No upload for 24 hours, or never.", unitPercent,
			`max(roomsensor_devices{status="offline"}) / sum(max by (status) (roomsensor_devices))`, 0.3),
		{
			title: "Requests", about: "Requests per second.", unit: unitPerSec, queries: []query{
				{"sum(" + rate("roomsensor_api_requests_total") + ")", "API"},
				{"sum(" + rate("roomsensor_dashboard_requests_total") + ")", "dashboard"},
				{"sum(" + rate("roomsensor_receiver_requests_total") + ")", "receivers"},
			},
		},
		{
			title: "Readings", about: "Readings per second that were inserted or changed, and rejects.", unit: unitPerSec,
			queries: []query{
				{"sum(" + rate("roomsensor_ingest_rows_changed_total") + ")", "stored"},
				{"sum(" + rate("roomsensor_ingest_rejects_total") + ")", "rejects"},
			},
		},
		{
			title: "Time from arrival", about: "Until the commit, and until a snapshot of the API shows the device.",
			unit: unitSeconds, queries: []query{
				{quantile(0.5, "roomsensor_ingest_lag_seconds", ""), "commit, median"},
				{quantile(0.99, "roomsensor_ingest_lag_seconds", ""), "commit, p99"},
				{quantile(0.99, "roomsensor_api_visible_lag_seconds", ""), "visible, p99"},
			},
		},
		{
			title: "Devices", about: "Devices of all teams by status.", unit: unitNumber,
			queries: one("max by (status) (roomsensor_devices)", "{{status}}"),
		},
		{
			title: "Versions", about: "Processes by version.", unit: unitNumber,
			queries: one("count by (version) (roomsensor_build_info)", "{{version}}"),
		},
		{
			title: "Dependencies", about: "Part of the processes that can use each dependency.", unit: unitPercent,
			queries: one("avg by (dependency) (roomsensor_process_dependency_available)", "{{dependency}}"),
		},
	}
}

// requests returns the panels of a listener.
func requests(listener, name string) []graph {
	prefix := "roomsensor_" + listener
	return []graph{
		{
			title: "Rate: " + name, about: "Requests per second by route.", unit: unitPerSec,
			queries: one("sum by (route) ("+rate(prefix+"_requests_total")+")", "{{route}}"),
		},
		{
			title: "Errors: " + name, about: "Responses per second other than success, by status and error code.",
			unit:    unitPerSec,
			queries: one("sum by (status, code) ("+rate(prefix+`_requests_total{code!=""}`)+")", "{{status}} {{code}}"),
		},
		{
			title: "Durations: " + name, about: "The slowest 1 % by route, bodies included.", unit: unitSeconds,
			queries: one(quantile(0.99, prefix+"_request_duration_seconds", "route"), "{{route}}"),
		},
		{
			title: "In flight: " + name, about: "Requests without a complete response.", unit: unitNumber,
			queries: one("sum by (instance) ("+prefix+"_requests_in_flight)", "{{instance}}"),
		},
	}
}

func limits() []graph {
	return []graph{
		{
			title: "Rate limit", about: "Decisions per second.", unit: unitPerSec,
			queries: one("sum by (result) ("+rate("roomsensor_api_rate_limit_total")+")", "{{result}}"),
		},
		{
			title: "Limits of the API", about: "Part of each limit that is in use; at 1, requests wait.", unit: unitPercent,
			queries: []query{
				{"max(roomsensor_api_list_bytes / roomsensor_api_list_max_bytes)", "lists"},
				{"max(roomsensor_api_scans_running / roomsensor_api_scans_max)", "scans"},
				{"max(sum without (state) (roomsensor_api_exports_running) / roomsensor_api_exports_max)", "exports"},
			},
		},
		{
			title: "Waiting requests", about: "Requests that wait for a limit or for changes.", unit: unitNumber,
			queries: []query{
				{"sum by (limit) (roomsensor_api_limit_waiting)", "{{limit}}"},
				{"sum(roomsensor_api_changes_waiting)", "changes"},
			},
		},
		{
			title: "Exports", about: "Running exports, and the age of the oldest in hours.", unit: unitNumber,
			queries: []query{
				{"sum by (state) (roomsensor_api_exports_running)", "{{state}}"},
				{"max(roomsensor_api_exports_oldest_seconds) / 3600", "oldest, hours"},
			},
		},
		{
			title: "Snapshot age", about: "Age of the data of GET /v1/devices/current.", unit: unitSeconds,
			queries: one(quantile(0.99, "roomsensor_api_snapshot_age_seconds", ""), "p99"),
		},
		{
			title: "Live pages", about: "Pages of the dashboard that are kept up to date, and their teams.", unit: unitNumber,
			queries: []query{
				{"sum(roomsensor_dashboard_streams)", "pages"}, {"sum(roomsensor_dashboard_watched_teams)", "teams"},
			},
		},
		{
			title: "Memory of receivers", about: "Part of UPLOAD_MEMORY that requests have reserved.", unit: unitPercent,
			queries: one("roomsensor_receiver_memory_bytes / roomsensor_receiver_memory_max_bytes", "{{instance}}"),
		},
	}
}

func ingest() []graph {
	return []graph{
		{
			title: "Backlog", about: "Uploads that are not settled.", unit: unitNumber, queries: []query{
				{"max(roomsensor_queue_waiting_messages)", "waiting"},
				{"max(roomsensor_queue_unacknowledged_messages)", "unacknowledged"},
			},
		},
		{
			title: "Age of the backlog", about: "The oldest upload that is not settled.", unit: unitSeconds,
			queries: one("max(roomsensor_queue_oldest_unacknowledged_seconds)", "oldest"),
		},
		{
			title: "Reach of the stream", about: "How far back a replay reaches, and STREAM_KEEP.", unit: unitSeconds,
			queries: []query{
				{"max(roomsensor_queue_stream_reach_seconds)", "reach"},
				{"max(roomsensor_queue_stream_keep_seconds)", "STREAM_KEEP"},
			},
		},
		{
			title: "Size of the stream", about: "At the limit, receivers refuse uploads.", unit: unitBytes, queries: []query{
				{"max(roomsensor_queue_stream_bytes)", "size"}, {"max(roomsensor_queue_stream_max_bytes)", "limit"},
			},
		},
		{
			title: "Batches", about: "Time to write a batch, until its commit.", unit: unitSeconds, queries: []query{
				{quantile(0.5, "roomsensor_ingest_batch_duration_seconds", ""), "median"},
				{quantile(0.99, "roomsensor_ingest_batch_duration_seconds", ""), "p99"},
			},
		},
		{
			title: "Size of batches", about: "Median of uploads and readings.", unit: unitNumber, queries: []query{
				{quantile(0.5, "roomsensor_ingest_batch_uploads", ""), "uploads"},
				{quantile(0.5, "roomsensor_ingest_batch_readings", ""), "readings"},
			},
		},
		{
			title: "Rejects", about: "Rejects per second by reason.", unit: unitPerSec,
			queries: one("sum by (reason) ("+rate("roomsensor_ingest_rejects_total")+")", "{{reason}}"),
		},
		{
			title: "Refusals of the database",
			about: "Failed batches and parked uploads in 5 minutes, and the highest number of deliveries.",
			unit:  unitNumber, queries: []query{
				{"sum(increase(roomsensor_ingest_batch_failures_total[5m]))", "failed batches"},
				{"sum(increase(roomsensor_ingest_parked_total[5m]))", "parked uploads"},
				{"max(roomsensor_ingest_max_deliveries)", "deliveries"},
				{"max(roomsensor_ingest_holding)", "holds"},
			},
		},
		{
			title: "Kept rejects", about: "Size of all rejects, and its limit.", unit: unitBytes, queries: []query{
				{"max(roomsensor_rejects_bytes)", "size"}, {"max(roomsensor_rejects_max_bytes)", "limit"},
			},
		},
		{
			title: "Confirmed uploads", about: "Uploads per second that receivers confirmed.", unit: unitPerSec,
			queries: one("sum by (instance) ("+rate("roomsensor_receiver_uploads_total")+")", "{{instance}}"),
		},
	}
}

func database() []graph {
	return []graph{
		{
			title: "Pools", about: "Part of each pool that is in use, of the busiest process.", unit: unitPercent,
			queries: one(`max by (pool) (roomsensor_database_pool_connections{state="in_use"} / `+
				"ignoring (state) roomsensor_database_pool_connections_max)", "{{pool}}"),
		},
		{
			title: "Waits for a connection", about: "Seconds per second that requests wait, by pool.", unit: unitNumber,
			queries: one("sum by (pool) ("+rate("roomsensor_database_pool_wait_seconds_total")+")", "{{pool}}"),
		},
		{
			title: "Connections of the server", about: "To all databases.", unit: unitNumber, queries: []query{
				{"max(roomsensor_database_connections)", "connections"}, {"max(roomsensor_database_connections_max)", "limit"},
			},
		},
		{
			title: "Size",
			about: "Of the database, and of the readings with their indexes.", unit: unitBytes, queries: []query{
				{"max(roomsensor_database_bytes)", "database"}, {"max(roomsensor_readings_bytes)", "readings"},
			},
		},
		{
			title: "Chunks", about: "Twice the chunks should not exceed max_locks_per_transaction.", unit: unitNumber,
			queries: []query{
				{"2 * max(roomsensor_database_chunks)", "twice the chunks"},
				{"max(roomsensor_database_max_locks_per_transaction)", "max_locks_per_transaction"},
			},
		},
		{
			title: "Columnstore",
			about: "Size of the compressed chunks as rows and as columns. Community edition only.", unit: unitBytes,
			queries: []query{
				{"max(roomsensor_readings_columnstore_uncompressed_bytes)", "as rows"},
				{"max(roomsensor_readings_columnstore_bytes)", "as columns"},
			},
		},
		{
			title: "Age of the hourly aggregate",
			about: "Time since its last refresh. Community edition only.", unit: unitSeconds,
			queries: one("time() - max(roomsensor_readings_hourly_refreshed_timestamp_seconds)", "age"),
		},
		{
			title: "Maintenance",
			about: "Chunks that wait for their rewrite, and those that were rewritten or deferred in an hour.",
			unit:  unitNumber, queries: []query{
				{"max(roomsensor_maintenance_chunks_waiting)", "waiting"},
				{"sum(increase(roomsensor_maintenance_chunks_ordered_total[1h]))", "rewritten"},
				{"sum by (reason) (increase(roomsensor_maintenance_chunks_deferred_total[1h]))", "{{reason}}"},
			},
		},
	}
}
