// Package client tests the Go client against the real service. These tests are not in the module of the client, because
// it would have to require that of the service.
//
//	main_test.go          the service with its data, and a transport that breaks requests
//	client_test.go        New, every read, UpdateDevice, errors
//	retry_test.go         retries and their pauses
//	changes_test.go       the change feed
//	export_test.go        exports that are cut
//	operations_test.go    every operation of the OpenAPI document
//	module_test.go        the examples, and a program in a folder of its own, as in docs/guides/clients.md
//	export/, localcopy/   the packages below the client
package client
