package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/bench/bar"
	"roomsensor/bench/ground"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

// telegraf is a stream, Telegraf behind it, and a database of its own.
type telegraf struct {
	suite *suite
	queue *ground.Queue
	pool  *pgxpool.Pool
	past  time.Time // where its readings begin
}

func (s *suite) openTelegraf(ctx context.Context) (*telegraf, error) {
	t := &telegraf{suite: s, past: s.fleet.From()}
	s.Say("building Telegraf %s", bar.TelegrafVersion)
	path, err := bar.BuildTelegraf(ctx, s.Dir())
	if err != nil {
		return nil, err
	}
	address, err := s.EmptyDatabase(ctx)
	if err != nil {
		return nil, err
	}
	if t.pool, err = s.Connect(ctx, address); err != nil {
		return nil, err
	}
	if _, err := t.pool.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS timescaledb"); err != nil {
		return nil, fmt.Errorf("creating the extension: %w", err)
	}
	if _, err := t.pool.Exec(ctx, bar.TelegrafTable); err != nil {
		return nil, fmt.Errorf("making Telegraf's table: %w", err)
	}
	if t.queue, err = s.OpenQueue(ctx, "nats-telegraf"); err != nil {
		return nil, err
	}
	log, err := s.LogFile("telegraf")
	if err != nil {
		return nil, err
	}
	process, err := bar.StartTelegraf(path, t.queue.Server.URL, address, log)
	if err != nil {
		return nil, err
	}
	s.Push(func() error { process.Kill(); return nil })
	return t, nil
}

// rate is the readings a second from the stream to the commit. Messages go straight into the stream, in their order, so
// that the last one is what Telegraf writes last.
func (t *telegraf) rate(ctx context.Context) (float64, error) {
	s := t.suite
	window := roomsensor.Window{From: t.past.AddDate(0, 0, -s.UploadDays), To: t.past}
	t.past = window.From
	var messages []queue.Message
	for n, upload := range s.fleet.Uploads(window, uploadPart) {
		messages = append(messages, queue.Message{HardwareID: s.fleet.HardwareID(n % s.fleet.Devices), Text: upload})
	}
	began := time.Now()
	if _, err := t.queue.Publish(ctx, messages); err != nil {
		return 0, err
	}
	if err := t.await(ctx, window); err != nil {
		return 0, err
	}
	rows := len(messages) * uploadReadings
	took := time.Since(began)
	return float64(rows) / took.Seconds(), t.check(ctx, window, rows)
}

// await waits for the last reading of the last message.
func (t *telegraf) await(ctx context.Context, w roomsensor.Window) error {
	last := t.suite.fleet.Devices - 1
	reading := t.suite.fleet.Reading(last, w.To.Add(-roomsensor.BucketLength))
	return ground.Until(ctx, func() (there bool, err error) {
		err = t.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM readings WHERE subject = $1 AND time = $2)",
			"uploads."+t.suite.fleet.HardwareID(last), reading.MeasuredAt).Scan(&there)
		return there, err //nolint:wrapcheck // Until wraps it.
	})
}

func (t *telegraf) check(ctx context.Context, w roomsensor.Window, want int) error {
	var stored int
	err := t.pool.QueryRow(ctx, "SELECT count(*) FROM readings WHERE time >= $1 AND time < $2", w.From, w.To).Scan(&stored)
	if err != nil || stored != want {
		return fmt.Errorf("counting what Telegraf stored: %d of %d readings: %w", stored, want, err)
	}
	return nil
}
