package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/dbtest"
	"roomsensor/test/natstest"
)

// stream returns the stream of uploads.
func stream(t *testing.T, url string) jetstream.Stream {
	t.Helper()
	conn, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), queue.StreamName)
	require.NoError(t, err)
	return s
}

// receipts parses the output of upload.
func receipts(t *testing.T, out string) (list []map[string]any) {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		var receipt map[string]any
		require.NoError(t, json.Unmarshal(lines.Bytes(), &receipt))
		list = append(list, receipt)
	}
	return list
}

func TestUpload(t *testing.T) {
	t.Parallel()
	env := map[string]string{"NATS_URL": natstest.New(t).URL}
	lines := `{"hardware_id":"dev:1","readings":[{"measured_at":"2026-01-01T00:00:00Z","co2_ppm":1},{"co2":2}]}` + "\r\n\n" +
		` {"hardware_id":"dev:2","readings":[]}`
	r := execute(t, env, strings.NewReader(lines), "upload")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Empty(t, r.err)
	require.Equal(t, []map[string]any{
		{"line": 1.0, "hardware_id": "dev:1", "readings": 2.0, "ignored_fields": []any{"co2"}, "stream_sequence": 1.0},
		{"line": 3.0, "hardware_id": "dev:2", "readings": 0.0, "ignored_fields": []any{}, "stream_sequence": 2.0},
	}, receipts(t, r.out))
	msg, err := stream(t, env["NATS_URL"]).GetMsg(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, "uploads.-.dev:1", msg.Subject)
	require.Empty(t, msg.Header)
	require.Equal(t, strings.SplitN(lines, "\r", 2)[0], string(msg.Data))

	file := filepath.Join(t.TempDir(), "uploads.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(lines), 0o600))
	r = execute(t, env, nil, "upload", file)
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Len(t, receipts(t, r.out), 2)
	require.Equal(t, cli.ExitOK, execute(t, env, strings.NewReader(""), "upload", "-").code)
}

func TestUploadInvalidLine(t *testing.T) {
	t.Parallel()
	env := map[string]string{"NATS_URL": natstest.New(t).URL}
	valid := `{"hardware_id":"dev:1","readings":[]}` + "\n"
	r := execute(t, env, strings.NewReader(valid+"[]\n"+valid), "upload")
	require.Equal(t, cli.ExitFailure, r.code)
	require.Contains(t, r.err, "Some lines were refused; their receipts say why.")
	list := receipts(t, r.out)
	require.Len(t, list, 3, "a receipt for every line")
	require.Contains(t, list[1]["error"], "The upload is an array.")
	require.NotNil(t, list[2]["stream_sequence"])

	r = execute(t, env, nil, "upload", filepath.Join(t.TempDir(), "missing"))
	require.Equal(t, cli.ExitFailure, r.code)
	require.Contains(t, r.err, "no such file")
}

func TestUploadFullStream(t *testing.T) {
	t.Parallel()
	env := map[string]string{"NATS_URL": natstest.New(t).URL, "STREAM_MAX_BYTES": "16MiB"}
	var input bytes.Buffer
	for i := range 40 {
		fmt.Fprintf(&input, `{"hardware_id":"dev:%d","readings":[%s]}`+"\n", i+1, strings.Repeat(" ", 900_000))
	}
	r := execute(t, env, &input, "upload")
	require.Equal(t, cli.ExitFailure, r.code)
	require.Contains(t, r.err, "The queue is full or unavailable.")
	info, err := stream(t, env["NATS_URL"]).Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(16<<20), info.Config.MaxBytes)
}

func TestStreamUpdate(t *testing.T) {
	t.Parallel()
	env := map[string]string{"NATS_URL": natstest.New(t).URL}
	for _, step := range []struct {
		size string
		want int
	}{{"16MiB", 16 << 20}, {"32MiB", 32 << 20}, {"16MiB", 32 << 20}} {
		env["STREAM_MAX_BYTES"] = step.size
		r := execute(t, env, nil, "stream", "update")
		require.Equal(t, cli.ExitOK, r.code, r.err)
		require.JSONEq(t, fmt.Sprintf(`{"stream":"UPLOADS","max_bytes":%d,"replicas":1}`, step.want), r.out)
	}
}

func TestStreamReplay(t *testing.T) {
	t.Parallel()
	env := map[string]string{"NATS_URL": natstest.New(t).URL}
	r := execute(t, env, strings.NewReader(`{"hardware_id":"dev:1","readings":[]}`), "upload")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	between := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	r = execute(t, env, strings.NewReader(`{"hardware_id":"dev:2","readings":[]}`), "upload")
	require.Equal(t, cli.ExitOK, r.code, r.err)

	r = execute(t, env, nil, "stream", "replay")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.JSONEq(t, `{"stream":"UPLOADS","consumer":"ingest","since":null,"waiting":2}`, r.out)
	r = execute(t, env, nil, "stream", "replay", "--since", "2026-01-01T00:00:00Z")
	require.JSONEq(t, `{"stream":"UPLOADS","consumer":"ingest","since":"2026-01-01T00:00:00Z","waiting":2}`, r.out)

	consumer, err := stream(t, env["NATS_URL"]).Consumer(t.Context(), queue.ConsumerName)
	require.NoError(t, err)
	batch, err := consumer.Fetch(2)
	require.NoError(t, err)
	for msg := range batch.Messages() {
		require.NoError(t, msg.DoubleAck(t.Context()))
	}
	r = execute(t, env, nil, "stream", "replay", "--since", between)
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Contains(t, r.out, `"waiting":1`)
}

func TestStreamStatus(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.environment["NATS_URL"] = natstest.New(t).URL
	o.fails(cli.ExitFailure, "NATS has no stream UPLOADS", "stream", "status")
	o.fails(cli.ExitUsage, "--stream-keep (STREAM_KEEP) must be at least 1m", "stream", "status", "--stream-keep", "1s")
	o.do("stream", "confirm")
	empty := o.do("stream", "status", "--stream-keep", "2d")
	require.Equal(t, true, empty["recorded"])
	require.InDelta(t, 0, empty["messages"], 0)
	require.InDelta(t, 2*24*3600, empty["keep_seconds"], 0)
	require.Nil(t, empty["oldest_at"])
	require.Nil(t, empty["reach_seconds"])

	r := execute(t, o.environment, strings.NewReader(`{"hardware_id":"dev:1","readings":[]}`), "upload")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	o.reject("2026-01-01T00:00:00Z", 1, nil, "dev:1", roomsensor.ReasonNotStorable, "")
	status := o.do("stream", "status")
	require.InDelta(t, 1, status["messages"], 0)
	require.InDelta(t, 1, status["parked"], 0)
	require.Equal(t, status["oldest_at"], status["newest_at"])
	require.NotNil(t, status["reach_seconds"])
	consumers, ok := status["consumers"].([]any)
	require.True(t, ok)
	require.Len(t, consumers, 1)
	consumer, ok := consumers[0].(map[string]any)
	require.True(t, ok)
	require.Equal(t, "ingest", consumer["name"])
	require.InDelta(t, 1, consumer["waiting"], 0)
	require.Equal(t, status["oldest_at"], consumer["oldest_unsettled_at"])

	o.environment["DATABASE_URL"] = dbtest.New(t).URL
	require.Equal(t, false, o.do("stream", "status")["recorded"])

	o.environment["DATABASE_URL"] = "postgres://127.0.0.1:1/x"
	status = o.do("stream", "status")
	require.InDelta(t, 1, status["messages"], 0, "also while the database is unavailable")
	require.Nil(t, status["recorded"])
	require.Nil(t, status["parked"])
}

func TestStreamSkip(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.environment["NATS_URL"] = natstest.New(t).URL
	const payload = `{"hardware_id":"dev:1","readings":[]}`
	r := execute(t, o.environment, strings.NewReader(payload), "upload")
	require.Equal(t, cli.ExitOK, r.code, r.err)
	o.fails(cli.ExitUsage, "sequence", "stream", "skip", "first")
	o.fails(cli.ExitFailure, "The stream has no message 2", "stream", "skip", "2")

	skipped := o.do("stream", "skip", "1")
	require.Equal(t, "not_storable", skipped["reason"])
	require.InDelta(t, 1, skipped["stream_sequence"], 0)
	require.Equal(t, []map[string]any{skipped}, o.data("rejects", "list"))
	id, ok := skipped["id"].(string)
	require.True(t, ok)
	require.Contains(t, o.do("rejects", "show", id), "payload")
	info, err := stream(t, o.environment["NATS_URL"]).Info(t.Context())
	require.NoError(t, err)
	require.Zero(t, info.State.Msgs)
	o.fails(cli.ExitFailure, "The stream has no message 1", "stream", "skip", "1")
}
