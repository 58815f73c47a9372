package fleet

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

const (
	// lateReadings is the number of readings in an upload of a late device.
	lateReadings = 500
	// twiceOneIn is the share of the late devices that send everything twice.
	twiceOneIn = 10
)

// lateUploads returns what a late device sends when it comes back, in the wire format: oldest first, or newest first,
// and some of the devices twice.
func (p *plan) lateUploads(device int) (bodies [][]byte) {
	var readings []roomsensor.Measurement
	for round := 1 - p.missed; round <= 0; round++ {
		readings = append(readings, p.measurement(device, round))
	}
	if device%2 == 1 {
		slices.Reverse(readings)
	}
	for part := range slices.Chunk(readings, lateReadings) {
		bodies = append(bodies, p.message(device, 0, part))
	}
	if device%twiceOneIn == 0 {
		bodies = append(bodies, bodies...)
	}
	return bodies
}

// message returns an upload of readings of a device in the wire format, as it is sent in a round.
func (p *plan) message(device, round int, readings []roomsensor.Measurement) []byte {
	u := simulate.Upload{
		HardwareID: fmt.Sprintf(hardwareFormat, device), SentAt: p.bucket(round + 1), Firmware: "2.4.1",
		Signal: &simulate.Signal{RSSI: -87, Bars: 2}, Readings: readings,
	}
	return u.AppendJSON(nil)
}

// sendLate sends all that the late devices have missed, as fast as the receiver takes it.
func (l *load) sendLate(ctx context.Context, start time.Time) error {
	if err := retry.Sleep(ctx, time.Until(start.Add(l.options.LateAfter))); err != nil {
		return fmt.Errorf("waiting for the late devices: %w", err)
	}
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(l.options.Senders)
	for device := range l.plan.late {
		for _, body := range l.plan.lateUploads(device) {
			group.Go(func() error { return l.postLate(ctx, device, body) })
		}
	}
	err := group.Wait()
	l.lateTook = time.Since(began)
	l.Logf("the late devices have sent everything; %d requests had to wait", l.refused.Load())
	return err //nolint:wrapcheck // Wrapped by postLate.
}

// postLate sends a body until it is confirmed. A receiver may ask to send it later.
func (l *load) postLate(ctx context.Context, device int, body []byte) error {
	credential := l.credentials[l.plan.team(device)]
	for {
		status, after, err := l.lateSender.post(credential, body)
		switch {
		case err != nil:
			return err
		case status == http.StatusAccepted:
			l.accepted.Add(1)
			return nil
		case after == 0:
			return fmt.Errorf("posting what a device missed: status %d", status)
		}
		l.refused.Add(1)
		if err := retry.Sleep(ctx, after); err != nil {
			return fmt.Errorf("posting what a device missed: %w", err)
		}
	}
}
