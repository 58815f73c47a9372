package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/bench/env"
	"roomsensor/bench/report"
	"roomsensor/bench/workload"
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

// buildTelegraf compiles Telegraf from its module into a directory.
func buildTelegraf(ctx context.Context, dir string) (path string, err error) {
	build := exec.CommandContext(ctx, "go", "install", "-tags", telegrafTags,
		"github.com/influxdata/telegraf/cmd/telegraf@"+telegrafVersion)
	build.Dir = dir // Outside this module, whose requirements it does not share.
	build.Env = append(os.Environ(), "GOBIN="+dir, "CGO_ENABLED=0", "GOFLAGS=-mod=mod")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building Telegraf: %w: %s", err, output)
	}
	return filepath.Join(dir, "telegraf"), nil
}

// telegrafTable is the table of Telegraf. The unit is in the subject of the message. It has the same index as
// roomsensor's table, but not a unique one.
const telegrafTable = `
CREATE TABLE readings (time timestamptz NOT NULL, subject text,
    co2_ppm double precision, temp_c double precision, humidity_pct double precision, lux double precision,
    spl_db double precision);
SELECT create_hypertable('readings', by_range('time', INTERVAL '7 days'), create_default_indexes => false);
CREATE INDEX readings_subject_time_idx ON readings (subject, time)`

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
  timestamp_column_type = "timestamp with time zone"
  create_templates = []
  add_column_templates = []
`

// startTelegraf runs Telegraf from a stream into telegrafTable.
func startTelegraf(path, nats, database string, log io.Writer) (*proctest.Process, error) {
	file := filepath.Join(filepath.Dir(path), "telegraf.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, telegrafConfig, nats, database), 0o600); err != nil {
		return nil, fmt.Errorf("configuring Telegraf: %w", err)
	}
	return proctest.Start(proctest.Command{Path: path, Args: []string{"--config", file, "--quiet"}, Log: log})
}

// telegraf is a stream, Telegraf, and a database of its own.
type telegraf struct {
	suite *workload.Suite
	queue *env.Queue
	pool  *pgxpool.Pool
	past  time.Time // start of its readings
}

func openTelegraf(ctx context.Context, s *workload.Suite) (*telegraf, error) {
	t := &telegraf{suite: s, past: s.Fleet.From()}
	s.Logf("building Telegraf %s", telegrafVersion)
	path, err := buildTelegraf(ctx, s.Dir)
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
	log, err := s.LogFile("telegraf")
	if err != nil {
		return nil, err
	}
	process, err := startTelegraf(path, t.queue.URL, address, log)
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
	window := roomsensor.Window{From: t.past.AddDate(0, 0, -s.UploadDays), To: t.past}
	t.past = window.From
	var messages []queue.Message
	for n, upload := range s.Fleet.Uploads(window, workload.UploadPart) {
		messages = append(messages, queue.Message{HardwareID: s.Fleet.HardwareID(n % s.Fleet.Devices), Text: upload})
	}
	began := time.Now()
	if _, err := t.queue.Publish(ctx, messages); err != nil {
		return 0, err
	}
	if err := t.await(ctx, window); err != nil {
		return 0, err
	}
	rows := len(messages) * workload.UploadReadings
	took := time.Since(began)
	return float64(rows) / took.Seconds(), t.check(ctx, window, rows)
}

// await waits for the last reading of the last message.
func (t *telegraf) await(ctx context.Context, w roomsensor.Window) error {
	last := t.suite.Fleet.Devices - 1
	reading := t.suite.Fleet.Reading(last, w.To.Add(-roomsensor.BucketLength))
	return retry.Until(ctx, pollInterval, func(ctx context.Context) (stored bool, err error) {
		err = t.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM readings WHERE subject = $1 AND time = $2)",
			"uploads."+t.suite.Fleet.HardwareID(last), reading.MeasuredAt).Scan(&stored)
		return stored, err //nolint:wrapcheck // Wrapped by the query.
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

// pollInterval is the precision of the end of a round.
const pollInterval = 10 * time.Millisecond

// compareTelegraf adds W6: uploads from the receiver to the commit, compared with Telegraf from the stream to the
// commit.
func compareTelegraf(ctx context.Context, s *workload.Suite) error {
	t, err := openTelegraf(ctx, s)
	if err != nil {
		return err
	}
	ours, theirs, err := s.Compare(ctx, s.UploadRate, t.rate)
	if err != nil {
		return err
	}
	s.Add(report.Row{
		ID: "W6", Workload: fmt.Sprintf("upload to commit, %d readings an upload", workload.UploadReadings), Unit: "rows/s",
		Ours: ours, Against: "Telegraf " + telegrafVersion, Baseline: theirs, Minimum: 1, Target: 1.5,
	})
	return nil
}
