package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/proctest"
)

// InfluxDBVersion is the version of InfluxDB.
const InfluxDBVersion = "v1.8.10"

// InfluxDB is a server with a tag for the device and a field per metric.
type InfluxDB struct {
	*proctest.Process
	url string
}

// BuildInfluxDB compiles it from its module into a directory.
func BuildInfluxDB(ctx context.Context, dir string) (path string, err error) {
	return buildPeer(ctx, dir, "github.com/influxdata/influxdb", InfluxDBVersion, "cmd/influxd")
}

// StartInfluxDB starts it with its data beside the program and the default settings except reports about itself, and
// creates a database. By default it syncs every write.
func StartInfluxDB(ctx context.Context, path string, log io.Writer) (*InfluxDB, error) {
	address, err := proctest.FreeAddress()
	if err != nil {
		return nil, err
	}
	inner, err := proctest.FreeAddress()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(filepath.Dir(path), "influxdb-data")
	db := &InfluxDB{url: "http://" + address}
	db.Process, err = startPeer(ctx, db.url, proctest.Command{
		Path: path, Args: []string{"run", "-config", "/dev/null"}, Log: log, Env: []string{
			"INFLUXDB_DATA_DIR=" + filepath.Join(data, "data"), "INFLUXDB_META_DIR=" + filepath.Join(data, "meta"),
			"INFLUXDB_DATA_WAL_DIR=" + filepath.Join(data, "wal"), "INFLUXDB_HTTP_BIND_ADDRESS=" + address,
			"INFLUXDB_BIND_ADDRESS=" + inner, "INFLUXDB_REPORTING_DISABLED=true", "INFLUXDB_MONITOR_STORE_ENABLED=false",
			"INFLUXDB_HTTP_LOG_ENABLED=false", "INFLUXDB_DATA_QUERY_LOG_ENABLED=false",
		},
	})
	if err != nil {
		return nil, err
	}
	if _, err := call(ctx, http.MethodPost, db.query("CREATE DATABASE "+influxDatabase, nil)); err != nil {
		db.Kill()
		return nil, err
	}
	return db, nil
}

const influxDatabase = "bench"

// String returns the name and version.
func (*InfluxDB) String() string { return "InfluxDB " + InfluxDBVersion }

// Lacks returns the guarantees that it does not give.
func (*InfluxDB) Lacks() string { return "synced; of repeated writes the last one wins" }

// WriteURL returns the URL that accepts lines.
func (db *InfluxDB) WriteURL() string { return db.url + "/write?db=" + influxDatabase + "&precision=s" }

// Settle does nothing: acknowledged readings are readable.
func (*InfluxDB) Settle(context.Context) error { return nil }

const (
	metrics     = "co2_ppm, temp_c, humidity_pct, lux, spl_db"
	metricsFrom = "SELECT " + metrics + " FROM " + Series
)

// Count returns the number of readings in a window.
func (db *InfluxDB) Count(ctx context.Context, w roomsensor.Window) (int, error) {
	statement := fmt.Sprintf("SELECT count(%s) FROM %s WHERE %s", roomsensor.CO2, Series, within(w))
	body, err := call(ctx, http.MethodGet, db.query(statement, nil))
	if err != nil {
		return 0, err
	}
	return readInfluxCount(body)
}

// Latest requests the newest reading of each device in a window.
func (db *InfluxDB) Latest(w roomsensor.Window) *Question {
	return db.ask(metricsFrom + " WHERE " + within(w) + " GROUP BY device ORDER BY time DESC LIMIT 1")
}

// Page requests the readings of a device in a window, the newest first.
func (db *InfluxDB) Page(device uuid.UUID, w roomsensor.Window) *Question {
	return db.ask(fmt.Sprintf("%s WHERE device = '%s' AND %s GROUP BY device ORDER BY time DESC",
		metricsFrom, device, within(w)))
}

func (db *InfluxDB) ask(statement string) *Question {
	return &Question{URL: db.query(statement, nil), Read: readInfluxRows}
}

// Export requests the readings of some devices, or all if none are given, as CSV in the order of their time.
func (db *InfluxDB) Export(devices []uuid.UUID, w roomsensor.Window) *Question {
	statement := "SELECT device, " + metrics + " FROM " + Series + " WHERE " + within(w)
	if len(devices) > 0 {
		statement += " AND (device = '" + strings.Join(uuid.UUIDs(devices).Strings(), "' OR device = '") + "')"
	}
	return &Question{
		URL: db.query(statement, url.Values{"chunked": {"true"}}), Accept: "application/csv", Read: readInfluxCSV,
	}
}

func (db *InfluxDB) query(statement string, values url.Values) string {
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
