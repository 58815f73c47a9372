//go:build chaos

package ingest

import "os"

// ackEarly makes a worker acknowledge before it commits, for the negative
// control of a trial (package chaos).
var ackEarly = os.Getenv("ROOMSENSOR_CHAOS_ACK_EARLY") != ""
