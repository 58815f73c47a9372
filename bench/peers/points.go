package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"roomsensor/bench/load"
	"roomsensor/bench/workload"
	"roomsensor/internal/roomsensor"
)

// pointWriter writes the readings of W11 to a new InfluxDB, one per request.
type pointWriter struct {
	peer
	suite  *workload.Suite
	window roomsensor.Window
	sent   atomic.Int64
}

// points starts the baseline of W11. It syncs each write before it acknowledges it, and its points are then readable.
func points(ctx context.Context, s *workload.Suite) (*workload.Rival, error) {
	p, err := startInfluxDB(ctx, s)
	if err != nil {
		return nil, err
	}
	w := &pointWriter{peer: p, suite: s, window: roomsensor.Window{
		From: s.Fleet.Until.Add(-workload.UploadPart), To: s.Fleet.Until,
	}}
	return &workload.Rival{Name: p.String(), Run: w.rate, Stop: p.Kill}, nil
}

// rate returns the points per second of a round.
func (w *pointWriter) rate(ctx context.Context) (float64, error) {
	client := load.NewClient()
	defer client.CloseIdle()
	sender := workload.Sender{Client: client, URL: w.WriteURL(), Status: http.StatusNoContent}
	result, err := load.Closed(ctx, workload.SingleConnections, w.suite.Time,
		func(ctx context.Context, _, _ int) error { return sender.Post(ctx, w.next()) })
	if err != nil {
		return 0, err
	}
	stored, err := w.Count(ctx, w.window)
	if err != nil || stored != int(w.sent.Load()) {
		return 0, fmt.Errorf("%w: %d of %d points are stored: %w", errPeer, stored, w.sent.Load(), err)
	}
	return result.Rate(), nil
}

// next returns the next point, device by device and bucket by bucket, as the uploads of W11.
func (w *pointWriter) next() []byte {
	n, f, devices := int(w.sent.Add(1))-1, &w.suite.Fleet, w.suite.Teams*w.suite.TeamDevices
	device, at := n%devices, w.window.From.Add(time.Duration(n/devices)*roomsensor.BucketLength)
	reading := f.Reading(device, at)
	return AppendLine(nil, f.DeviceID(device), at, &reading.Values)
}
