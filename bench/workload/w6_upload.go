package workload

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"roomsensor/bench/env"
	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/harness"
)

const (
	day = 24 * time.Hour
	// UploadPart is the period that one upload covers, as after a day offline.
	UploadPart = day
	// UploadReadings is the number of readings per upload.
	UploadReadings = BucketsPerDay
)

// openQueue starts a NATS server, a receiver and a worker.
func (s *Suite) openQueue(ctx context.Context) (err error) {
	if s.queue, err = s.OpenQueue(ctx, "nats"); err != nil {
		return err
	}
	if s.worker, err = s.Start(ctx, "worker", s.queue, "ingest", "--no-receiver"); err != nil {
		return err
	}
	if s.receiver, err = s.Start(ctx, "receiver", s.queue, "ingest", "--no-worker"); err != nil {
		return err
	}
	key, err := harness.InsertIngestKey(ctx, s.Pool, s.team)
	if err != nil {
		return err
	}
	s.Sender = &Sender{
		Client: load.NewClient(), URL: s.receiver.URL() + "/uploads", Bearer: "Bearer " + key,
		Status: http.StatusAccepted,
	}
	// The receiver caches the credential with the first upload.
	return s.Sender.Post(ctx, s.Fleet.Upload(0, s.older(roomsensor.BucketLength)))
}

// older returns the window before the oldest stored readings.
func (s *Suite) older(length time.Duration) roomsensor.Window {
	w := roomsensor.Window{From: s.oldest.Add(-length), To: s.oldest}
	s.oldest = w.From
	return w
}

// upload is W6: new readings from the receiver through the stream to the commit.
func (s *Suite) upload(ctx context.Context) error {
	ours, _, err := s.Compare(ctx, s.uploadRate, nil)
	if err != nil {
		return err
	}
	s.rate = ours.Median()
	s.Add(report.Row{
		ID: "W6", Workload: fmt.Sprintf("upload to commit, %d readings an upload", UploadReadings), Unit: "rows/s",
		Ours: ours,
	})
	return nil
}

// uploadRate returns the readings per second of a round of W6.
func (s *Suite) uploadRate(ctx context.Context) (float64, error) {
	window := s.older(time.Duration(s.UploadDays) * day)
	uploads := s.Fleet.Uploads(window, UploadPart)
	began := time.Now()
	if err := s.Sender.PostAll(ctx, uploads); err != nil {
		return 0, err
	}
	if err := s.queue.AwaitDrained(ctx); err != nil {
		return 0, err
	}
	took := time.Since(began)
	rows := len(uploads) * UploadReadings
	return float64(rows) / took.Seconds(), env.CheckStored(ctx, s.Pool, window, rows)
}

// uploadsAt returns a function that sends uploads at a share of the rate of W6.
func (s *Suite) uploadsAt(ctx context.Context, share float64, d time.Duration) func() error {
	rate := s.rate * share / float64(UploadReadings)
	days := int(rate*d.Seconds())/s.Fleet.Devices + 1
	uploads := s.Fleet.Uploads(s.older(time.Duration(days)*day), UploadPart)
	return func() error {
		_, err := load.Open(ctx, rate, d, func(ctx context.Context, _, n int) error { return s.Sender.Post(ctx, uploads[n]) })
		return err
	}
}
