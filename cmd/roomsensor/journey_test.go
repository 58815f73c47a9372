package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
	"roomsensor/internal/conformance"
	"roomsensor/internal/dbtest"
	"roomsensor/internal/natstest"
	"roomsensor/internal/openapitest"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

// patience is for what takes milliseconds on a machine that does nothing else.
const patience = 30 * time.Second

// sample is one line of a logger in an office: a measurement a minute, of which
// the last in each 5 minutes is the reading.
type sample struct {
	at     time.Time
	values [roomsensor.MetricCount]string // as decimals; empty where nothing was measured
}

// office makes the samples of one device. Minutes drift by a second now and
// then, as they do where a logger sleeps between two measurements.
func office(seed uint64, n int) []sample {
	dice := rand.New(rand.NewPCG(seed, 1))
	at := time.Date(2015, time.February, 4, 17, 51, 0, 0, time.UTC)
	samples := make([]sample, n)
	for i := range samples {
		samples[i].at = at.Add(-time.Duration(dice.IntN(2)) * time.Second)
		samples[i].values[roomsensor.CO2] = decimal(700+dice.Float64()*300, 13)
		samples[i].values[roomsensor.Temp] = decimal(20+dice.Float64()*3, 2)
		samples[i].values[roomsensor.Humidity] = decimal(25+dice.Float64()*5, 13)
		if i%60 != 0 {
			samples[i].values[roomsensor.Lux] = decimal(float64(dice.IntN(450)), 0)
		}
		at = at.Add(time.Minute)
	}
	return samples
}

func decimal(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }

func (s *sample) json() string {
	fields := []string{`"measured_at":"` + roomsensor.FormatTime(s.at) + `"`}
	for _, m := range roomsensor.Metrics {
		if s.values[m] != "" {
			fields = append(fields, `"`+m.String()+`":`+s.values[m])
		}
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// uploads packs samples as JSON Lines, so many to an upload.
func uploads(hardwareID string, samples []sample, size int) []string {
	var lines []string
	for part := range slices.Chunk(samples, size) {
		readings := make([]string, len(part))
		for i := range part {
			readings[i] = part[i].json()
		}
		lines = append(lines, fmt.Sprintf(
			`{"hardware_id":%q,"sent_at":%q,"firmware_version":"1.0.0","signal":{"rssi_dbm":-81,"bars":3},"readings":[%s]}`,
			hardwareID, roomsensor.FormatTime(part[len(part)-1].at), strings.Join(readings, ",")))
	}
	return lines
}

// expected is what the readings of samples must print, by bucket ascending:
// for each bucket the later measurement, in the shortest decimals of 32 bits.
func expected(t *testing.T, samples []sample) (buckets []string, values map[string][roomsensor.MetricCount]string) {
	t.Helper()
	values = map[string][roomsensor.MetricCount]string{}
	newest := map[string]time.Time{}
	for i := range samples {
		bucket := roomsensor.FormatTime(roomsensor.BucketOf(samples[i].at))
		if before, ok := newest[bucket]; ok && before.After(samples[i].at) {
			continue
		}
		newest[bucket] = samples[i].at
		var printed [roomsensor.MetricCount]string
		for m, text := range samples[i].values {
			if text == "" {
				continue
			}
			x, err := strconv.ParseFloat(text, 32)
			require.NoError(t, err)
			printed[m] = strconv.FormatFloat(x, 'f', -1, 32)
		}
		values[bucket] = printed
	}
	for bucket := range values {
		buckets = append(buckets, bucket)
	}
	slices.Sort(buckets)
	return buckets, values
}

// journey is the whole service as an operator sets it up.
type journey struct {
	*operator
	baseURL string
	key     string
	conn    *pgx.Conn
}

func setOut(t *testing.T) *journey {
	t.Helper()
	j := &journey{operator: &operator{t, map[string]string{
		"DATABASE_URL": dbtest.New(t).URL, "NATS_URL": natstest.New(t).URL,
	}}}
	var err error
	j.conn, err = pgx.Connect(t.Context(), j.environment["DATABASE_URL"])
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.conn.Close(context.Background())) })

	database := config.Database{DatabaseURL: j.environment["DATABASE_URL"]}
	j.baseURL = j.process("api", func(ctx context.Context, p app.Process) error {
		cfg := config.API{Database: database, Log: config.Log{LogLevel: "info"}, OpsAddr: "127.0.0.1:0"}
		cfg.APIAddr = "127.0.0.1:0"
		return app.RunAPI(ctx, cfg, p)
	})
	for range 2 {
		j.process("", func(ctx context.Context, p app.Process) error {
			cfg := config.Ingest{Database: database, Log: config.Log{LogLevel: "info"}, OpsAddr: "127.0.0.1:0", NoReceiver: true}
			cfg.NATSURL, cfg.APIAddr, cfg.IngestAddr = j.environment["NATS_URL"], "127.0.0.1:0", "127.0.0.1:0"
			cfg.Stream = config.Stream{StreamReplicas: 1, StreamMaxBytes: "1GiB", StreamKeep: "7d"}
			return app.RunIngest(ctx, cfg, p)
		})
	}
	return j
}

// process runs a process until the test ends, and waits until it is ready. It
// returns the address of a listener of a name.
func (j *journey) process(name string, run func(context.Context, app.Process) error) string {
	j.t.Helper()
	ctx, stop := context.WithCancel(j.t.Context())
	bound, ready, ended := make(chan string, 4), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- run(ctx, app.Process{
			Ready: func() { close(ready) },
			Started: func(started string, address net.Addr) {
				if started == name {
					bound <- "http://" + address.String()
				}
			},
		})
	}()
	j.t.Cleanup(func() {
		stop()
		require.NoError(j.t, <-ended)
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		require.NoError(j.t, err)
	case <-time.After(patience):
		require.FailNow(j.t, "a process is not ready")
	}
	if name == "" {
		return ""
	}
	return <-bound
}

// feed uploads lines by the command and waits until workers have acknowledged
// every message.
func (j *journey) feed(lines []string) {
	j.t.Helper()
	r := execute(j.t, j.environment, strings.NewReader(strings.Join(lines, "\n")), "upload", "-")
	require.Equal(j.t, exitOK, r.code, r.err)
	require.Equal(j.t, len(lines), strings.Count(r.out, "\n"), "one line of receipt each")
	j.settle(stream(j.t, j.environment["NATS_URL"]))
}

// settle waits until workers have acknowledged every message.
func (j *journey) settle(uploads jetstream.Stream) {
	j.t.Helper()
	require.Eventually(j.t, func() bool {
		state, err := uploads.Info(j.t.Context())
		require.NoError(j.t, err)
		consumer, err := uploads.Consumer(j.t.Context(), queue.ConsumerName)
		require.NoError(j.t, err)
		return consumer.CachedInfo().AckFloor.Stream == state.State.LastSeq
	}, patience, 20*time.Millisecond)
}

func (j *journey) get(path string) string {
	j.t.Helper()
	request, err := http.NewRequestWithContext(j.t.Context(), http.MethodGet, j.baseURL+"/v1"+path, nil)
	require.NoError(j.t, err)
	request.Header.Set("Authorization", "Bearer "+j.key)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: openapitest.Transport(transport)}).Do(request)
	require.NoError(j.t, err)
	defer func() { require.NoError(j.t, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	require.NoError(j.t, err)
	require.Equal(j.t, http.StatusOK, response.StatusCode, string(body))
	return string(body)
}

// rows is the whole table, as text.
func (j *journey) rows() (rows []string) {
	j.t.Helper()
	found, err := j.conn.Query(j.t.Context(), `SELECT r::text FROM readings r ORDER BY device_id, bucket_at`)
	require.NoError(j.t, err)
	rows, err = pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(j.t, err)
	return rows
}

// A real office's log comes in minute by minute, packed into uploads, and is
// read back page by page and as CSV. Delivered again, shuffled and packed
// differently, it changes no row and no ingested_at.
func TestFromAnUploadToAnAnswer(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 38.1", "decision 38.2")
	conformance.Covers(t, "decision 1.3", "decision 1.4")
	j := setOut(t)
	team := j.team()
	j.key = j.id("key", "key", "create", "--team", team)
	samples := map[string][]sample{"dev:1": office(1, 8143), "dev:2": office(2, 9752)}
	devices := map[string]string{"dev:1": j.device(team, "dev:1"), "dev:2": j.device(team, "dev:2", "--name", "Room, 2")}

	for unit, list := range samples {
		j.feed(uploads(unit, list, 60))
	}
	for unit, list := range samples {
		buckets, want := expected(t, list)
		j.checkPages(devices[unit], buckets, want)
		j.checkCSV(devices[unit], buckets, want)
	}
	j.checkCurrent(len(samples))

	before := j.rows()
	var again []string
	for unit, list := range samples {
		shuffled := slices.Clone(list)
		rand.Shuffle(len(shuffled), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
		again = append(again, uploads(unit, shuffled, 7)...)
	}
	rand.Shuffle(len(again), func(a, b int) { again[a], again[b] = again[b], again[a] })
	j.feed(again)
	require.Equal(t, before, j.rows())
	require.Empty(t, j.data("rejects", "list"))
}

func (j *journey) checkPages(device string, buckets []string, want map[string][roomsensor.MetricCount]string) {
	j.t.Helper()
	path := "/devices/" + device + "/readings?from=2015-02-01T00:00:00Z&to=2015-03-01T00:00:00Z"
	var got []string
	for cursor := ""; ; {
		var page struct {
			Data       []map[string]any `json:"data"`
			NextCursor *string          `json:"next_cursor"`
		}
		decoder := json.NewDecoder(strings.NewReader(j.get(path + cursor)))
		decoder.UseNumber()
		require.NoError(j.t, decoder.Decode(&page))
		for _, reading := range page.Data {
			bucket, _ := reading["bucket_at"].(string)
			got = append(got, bucket)
			for _, m := range roomsensor.Metrics {
				require.Equal(j.t, want[bucket][m], printed(reading[m.String()]), "%s %s", bucket, m)
			}
		}
		if page.NextCursor == nil {
			break
		}
		require.Len(j.t, page.Data, roomsensor.MaxPage)
		cursor = "&cursor=" + *page.NextCursor
	}
	slices.Reverse(got)
	require.Equal(j.t, buckets, got)
}

func printed(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

func (j *journey) checkCSV(device string, buckets []string, want map[string][roomsensor.MetricCount]string) {
	j.t.Helper()
	lines := bufio.NewScanner(strings.NewReader(
		j.get("/readings.csv?from=2015-02-01T00:00:00Z&to=2015-03-01T00:00:00Z&devices=" + device)))
	require.True(j.t, lines.Scan())
	require.Equal(j.t, "bucket_at,device_id,display_name,co2_ppm,temp_c,humidity_pct,lux,spl_db,valid_mask", lines.Text())
	n := 0
	for ; lines.Scan(); n++ {
		text := strings.Replace(lines.Text(), `"Room, 2"`, "Room 2", 1)
		fields := strings.Split(text, ",")
		require.Equal(j.t, []string{buckets[n], device}, fields[:2])
		values := want[buckets[n]]
		require.Equal(j.t, values[:], fields[3:8])
	}
	require.Equal(j.t, len(buckets), n)
}

// Nothing that was sent is recent: the last reading shows all the same, with a
// status by the time of the upload.
func (j *journey) checkCurrent(devices int) {
	j.t.Helper()
	var list struct {
		Data []struct {
			Status string         `json:"status"`
			Latest map[string]any `json:"latest"`
		} `json:"data"`
	}
	require.NoError(j.t, json.Unmarshal([]byte(j.get("/devices/current")), &list))
	require.Len(j.t, list.Data, devices)
	for _, d := range list.Data {
		require.Equal(j.t, "online", d.Status)
		require.Contains(j.t, d.Latest["bucket_at"], "2015-02-")
	}
}
