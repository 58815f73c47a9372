package bar

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"roomsensor/internal/procs"
)

// The version of Telegraf, and what of it is built in.
const (
	TelegrafVersion = "v1.30.0"
	telegrafTags    = "custom inputs.nats_consumer parsers.json outputs.postgresql"
)

// BuildTelegraf compiles Telegraf into a directory, from its module.
func BuildTelegraf(ctx context.Context, dir string) (path string, err error) {
	build := exec.CommandContext(ctx, "go", "install", "-tags", telegrafTags,
		"github.com/influxdata/telegraf/cmd/telegraf@"+TelegrafVersion)
	build.Dir = dir // Outside of this module, whose requirements it does not share.
	build.Env = append(os.Environ(), "GOBIN="+dir, "CGO_ENABLED=0", "GOFLAGS=-mod=mod")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building Telegraf: %w: %s", err, said)
	}
	return filepath.Join(dir, "telegraf"), nil
}

// TelegrafTable is where Telegraf puts readings: the unit is in the subject of the message. There is an index as on the
// service's table, but nothing keeps a reading from being there twice.
const TelegrafTable = `
CREATE TABLE readings (time timestamptz NOT NULL, subject text,
    co2_ppm double precision, temp_c double precision, humidity_pct double precision, lux double precision,
    spl_db double precision);
SELECT create_hypertable('readings', by_range('time', INTERVAL '7 days'), create_default_indexes => false);
CREATE INDEX readings_subject_time_idx ON readings (subject, time)`

// telegrafConfig writes as soon as a batch is full, and otherwise as often as Telegraf can; what is in its hands is
// bounded by messages, of which there may be as many as fit into its buffer.
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

// StartTelegraf runs Telegraf from a stream into TelegrafTable.
func StartTelegraf(path, nats, database string, log io.Writer) (*procs.Process, error) {
	file := filepath.Join(filepath.Dir(path), "telegraf.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, telegrafConfig, nats, database), 0o600); err != nil {
		return nil, fmt.Errorf("configuring Telegraf: %w", err)
	}
	return procs.Start(procs.Command{Path: path, Args: []string{"--config", file, "--quiet"}, Log: log})
}
