package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

type simulateCmd struct {
	config.Stream
	Devices         int           `default:"10" help:"How many devices." placeholder:"N"`
	FirstHardwareID hardwareID    `default:"dev:900000000000001" help:"Serial of the first unit; the others count up from it." name:"first-hardware-id" placeholder:"dev:N"`
	Mode            simulate.Mode `default:"backfill" enum:"live,backfill,burst,clock-skew,duplicate,missing-metric,weak-signal" help:"${enum}."`
	History         *span         `help:"How much of the past is sent, as in 90d, 24h or 30m; 24h by default, 72h in burst mode, nothing in live mode." placeholder:"LENGTH"`
	Until           *instant      `help:"End of the history; the start of this hour by default. The same seed and end give the same bytes." placeholder:"TIME"`
	Seed            uint64        `default:"1" help:"What all randomness comes from." placeholder:"S"`
	Rate            float64       `help:"Most uploads a second; as fast as they are taken by default, in live mode one upload of each device every 5 minutes." placeholder:"R"`
	Duration        *span         `help:"End after this time, as in 10m or 30s; without it when the history is sent, in live mode never." placeholder:"LENGTH"`
	To              string        `default:"stdout" help:"Where uploads go: stdout, nats (see --nats-url), or the URL of a receiver (see --ingest-key)." placeholder:"WHERE"`
	IngestKey       string        `help:"Credential of the receiver, rsi_..." name:"ingest-key" placeholder:"KEY" setting:""`
	NATSURL         string        `help:"URL of NATS with JetStream, nats://host:4222." name:"nats-url" placeholder:"URL" setting:""`
}

// Help is what --help adds.
func (*simulateCmd) Help() string {
	return `Modes:
  live            the newest measurement of each device in turn, until interrupted
  backfill        everything in order, a day of one device an upload
  burst           a fleet that was offline comes back at once: oldest first, newest first, mixed, some twice
  clock-skew      clocks that are minutes or hours wrong, that drift, or believe in 1970
  duplicate       uploads come again, overlap and lose their order; the readings are those of backfill
  missing-metric  one metric in ten is missing, and one altogether in every third device
  weak-signal     uploads come hours late, newest first at times; the readings are those of backfill`
}

// Run carries the command out.
func (c *simulateCmd) Run(ctx context.Context, t *terminal) error {
	options, err := c.options(time.Now())
	if err != nil {
		return err
	}
	sink, shut, err := c.sink(ctx, t)
	if err != nil {
		return err
	}
	defer shut()
	if c.History != nil || c.Mode != simulate.Live {
		_, _ = fmt.Fprintf(t.stderr, "simulate: %s of %d devices up to %s, seed %d\n",
			c.Mode, c.Devices, roomsensor.FormatTime(options.Until), c.Seed)
	}
	return app.Simulate(ctx, options, sink, t.stderr)
}

// options are what the flags say, held to the rules that one flag alone does not show.
func (c *simulateCmd) options(now time.Time) (app.SimulateOptions, error) {
	o := app.SimulateOptions{
		Fleet:    simulate.Fleet{Seed: c.Seed, Devices: c.Devices, FirstHardwareID: string(c.FirstHardwareID)},
		Mode:     c.Mode,
		History:  c.history(),
		Until:    now.UTC().Truncate(time.Hour),
		Rate:     c.Rate,
		Duration: c.Duration.orZero(),
	}
	if c.Mode == simulate.Live {
		o.Until = now.UTC().Truncate(roomsensor.BucketLength) // Without a gap before what is live.
	}
	if c.Until != nil {
		o.Until = time.Time(*c.Until)
	}
	if err := o.Fleet.Validate(); err != nil {
		return o, usagef("--devices, --first-hardware-id: %v.", err)
	}
	switch from := o.Until.Add(-o.History); {
	case !(c.Rate >= 0): // Also what is no number.
		return o, usagef("--rate must be a number of uploads a second that is not negative.")
	case from.Before(roomsensor.MeasuredFrom):
		return o, usagef("--history reaches back to %s; readings before %s are not taken.",
			roomsensor.FormatTime(from), roomsensor.FormatTime(roomsensor.MeasuredFrom))
	}
	return o, nil
}

// The lengths of a history that is not given.
const (
	usualHistory = 24 * time.Hour
	burstHistory = 72 * time.Hour
)

func (c *simulateCmd) history() time.Duration {
	switch {
	case c.History != nil:
		return c.History.orZero()
	case c.Mode == simulate.Live:
		return 0
	case c.Mode == simulate.Burst:
		return burstHistory
	}
	return usualHistory
}

// sink is where uploads go, and what closes it.
func (c *simulateCmd) sink(ctx context.Context, t *terminal) (sink app.UploadSink, shut func(), err error) {
	nothing := func() {}
	switch {
	case c.To == "stdout":
		return app.NewLineSink(t.stdout), nothing, nil
	case c.To == "nats":
		queue := config.Queue{NATSURL: c.NATSURL}
		if err := queue.Validate(); err != nil {
			return nil, nil, err
		}
		return app.OpenQueueSink(ctx, queue, c.Stream)
	case !strings.HasPrefix(c.To, "http://") && !strings.HasPrefix(c.To, "https://"):
		return nil, nil, usagef("--to must be stdout, nats, or the URL of a receiver such as http://127.0.0.1:8081.")
	}
	if _, _, ok := roomsensor.ParseKey(roomsensor.IngestKey, c.IngestKey); !ok {
		return nil, nil, usagef("--ingest-key (INGEST_KEY) must be the receiver's credential, rsi_<id>_<secret>. " +
			"roomsensor ingest-key create makes one.")
	}
	return app.NewReceiverSink(c.To, c.IngestKey), nothing, nil
}

// span is a length of time: a whole number above 0 and s, m, h or d.
type span time.Duration

var spanUnits = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}

// UnmarshalText reads a length.
func (v *span) UnmarshalText(text []byte) error {
	wrong := fmt.Errorf("%q is not a length of time. Write a whole number above 0 and s, m, h or d, "+
		"as in 30s, 90m, 24h or 7d", text)
	if len(text) == 0 {
		return wrong
	}
	unit, ok := spanUnits[text[len(text)-1]]
	n, err := strconv.ParseUint(string(text[:len(text)-1]), 10, 32)
	if !ok || err != nil || n == 0 || n > uint64(longestSpan/unit) { //nolint:gosec // Both are above 0.
		return wrong
	}
	*v = span(time.Duration(n) * unit)
	return nil
}

// longestSpan is longer than any history that is plausible.
const longestSpan = 100 * 365 * 24 * time.Hour

func (v *span) orZero() time.Duration {
	if v == nil {
		return 0
	}
	return time.Duration(*v)
}
