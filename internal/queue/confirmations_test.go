package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

func TestConfirmations(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	timeout := fmt.Errorf("storing: %w", jetstream.ErrAsyncPublishTimeout)
	full := &jetstream.APIError{Code: 503, ErrorCode: 10077, Description: "maximum bytes exceeded"}
	type event struct {
		after      time.Duration
		err        error
		connection uint64
	}
	for name, test := range map[string]struct {
		events     []event
		at         time.Duration
		connection uint64
		want       bool
	}{
		"none":                         {nil, 0, 0, false},
		"one message fails":            {[]event{{0, timeout, 0}}, time.Second, 0, false},
		"messages fail at once":        {[]event{{0, timeout, 0}, {ackTimeout - 1, timeout, 0}}, ackTimeout, 0, false},
		"a later message fails":        {[]event{{0, timeout, 0}, {ackTimeout, timeout, 0}}, ackTimeout, 0, true},
		"the server fails":             {[]event{{0, &jetstream.APIError{Code: 503, ErrorCode: 10023}, 0}, {ackTimeout, timeout, 0}}, ackTimeout, 0, true},
		"a message is confirmed":       {[]event{{0, timeout, 0}, {ackTimeout, timeout, 0}, {ackTimeout, nil, 0}}, ackTimeout, 0, false},
		"one is confirmed in between":  {[]event{{0, timeout, 0}, {1, nil, 0}, {ackTimeout, timeout, 0}}, ackTimeout, 0, false},
		"the stream is full":           {[]event{{0, full, 0}, {ackTimeout, full, 0}}, ackTimeout, 0, false},
		"a message is at fault":        {[]event{{0, &jetstream.APIError{Code: 400, ErrorCode: 10054}, 0}, {ackTimeout, timeout, 0}}, ackTimeout, 0, false},
		"there is a new connection":    {[]event{{0, timeout, 0}, {ackTimeout, timeout, 0}}, ackTimeout, 1, false},
		"one fails on each connection": {[]event{{0, timeout, 0}, {ackTimeout, timeout, 1}}, ackTimeout, 1, false},
		"nothing was sent for a while": {[]event{{0, timeout, 0}, {ackTimeout, timeout, 0}}, ackTimeout + unconfirmedFor, 0, false},
		"one fails now and then":       {[]event{{0, timeout, 0}, {unconfirmedFor, timeout, 0}}, unconfirmedFor, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c confirmations
			for _, e := range test.events {
				c.record(e.err, e.connection, began.Add(e.after))
			}
			require.Equal(t, test.want, c.missing(test.connection, began.Add(test.at)))
		})
	}
}
