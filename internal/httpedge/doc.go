// Package httpedge holds what the HTTP listeners of all processes share, so that the API, the receiver and the ops
// listener authenticate, limit, answer errors and log in the same way. It knows neither SQL nor the queue.
//
//	error.go       the error envelope of spec 7, its headers, and the mapping of errors to what a client may see
//	respond.go     bodies, compression, ETag, security headers
//	access.go      request ids, the one access-log schema
//	metrics.go     the metrics of requests
//	span.go        the trace of a request
//	shown.go       texts of clients in messages and logs
//	query.go       query parameters
//	selection.go   parameters that select readings in time and by device
//	page.go        pages of lists, and their cursors
//	hints.go       messages about unknown parameters
//	closest.go     names and paths that a client probably meant
//	site.go        addresses of the service and of its clients
//	auth.go        the check of API keys and ingest keys
//	keys.go        the cache of the keys that were used
//	key_list.go    all keys in memory
//	key_lookup.go  lookups of keys, shared by requests
//	key_uses.go    when keys were last used
//	idle.go        deadlines that move on while bytes move; the abort of a response
//	server.go      the settings of every http.Server
package httpedge
