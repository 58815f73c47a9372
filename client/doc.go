// Package client is a Go client of the roomsensor API.
//
//	c, err := client.New("https://sensors.example.org", os.Getenv("ROOMSENSOR_API_KEY"))
//	if err != nil {
//		return err
//	}
//	for reading, err := range c.Readings(ctx, device, client.ReadingQuery{Window: client.Last(24 * time.Hour)}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(reading.BucketAt, reading.CO2PPM)
//	}
//
// Lists are iterators over all items: they request the next page when they need it, and end at the first error.
//
// Every request is sent again after a broken connection, and after the statuses 429, 500, 502, 503 and 504. The pause
// is that of Retry-After where the service sends it. A change of a device carries an Idempotency-Key, so that it runs
// once. WithMaxAttempts and WithMaxWait set the limits. All other refusals are an *Error, with its stable code:
//
//	if client.HasCode(err, client.CodeDeviceNotFound) {
//
// A value that the service does not know, such as a metric that a sensor did not measure, is a nil pointer. Metrics are
// 32-bit values. They are decoded as the shortest decimal of that value, so that 21.4 is 21.4.
//
// A Client is safe for concurrent use. The package depends on the standard library and on github.com/google/uuid.
//
// Files:
//
//	client.go      New and its options
//	request.go     sends requests, and retries
//	error.go       Error
//	list.go        iterators over the pages of a list
//	team.go        the team of the key
//	devices.go     devices, their latest state, their changes, and their assignments
//	readings.go    windows, and the readings of one device
//	aggregates.go  minimum, maximum, mean and count by hour or by day
//	nights.go      nights of assignments, with the verdict on the air
//	coverage.go    how many of the expected readings arrived, and the gaps between them
//	changes.go     the change feed
//	export.go      exports, and the check that they are complete
//	rows.go        the readings of an export, one by one
//	uploads.go     uploads to the receiver
//	types.gen.go   the types of responses, generated from the OpenAPI document of the service
package client
