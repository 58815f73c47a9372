//go:build chaos

package worker

import "os"

// ackEarly makes a worker acknowledge before it commits. It is the negative control of the chaos trials, which must
// detect the loss.
var ackEarly = os.Getenv("ROOMSENSOR_CHAOS_ACK_EARLY") != ""
