// Package api is the public HTTP API of spec parts 1 to 9: routes, parameters,
// authentication, rate limit, pages, exports and errors. It reaches the data
// through the interfaces it declares and knows neither SQL nor the queue.
package api
