// Package e2e tests the service end to end: built processes over a real TimescaleDB and NATS, used as operators,
// devices and API clients use them.
//
// Files:
//
//	main_test.go              builds the program; env: database, team, commands, processes, requests
//	stream_test.go            streamEnv: an env with NATS and workers
//	upload_to_read_test.go    uploads and what the API shows of them
//	merge_test.go             late-merge rule (decision 37)
//	rejects_test.go           bad uploads and their replay (decision 41)
//	device_state_test.go      last seen, signal, firmware, moved units (decisions 39 and 40)
//	freshness_test.go         how soon writes show (decision 43)
//	replicas_test.go          several API processes
//	export_test.go            the largest exports
//	outage_test.go            database unavailable, stream full
//	shutdown_test.go          SIGTERM under load
//	secrets_test.go           no secret in any output
//	nginx_test.go             TLS by deploy/proxy/nginx.conf in front of all listeners
package e2e
