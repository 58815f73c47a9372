package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

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
func startInfluxDB(ctx context.Context, s *workload.Suite) (peer, error) {
	path, err := s.Install(ctx, "github.com/influxdata/influxdb", influxDBVersion, "cmd/influxd", "")
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
	_, err = call(ctx, http.MethodPost, db.query("CREATE DATABASE "+influxDatabase, nil))
	return db, err
}

const influxDatabase = "bench"

// String returns the name and version.
func (*influxDB) String() string { return "InfluxDB " + influxDBVersion }

// Lacks returns the guarantees that it does not give.
func (*influxDB) Lacks() string { return "synced; of repeated writes the last one wins" }

// WriteURL returns the URL that accepts lines.
func (db *influxDB) WriteURL() string { return db.url + "/write?db=" + influxDatabase + "&precision=s" }

// Settle does nothing: acknowledged readings are readable.
func (*influxDB) Settle(context.Context) error { return nil }

const (
	metrics     = "co2_ppm, temp_c, humidity_pct, lux, spl_db"
	metricsFrom = "SELECT " + metrics + " FROM " + Series
)

// Count returns the number of readings in a window.
func (db *influxDB) Count(ctx context.Context, w roomsensor.Window) (int, error) {
	statement := fmt.Sprintf("SELECT count(%s) FROM %s WHERE %s", roomsensor.CO2, Series, within(w))
	body, err := call(ctx, http.MethodGet, db.query(statement, nil))
	if err != nil {
		return 0, err
	}
	return readInfluxCount(body)
}

// Latest requests the newest reading of each device in a window.
func (db *influxDB) Latest(w roomsensor.Window) *question {
	return db.ask(metricsFrom + " WHERE " + within(w) + " GROUP BY device ORDER BY time DESC LIMIT 1")
}

// Page requests the readings of a device in a window, the newest first.
func (db *influxDB) Page(device uuid.UUID, w roomsensor.Window) *question {
	return db.ask(fmt.Sprintf("%s WHERE device = '%s' AND %s GROUP BY device ORDER BY time DESC",
		metricsFrom, device, within(w)))
}

// Aggregates requests the aggregates of one device, or of all if it is nil, in buckets that begin at multiples of their
// length since 1970.
func (db *influxDB) Aggregates(device *uuid.UUID, w roomsensor.Window, bucket time.Duration) *question {
	columns := make([]string, 0, 4*len(roomsensor.Metrics))
	for _, m := range roomsensor.Metrics {
		for _, function := range []string{Min, Max, Mean, Count} {
			columns = append(columns, fmt.Sprintf("%[1]s(%[2]s) AS %[2]s_%[1]s", function, m))
		}
	}
	condition := ""
	if device != nil {
		condition = fmt.Sprintf("device = '%s' AND ", device)
	}
	return db.ask(fmt.Sprintf("SELECT %s FROM %s WHERE %s%s GROUP BY time(%.0fs), device fill(none)",
		strings.Join(columns, ", "), Series, condition, within(w), bucket.Seconds()))
}

// Coverage requests the number of values of each metric and device in a window, and the first and the last reading.
func (db *influxDB) Coverage(w roomsensor.Window) *question {
	var columns []string
	for _, m := range roomsensor.Metrics {
		columns = append(columns, fmt.Sprintf("count(%[1]s) AS %[1]s_count", m))
	}
	statements := []string{strings.Join(columns, ", ")}
	for _, function := range []string{First, Last} {
		statements = append(statements, fmt.Sprintf("%s(%s)", function, roomsensor.CO2))
	}
	for i, what := range statements {
		statements[i] = fmt.Sprintf("SELECT %s FROM %s WHERE %s GROUP BY device", what, Series, within(w))
	}
	return &question{url: db.query(strings.Join(statements, "; "), nil), read: readInfluxCoverage}
}

func (db *influxDB) ask(statement string) *question {
	return &question{url: db.query(statement, nil), read: readInfluxRows}
}

// Export requests the readings of some devices, or all if none are given, as CSV in the order of their time.
func (db *influxDB) Export(devices []uuid.UUID, w roomsensor.Window) *question {
	statement := "SELECT device, " + metrics + " FROM " + Series + " WHERE " + within(w)
	if len(devices) > 0 {
		statement += " AND (device = '" + strings.Join(uuid.UUIDs(devices).Strings(), "' OR device = '") + "')"
	}
	return &question{
		url: db.query(statement, url.Values{"chunked": {"true"}}), accept: "application/csv", read: readInfluxCSV,
	}
}

func (db *influxDB) query(statement string, values url.Values) string {
	if values == nil {
		values = url.Values{}
	}
	values.Set("q", statement)
	values.Set("db", influxDatabase)
	values.Set("epoch", "s")
	return db.url + "/query?" + values.Encode()
}

func within(w roomsensor.Window) string {
	return fmt.Sprintf("time >= %ds AND time < %ds", w.From.Unix(), w.To.Unix())
}

// influxAnswer is an answer whose values are numbers or null, which is an empty json.Number.
type influxAnswer struct {
	Results []influxResult `json:"results"` // of each statement
}

type influxResult struct {
	Error  string         `json:"error"`
	Series []influxSeries `json:"series"`
}

type influxSeries struct {
	Tags struct {
		Device string `json:"device"`
	} `json:"tags"`
	Columns []string        `json:"columns"` // the first is the time
	Values  [][]json.Number `json:"values"`
}

// all returns the series of the only statement.
func (a *influxAnswer) all() ([]influxSeries, error) {
	if len(a.Results) != 1 || a.Results[0].Error != "" {
		return nil, fmt.Errorf("%w: %+v", errPeer, a.Results)
	}
	return a.Results[0].Series, nil
}

func readInfluxCount(body []byte) (int, error) {
	var a influxAnswer
	if err := json.Unmarshal(body, &a); err != nil {
		return 0, fmt.Errorf("reading a count: %w", err)
	}
	series, err := a.all()
	if err != nil || len(series) == 0 {
		return 0, err // Without readings there is no count.
	}
	return strconv.Atoi(series[0].Values[0][1].String()) //nolint:wrapcheck // It names the text.
}

// readInfluxRows reads readings that are grouped by device.
func readInfluxRows(body io.Reader) (Cells, error) {
	var a influxAnswer
	if err := json.NewDecoder(body).Decode(&a); err != nil {
		return nil, fmt.Errorf("reading rows: %w", err)
	}
	list, err := a.all()
	if err != nil {
		return nil, err
	}
	cells := Cells{}
	for _, series := range list {
		header := append([]string{"device"}, series.Columns...)
		for _, values := range series.Values {
			row := []string{series.Tags.Device}
			for _, x := range values {
				row = append(row, x.String())
			}
			if err := cells.putRow(header, row); err != nil {
				return nil, err
			}
		}
	}
	return cells, nil
}

// readInfluxCoverage reads the counts, whose time has no meaning, and the first and the last reading of each device.
func readInfluxCoverage(body io.Reader) (Cells, error) {
	var a influxAnswer
	if err := json.NewDecoder(body).Decode(&a); err != nil {
		return nil, fmt.Errorf("reading coverage: %w", err)
	}
	cells, functions := Cells{}, []string{Count, First, Last}
	if len(a.Results) != len(functions) {
		return nil, fmt.Errorf("%w: %d results", errPeer, len(a.Results))
	}
	for i, function := range functions {
		one := influxAnswer{a.Results[i : i+1]}
		list, err := one.all()
		if err != nil {
			return nil, err
		}
		for i := range list {
			if err := cells.putOnly(&list[i], function); err != nil {
				return nil, err
			}
		}
	}
	return cells, nil
}

// putOnly adds the only row of a device, which has counts, or the time of a reading.
func (c Cells) putOnly(series *influxSeries, function string) error {
	if len(series.Values) != 1 {
		return fmt.Errorf("%w: %d rows of %s", errPeer, len(series.Values), series.Tags.Device)
	}
	if function != Count {
		return c.putTime(series.Tags.Device, series.Values[0][0], function)
	}
	header, row := append([]string{"device", "time"}, series.Columns[1:]...), []string{series.Tags.Device, "0"}
	for _, x := range series.Values[0][1:] {
		row = append(row, x.String())
	}
	return c.putRow(header, row)
}

// putTime adds the time of the first or the last reading of a device.
func (c Cells) putTime(device string, seconds json.Number, of string) error {
	id, err := uuid.Parse(device)
	if err != nil {
		return fmt.Errorf("reading a device: %w", err)
	}
	at, err := seconds.Int64()
	if err != nil {
		return fmt.Errorf("reading a time: %w", err)
	}
	return c.put(Cell{Device: id, At: at, Metric: roomsensor.CO2, Of: of}, 1)
}

// readInfluxCSV reads a table in which the device is a column.
func readInfluxCSV(body io.Reader) (Cells, error) {
	lines := csv.NewReader(body)
	header, err := lines.Read()
	if err != nil {
		return nil, fmt.Errorf("reading the header of a CSV: %w", err)
	}
	cells := Cells{}
	lines.ReuseRecord = true
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return cells, nil
		}
		if err == nil {
			err = cells.putRow(header, line)
		}
		if err != nil {
			return nil, fmt.Errorf("reading a CSV: %w", err)
		}
	}
}
