// Package httpedge holds what the HTTP listeners of all processes share, so that the API, the receiver and the ops
// listener authenticate, limit, answer errors and log in the same way. It knows neither SQL nor the queue.
//
//	error.go    the error envelope of spec 7, its headers, and the mapping of errors to what a client may see
//	access.go   request ids, the one access-log schema
//	shown.go    texts of clients in messages and logs
//	hints.go    messages about unknown parameters
//	closest.go  names and paths that a client probably meant
//	site.go     addresses of the service and of its clients
//	keys.go     the check of API keys and ingest keys, and the two caches of keys
//	idle.go     deadlines that move on while bytes move; the abort of a response
//	server.go   the settings of every http.Server
package httpedge
