package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"roomsensor/client"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
	"roomsensor/internal/simulate/send"
	"roomsensor/internal/wording"
)

type simulateCmd struct {
	config.Stream
	Devices         int              `default:"10" help:"Number of devices." placeholder:"N"`
	FirstHardwareID cli.HardwareID   `default:"dev:900000000000001" help:"Hardware id of the first unit; the others count up from it." name:"first-hardware-id" placeholder:"dev:N"`
	Mode            simulate.Mode    `default:"backfill" enum:"live,backfill,burst,clock-skew,duplicate,missing-metric,weak-signal" help:"Mode, as described above." placeholder:"MODE"`
	History         *config.Duration `help:"How much of the past is sent, for example 90d, 24h or 30m." implied:"24h; 72h in burst mode; nothing in live mode" placeholder:"DURATION"`
	Until           *cli.Instant     `help:"End of the history. The same seed and end give the same bytes." implied:"the start of this hour" placeholder:"TIME"`
	Seed            uint64           `default:"1" help:"Seed of the random numbers." placeholder:"N"`
	Rate            float64          `help:"Maximum of uploads per second." implied:"unlimited; in live mode, one upload per device every 5 minutes" placeholder:"N"`
	Duration        *config.Duration `help:"End after this time, for example 10m or 30s." implied:"until the history is sent; in live mode, unlimited" placeholder:"DURATION"`
	To              string           `default:"stdout" help:"Destination: stdout, nats (see --nats-url), or the URL of a receiver (see --ingest-key)." placeholder:"DESTINATION"`
	IngestKey       config.Secret    `help:"Ingest key for the receiver, rsi_<id>_<secret>." name:"ingest-key" placeholder:"KEY" setting:""`
	NATSURL         config.Secret    `help:"URL of NATS with JetStream, nats://host:4222." name:"nats-url" placeholder:"URL" setting:""`
	NATSCA          string           `help:"File with the certificates of the CAs of NATS." implied:"those of the system" name:"nats-ca" placeholder:"FILE" setting:""`
}

// Help returns the part of --help about modes.
func (*simulateCmd) Help() string {
	return `Modes:
  live            the newest measurement of each device in turn, until interrupted
  backfill        everything in order, one day of one device per upload
  burst           all devices reconnect at once after an outage: oldest first, newest first, mixed, some twice
  clock-skew      clocks that are minutes or hours wrong, that drift, or that show 1970
  duplicate       uploads are repeated, overlap and arrive out of order; same readings as backfill
  missing-metric  one metric in ten is missing, and one metric never occurs in every third device
  weak-signal     uploads arrive hours late, sometimes newest first; same readings as backfill`
}

// Run sends the uploads.
func (c *simulateCmd) Run(ctx context.Context, t *cli.Terminal) error {
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
		_, _ = fmt.Fprintf(t.Stderr, "simulate: %s of %s up to %s, seed %d\n",
			c.Mode, wording.Plural(c.Devices, "device"), roomsensor.FormatTime(options.Until), c.Seed)
	}
	return send.Run(ctx, options, sink, t.Stderr)
}

// options converts the flags and checks the rules that concern several of them.
func (c *simulateCmd) options(now time.Time) (send.Options, error) {
	o := send.Options{
		Fleet:    simulate.Fleet{Seed: c.Seed, Devices: c.Devices, FirstHardwareID: string(c.FirstHardwareID)},
		Mode:     c.Mode,
		History:  c.history(),
		Until:    now.UTC().Truncate(time.Hour),
		Rate:     c.Rate,
		Duration: cli.OrZero(c.Duration),
	}
	if c.Mode == simulate.Live {
		o.Until = now.UTC().Truncate(roomsensor.BucketLength) // No gap before the live uploads.
	}
	if c.Until != nil {
		o.Until = time.Time(*c.Until)
	}
	if err := o.Fleet.Validate(); err != nil {
		return o, cli.Usagef("--devices, --first-hardware-id: %v.", err)
	}
	switch from := o.Until.Add(-o.History); {
	case !(c.Rate >= 0): // Also true for NaN.
		return o, cli.Usagef("--rate must be 0 or more uploads per second.")
	case from.Before(roomsensor.MeasuredFrom):
		return o, cli.Usagef("--history goes back to %s; readings before %s are not accepted.",
			roomsensor.FormatTime(from), roomsensor.FormatTime(roomsensor.MeasuredFrom))
	}
	return o, nil
}

// The default lengths of the history.
const (
	defaultHistory = 24 * time.Hour
	burstHistory   = 72 * time.Hour
)

func (c *simulateCmd) history() time.Duration {
	switch {
	case c.History != nil:
		return cli.OrZero(c.History)
	case c.Mode == simulate.Live:
		return 0
	case c.Mode == simulate.Burst:
		return burstHistory
	}
	return defaultHistory
}

// sink returns the destination of the uploads and a function that closes it.
func (c *simulateCmd) sink(ctx context.Context, t *cli.Terminal) (sink send.Sink, shut func(), err error) {
	noop := func() {}
	switch {
	case c.To == "stdout":
		return send.NewLineSink(t.Stdout), noop, nil
	case c.To == "nats":
		queue := config.Queue{NATSURL: c.NATSURL, NATSCA: c.NATSCA}
		if err := queue.Validate(); err != nil {
			return nil, nil, err
		}
		return send.OpenQueueSink(ctx, queue, c.Stream)
	case !strings.HasPrefix(c.To, "http://") && !strings.HasPrefix(c.To, "https://"):
		return nil, nil, cli.Usagef("--to must be stdout, nats, or the URL of a receiver such as http://127.0.0.1:8081.")
	}
	if _, _, ok := roomsensor.ParseKey(roomsensor.IngestKey, string(c.IngestKey)); !ok {
		return nil, nil, cli.Usagef("--ingest-key (INGEST_KEY) must be a complete ingest key, rsi_<id>_<secret>. " +
			"Create one with 'roomsensor ingest-key create'.")
	}
	receiver, err := client.NewReceiver(strings.TrimSuffix(c.To, "/uploads"), string(c.IngestKey))
	if err != nil {
		return nil, nil, cli.Usagef("--to: %v.", err)
	}
	return send.NewReceiverSink(receiver), noop, nil
}
