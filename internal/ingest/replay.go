package ingest

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"roomsensor/internal/roomsensor"
)

// ReplayReject judges and stores a reject again, as a worker would, with its
// first arrival and under its team (decision 39). It tells whether all of it
// landed; what did not makes no second reject, but the time of the replay is
// noted (decision 41).
func ReplayReject(ctx context.Context, store ReplayStore, reject roomsensor.Reject) (landed bool, err error) {
	l := lander{
		units: store,
		write: func(ctx context.Context, b roomsensor.Batch) error {
			return store.WriteReplay(ctx, reject.ID, b)
		},
		ping: store.Ping,
		log:  zerolog.Nop(),
	}
	var unit string
	if reject.HardwareID != nil {
		unit = *reject.HardwareID
	}
	outcomes, err := l.land(ctx, []*delivery{judged(reject.Arrival, unit, reject.Payload)})
	if err != nil {
		return false, fmt.Errorf("replaying a reject: %w", err)
	}
	return len(outcomes[0].rejects) == 0, nil
}
