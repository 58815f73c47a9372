package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// settleTimeout is for what the workers hold and for what they left behind when they were killed.
const settleTimeout = 10 * time.Minute

var errUnsettled = errors.New("the workers did not settle everything in time")

// Settle waits until the workers have settled all that the stream holds, and tells how often they were given messages.
func (s *Service) Settle(ctx context.Context) (deliveries uint64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, errUnsettled)
	defer cancel()
	const look, tell = 200 * time.Millisecond, 10 * time.Second
	told := time.Now()
	for {
		info, err := s.Consumer(ctx)
		if err == nil && info.NumPending == 0 && info.NumAckPending == 0 {
			return info.Delivered.Consumer, nil
		}
		if time.Since(told) > tell {
			told = time.Now()
			s.sayWaiting(info, err)
		}
		if err := Pause(ctx, look); err != nil {
			return 0, fmt.Errorf("waiting for the workers: %w", err)
		}
	}
}

func (s *Service) sayWaiting(info *jetstream.ConsumerInfo, err error) {
	if err != nil {
		s.Say("waiting for the queue: %v", err)
		return
	}
	s.Say("waiting for the workers: %d messages wait, %d are held", info.NumPending, info.NumAckPending)
}
