package app

import (
	"context"
	"time"
)

// A machine that starts all of the service at once may be too busy to answer in
// time.
const (
	attempts     = 5
	attemptPause = time.Second
)

// patiently tries a few times what can be done again, and returns what went
// wrong the last time.
func patiently(ctx context.Context, try func() error) error {
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || attempt == attempts || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(attemptPause):
		}
	}
}
