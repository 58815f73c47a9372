package workload

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/bench/env"
	"roomsensor/internal/queue"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/proctest"
)

// The version of Telegraf and its build tags.
const (
	telegrafVersion = "v1.30.0"
	telegrafTags    = "custom inputs.nats_consumer parsers.json outputs.postgresql"
)

// telegrafTable is the table of Telegraf. The unit is in the subject of the message. It has the same index as
// roomsensor's table, but not a unique one. Telegraf stores the time of the measurement as bucket_at.
const telegrafTable = `
CREATE TABLE readings (bucket_at timestamptz NOT NULL, subject text,
    co2_ppm double precision, temp_c double precision, humidity_pct double precision, lux double precision,
    spl_db double precision);
SELECT create_hypertable('readings', by_range('bucket_at', INTERVAL '7 days'), create_default_indexes => false);
CREATE INDEX readings_subject_bucket_idx ON readings (subject, bucket_at)`

// telegrafConfig writes as soon as a batch is full, and otherwise as often as Telegraf can. The number of undelivered
// messages fits in its buffer.
const telegrafConfig = `
[agent]
  interval = "10s"
  flush_interval = "100ms"
  metric_batch_size = 10000
  metric_buffer_limit = 1000000
  omit_hostname = true
[[inputs.nats_consumer]]
  servers = [%q]
  subjects = []
  jetstream_subjects = ["uploads.>"]
  max_undelivered_messages = 1000
  name_override = "readings"
  data_format = "json"
  json_query = "readings"
  json_time_key = "measured_at"
  json_time_format = "2006-01-02T15:04:05Z07:00"
[[outputs.postgresql]]
  connection = %q
  timestamp_column_name = "bucket_at"
  timestamp_column_type = "timestamp with time zone"
  create_templates = []
  add_column_templates = []
`

// telegraf is the baseline of W6: a stream, Telegraf, and a database of its own.
type telegraf struct {
	suite  *Suite
	queue  *env.Queue
	pool   *pgxpool.Pool
	oldest time.Time // start of its readings
}

func (s *Suite) openTelegraf(ctx context.Context) (*telegraf, error) {
	t := &telegraf{suite: s, oldest: s.Fleet.From()}
	program, err := s.Install(ctx, "github.com/influxdata/telegraf", telegrafVersion, "cmd/telegraf", telegrafTags)
	if err != nil {
		return nil, err
	}
	address, err := s.CreateDatabase(ctx, s.Server.URL)
	if err != nil {
		return nil, err
	}
	if t.pool, err = s.Connect(ctx, address); err != nil {
		return nil, err
	}
	if _, err := t.pool.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS timescaledb"); err != nil {
		return nil, fmt.Errorf("creating the extension: %w", err)
	}
	if _, err := t.pool.Exec(ctx, telegrafTable); err != nil {
		return nil, fmt.Errorf("creating Telegraf's table: %w", err)
	}
	if t.queue, err = s.OpenQueue(ctx, "nats-telegraf"); err != nil {
		return nil, err
	}
	config := program + ".conf"
	if err := os.WriteFile(config, fmt.Appendf(nil, telegrafConfig, t.queue.URL, address), 0o600); err != nil {
		return nil, fmt.Errorf("configuring Telegraf: %w", err)
	}
	log, err := s.LogFile("telegraf")
	if err != nil {
		return nil, err
	}
	args := []string{"--config", config, "--quiet"}
	process, err := proctest.Start(proctest.Command{Path: program, Args: args, Log: log})
	if err != nil {
		return nil, err
	}
	s.OnClose(func(context.Context) error { process.Kill(); return nil })
	return t, nil
}

// rate returns the readings per second from the stream to the commit. Messages are published in order, so that Telegraf
// writes the last one last.
func (t *telegraf) rate(ctx context.Context) (float64, error) {
	s := t.suite
	window := roomsensor.Window{From: t.oldest.AddDate(0, 0, -s.UploadDays), To: t.oldest}
	t.oldest = window.From
	var messages []queue.Message
	for n, upload := range s.Fleet.Uploads(window, UploadPart) {
		messages = append(messages, queue.Message{HardwareID: s.Fleet.HardwareID(n % s.Fleet.Devices), Text: upload})
	}
	began := time.Now()
	if _, err := t.queue.Publish(ctx, messages); err != nil {
		return 0, err
	}
	if err := t.await(ctx, window); err != nil {
		return 0, err
	}
	took := time.Since(began)
	rows := len(messages) * UploadReadings
	return float64(rows) / took.Seconds(), env.CheckStored(ctx, t.pool, window, rows)
}

// await waits for the last reading of the last message.
func (t *telegraf) await(ctx context.Context, w roomsensor.Window) error {
	const interval = 10 * time.Millisecond // Precision of the end of a round.
	fleet := &t.suite.Fleet
	last := fleet.Reading(fleet.Devices-1, w.To.Add(-roomsensor.BucketLength))
	return retry.Until(ctx, interval, func(ctx context.Context) (stored bool, err error) {
		err = t.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM readings WHERE subject = $1 AND bucket_at = $2)",
			"uploads."+fleet.HardwareID(fleet.Devices-1), last.MeasuredAt).Scan(&stored)
		return stored, err //nolint:wrapcheck // The query is in the text of the error.
	})
}
