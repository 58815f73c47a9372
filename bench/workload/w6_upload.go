package workload

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"roomsensor/bench/bar"
	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

const (
	day = 24 * time.Hour
	// uploadPart is what a device sends in one upload: a day offline.
	uploadPart     = day
	uploadReadings = bucketsADay
)

// openQueue starts a NATS server, a receiver and a worker.
func (s *suite) openQueue(ctx context.Context) (err error) {
	if s.queue, err = s.OpenQueue(ctx, "nats"); err != nil {
		return err
	}
	if s.worker, err = s.Serve(ctx, "worker", s.queue.Server, "ingest", "--no-receiver"); err != nil {
		return err
	}
	if s.receiver, err = s.Serve(ctx, "receiver", s.queue.Server, "ingest", "--no-worker"); err != nil {
		return err
	}
	key, err := s.IngestKey(ctx, s.team)
	if err != nil {
		return err
	}
	s.sender = &sender{
		client: load.NewClient(senderConnections), url: s.receiver.URL + "/uploads", bearer: "Bearer " + key,
		wanted: http.StatusAccepted,
	}
	// A receiver looks for credentials that it does not know; from then on it has this one.
	return s.sender.post(ctx, s.fleet.Upload(0, s.older(roomsensor.BucketLength)))
}

// older is a window of which nothing is stored yet, before all that is.
func (s *suite) older(length time.Duration) roomsensor.Window {
	w := roomsensor.Window{From: s.past.Add(-length), To: s.past}
	s.past = w.From
	return w
}

// upload is W6: uploads from the receiver through the stream to the commit, all of them new readings.
func (s *suite) upload(ctx context.Context) error {
	var theirs side // None where peers are left out.
	if s.Peers {
		t, err := s.openTelegraf(ctx)
		if err != nil {
			return err
		}
		theirs = t.rate
	}
	ours, bars, err := s.contest(ctx, s.uploadRate, theirs)
	if err != nil {
		return err
	}
	s.rate = ours.Median()
	s.add(report.Row{
		ID: "W6", Workload: fmt.Sprintf("upload to commit, %d readings an upload", uploadReadings), Unit: "rows/s",
		Ours: ours, Against: "Telegraf " + bar.TelegrafVersion, Bar: bars, Reach: 1, Aim: 1.5,
	})
	return s.profile(ctx, "w6", s.uploadRate, s.receiver.Ops, s.worker.Ops)
}

func (s *suite) uploadRate(ctx context.Context) (float64, error) {
	window := s.older(time.Duration(s.UploadDays) * day)
	uploads := s.fleet.Uploads(window, uploadPart)
	began := time.Now()
	if err := s.sender.postAll(ctx, uploads); err != nil {
		return 0, err
	}
	if err := s.queue.Drained(ctx); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return float64(len(uploads)*uploadReadings) / took.Seconds(), s.checkStored(ctx, window)
}

// checkStored counts the readings of the fleet in a window, of which every device sent all.
func (s *suite) checkStored(ctx context.Context, w roomsensor.Window) error {
	want := s.fleet.Devices * int(w.To.Sub(w.From)/roomsensor.BucketLength)
	var stored int
	err := s.Pool.QueryRow(ctx, "SELECT count(*) FROM readings WHERE bucket_at >= $1 AND bucket_at < $2", w.From, w.To).
		Scan(&stored)
	if err != nil || stored != want {
		return fmt.Errorf("%d of %d readings are stored: %w", stored, want, err)
	}
	return nil
}

// under makes, and then runs, uploads at a share of the rate that W6 measured, for some time.
func (s *suite) under(ctx context.Context, share float64, d time.Duration) func() error {
	rate := s.rate * share / float64(uploadReadings)
	days := int(rate*d.Seconds())/s.fleet.Devices + 1
	uploads := s.fleet.Uploads(s.older(time.Duration(days)*day), uploadPart)
	return func() error {
		_, err := load.Open(ctx, rate, d, func(ctx context.Context, _, n int) error { return s.sender.post(ctx, uploads[n]) })
		return err
	}
}
