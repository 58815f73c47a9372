package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"roomsensor/bench/load"
	"roomsensor/bench/workload"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/proctest"
)

const influxDBVersion = "v1.8.10"

// influxDB is a server with a tag for the device and a field per metric.
type influxDB struct {
	*proctest.Process
	url string
}

// startInfluxDB starts it with the default settings except reports about itself, and creates a database. By default it
// syncs every write.
func startInfluxDB(ctx context.Context, s *workload.Suite) (*influxDB, error) {
	path, err := s.Install(ctx, "github.com/influxdata/influxdb", influxDBVersion, "cmd/influxd")
	if err != nil {
		return nil, err
	}
	address, err := proctest.FreeAddress()
	if err != nil {
		return nil, err
	}
	inner, err := proctest.FreeAddress()
	if err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp(s.Dir, "influxdb-data-") // It starts without readings.
	if err != nil {
		return nil, fmt.Errorf("creating a data directory: %w", err)
	}
	db := &influxDB{url: "http://" + address}
	db.Process, err = start(ctx, s, "influxdb", db.url+"/health", proctest.Command{
		Path: path, Args: []string{"run", "-config", "/dev/null"}, Env: []string{
			"INFLUXDB_DATA_DIR=" + filepath.Join(data, "data"), "INFLUXDB_META_DIR=" + filepath.Join(data, "meta"),
			"INFLUXDB_DATA_WAL_DIR=" + filepath.Join(data, "wal"), "INFLUXDB_HTTP_BIND_ADDRESS=" + address,
			"INFLUXDB_BIND_ADDRESS=" + inner, "INFLUXDB_REPORTING_DISABLED=true", "INFLUXDB_MONITOR_STORE_ENABLED=false",
			"INFLUXDB_HTTP_LOG_ENABLED=false", "INFLUXDB_DATA_QUERY_LOG_ENABLED=false",
		},
	})
	if err != nil {
		return nil, err
	}
	_, err = call(ctx, http.MethodPost, db.query("CREATE DATABASE "+influxDatabase))
	return db, err
}

const influxDatabase = "bench"

func (db *influxDB) query(statement string) string {
	return db.url + "/query?" + url.Values{"q": {statement}, "db": {influxDatabase}, "epoch": {"s"}}.Encode()
}

// count returns the number of readings in a window.
func (db *influxDB) count(ctx context.Context, w roomsensor.Window) (int, error) {
	body, err := call(ctx, http.MethodGet, db.query(fmt.Sprintf(
		"SELECT count(%s) FROM %s WHERE time >= %ds AND time < %ds",
		roomsensor.CO2, Series, w.From.Unix(), w.To.Unix())))
	if err != nil {
		return 0, err
	}
	return readInfluxCount(body)
}

// readInfluxCount reads the only value of the only series, after its time. Without readings there is no series.
func readInfluxCount(body []byte) (int, error) {
	var a struct {
		Results []struct {
			Error  string `json:"error"`
			Series []struct {
				Values [][2]int `json:"values"`
			} `json:"series"`
		} `json:"results"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return 0, fmt.Errorf("reading a count: %w", err)
	}
	if len(a.Results) != 1 || a.Results[0].Error != "" {
		return 0, fmt.Errorf("%w: %+v", errPeer, a.Results)
	}
	if series := a.Results[0].Series; len(series) > 0 && len(series[0].Values) > 0 {
		return series[0].Values[0][1], nil
	}
	return 0, nil
}

// pointWriter writes the readings of W11 to a new InfluxDB, one per request.
type pointWriter struct {
	*influxDB
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
	w := &pointWriter{influxDB: p, suite: s, window: roomsensor.Window{
		From: s.Fleet.Until.Add(-workload.UploadPart), To: s.Fleet.Until,
	}}
	return &workload.Rival{Name: "InfluxDB " + influxDBVersion, Run: w.rate, Stop: p.Kill}, nil
}

// rate returns the points per second of a round.
func (w *pointWriter) rate(ctx context.Context) (float64, error) {
	client := load.NewClient()
	defer client.CloseIdle()
	sender := workload.Sender{
		Client: client, URL: w.url + "/write?db=" + influxDatabase + "&precision=s", Status: http.StatusNoContent,
	}
	result, err := load.Closed(ctx, workload.SingleConnections, w.suite.Time,
		func(ctx context.Context, _, _ int) error { return sender.Post(ctx, w.next()) })
	if err != nil {
		return 0, err
	}
	stored, err := w.count(ctx, w.window)
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
