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
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/bench/workload"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/proctest"
)

const victoriaMetricsVersion = "v1.102.0"

// victoriaMetrics is a single node with a series per metric and device.
type victoriaMetrics struct {
	*proctest.Process
	url string
}

// startVictoriaMetrics starts it with the default settings except the retention, which would be a month.
func startVictoriaMetrics(ctx context.Context, s *workload.Suite) (peer, error) {
	path, err := s.Install(ctx, "github.com/VictoriaMetrics/VictoriaMetrics", victoriaMetricsVersion,
		"app/victoria-metrics", "")
	if err != nil {
		return nil, err
	}
	address, err := proctest.FreeAddress()
	if err != nil {
		return nil, err
	}
	v := &victoriaMetrics{url: "http://" + address}
	v.Process, err = start(ctx, s, "victoria-metrics", v.url+"/health", proctest.Command{Path: path, Args: []string{
		"-storageDataPath=" + filepath.Join(s.Dir, "victoria-metrics-data"), "-retentionPeriod=100y",
		"-httpListenAddr=" + address,
	}})
	return v, err
}

// String returns the name and version.
func (*victoriaMetrics) String() string { return "VictoriaMetrics " + victoriaMetricsVersion }

// Lacks returns the guarantees that it does not give.
func (*victoriaMetrics) Lacks() string {
	return "not synced when acknowledged; what comes again occurs twice"
}

// WriteURL returns the URL that accepts lines.
func (v *victoriaMetrics) WriteURL() string { return v.url + "/write?precision=s" }

// Settle makes written readings readable, which otherwise takes a second.
func (v *victoriaMetrics) Settle(ctx context.Context) error {
	_, err := call(ctx, http.MethodGet, v.url+"/internal/force_flush")
	return err
}

// Count returns the number of readings in a window.
func (v *victoriaMetrics) Count(ctx context.Context, w roomsensor.Window) (int, error) {
	query := fmt.Sprintf("sum(count_over_time(%s_%s[%s]))", Series, roomsensor.CO2, seconds(w))
	body, err := call(ctx, http.MethodGet, v.instant(query, w).url)
	if err != nil {
		return 0, err
	}
	return readVictoriaCount(body)
}

// Aggregates requests the aggregates of one device, or of all if it is nil, in buckets that begin at multiples of their
// length since 1970. Without nocache, the same question again would be answered from a cache.
func (v *victoriaMetrics) Aggregates(device *uuid.UUID, w roomsensor.Window, bucket time.Duration) *question {
	condition, length := "", strconv.Itoa(int(bucket.Seconds()))
	if device != nil {
		condition = `,device="` + device.String() + `"`
	}
	// A range excludes its start and includes its end. So the range of an end of a bucket is a second earlier.
	query := fmt.Sprintf(`aggr_over_time(("min_over_time","max_over_time","avg_over_time","count_over_time"), `+
		everything+`[%ss] offset 1s) keep_metric_names`, condition, length)
	values := url.Values{
		"query": {query}, "start": {strconv.FormatInt(w.From.Add(bucket).Unix(), 10)},
		"end": {strconv.FormatInt(w.To.Unix(), 10)}, "step": {length + "s"}, "nocache": {"1"},
	}
	return &question{url: v.url + "/api/v1/query_range?" + values.Encode(), read: func(body io.Reader) (Cells, error) {
		return readVictoriaAggregates(body, bucket)
	}}
}

// Coverage requests the number of values of each metric and device in a window, and the times of the first and the last
// reading.
func (v *victoriaMetrics) Coverage(w roomsensor.Window) *question {
	length := seconds(w)
	counts := fmt.Sprintf("count_over_time("+everything+"[%s]) keep_metric_names", "", length)
	timeOf := func(function, name string) string {
		return fmt.Sprintf(`label_set(%s(%s_%s[%s]), "__name__", "%s")`, function, Series, roomsensor.CO2, length, name)
	}
	q := v.instant("union("+counts+", "+timeOf("tfirst_over_time", First)+", "+timeOf("tlast_over_time", Last)+")", w)
	q.url += "&nocache=1"
	q.read = readVictoriaCoverage
	return q
}

// everything selects all metrics; %s is a condition on devices.
const everything = `{__name__=~"` + Series + `_.+"%s}`

// Latest requests the newest value of each metric and device in a window, and the time of the newest reading.
func (v *victoriaMetrics) Latest(w roomsensor.Window) *question {
	length := seconds(w)
	values := fmt.Sprintf("last_over_time("+everything+"[%s])", "", length)
	times := fmt.Sprintf(`label_set(tlast_over_time(%s_%s[%s]), "__name__", "%s")`,
		Series, roomsensor.CO2, length, newestAt)
	return v.instant("union("+values+", "+times+")", w)
}

// newestAt is the name of the series of times.
const newestAt = "at"

// instant queries at the last second of a window, so that a range of its length covers it.
func (v *victoriaMetrics) instant(query string, w roomsensor.Window) *question {
	values := url.Values{"query": {query}, "time": {lastSecond(w)}}
	return &question{url: v.url + "/api/v1/query?" + values.Encode(), read: readVictoriaLatest}
}

// Page requests the readings of a device in a window, series by series.
func (v *victoriaMetrics) Page(device uuid.UUID, w roomsensor.Window) *question {
	return &question{url: v.export("", []uuid.UUID{device}, w, nil), read: readVictoriaSeries}
}

// Export requests the readings of some devices, or all if none are given, as CSV: a line for each value.
func (v *victoriaMetrics) Export(devices []uuid.UUID, w roomsensor.Window) *question {
	format := url.Values{"format": {"__timestamp__:unix_s,device,__name__,__value__"}}
	return &question{url: v.export("/csv", devices, w, format), read: readVictoriaCSV}
}

func (v *victoriaMetrics) export(form string, devices []uuid.UUID, w roomsensor.Window, values url.Values) string {
	condition := ""
	if len(devices) > 0 {
		condition = `,device=~"` + strings.Join(uuid.UUIDs(devices).Strings(), "|") + `"`
	}
	if values == nil {
		values = url.Values{}
	}
	values.Set("match[]", fmt.Sprintf(everything, condition))
	values.Set("start", strconv.FormatInt(w.From.Unix(), 10))
	values.Set("end", lastSecond(w))
	return v.url + "/api/v1/export" + form + "?" + values.Encode()
}

// lastSecond returns the last second of a window, for parameters that include the end.
func lastSecond(w roomsensor.Window) string { return strconv.FormatInt(w.To.Unix()-1, 10) }

func seconds(w roomsensor.Window) string { return fmt.Sprintf("%.0fs", w.To.Sub(w.From).Seconds()) }

// victoriaLabels are those of a series.
type victoriaLabels struct {
	Name   string    `json:"__name__"` //nolint:tagliatelle // Its own name.
	Device uuid.UUID `json:"device"`
	Rollup string    `json:"rollup"` // function of an aggregate
}

// victoriaVector is the answer to a query at an instant.
type victoriaVector struct {
	Data struct {
		Result []struct {
			Metric victoriaLabels `json:"metric"`
			Value  [2]any         `json:"value"` // the instant, and the value as text
		} `json:"result"`
	} `json:"data"`
}

func (v *victoriaVector) value(i int) (float64, error) {
	text, _ := v.Data.Result[i].Value[1].(string)
	return parseNumber(text)
}

func readVictoriaCount(body []byte) (int, error) {
	var v victoriaVector
	if err := json.Unmarshal(body, &v); err != nil {
		return 0, fmt.Errorf("reading a count: %w", err)
	}
	if len(v.Data.Result) == 0 {
		return 0, nil // Without series there is no sum.
	}
	n, err := v.value(0)
	return int(n), err
}

// readVictoriaLatest assigns every value the time of its device's newest reading.
func readVictoriaLatest(body io.Reader) (Cells, error) {
	var v victoriaVector
	if err := json.NewDecoder(body).Decode(&v); err != nil {
		return nil, fmt.Errorf("reading an instant: %w", err)
	}
	cells, at := Cells{}, map[uuid.UUID]int64{}
	for i, r := range v.Data.Result {
		if x, err := v.value(i); err != nil {
			return nil, err
		} else if r.Metric.Name == newestAt {
			at[r.Metric.Device] = int64(x)
		}
	}
	for i, r := range v.Data.Result {
		if r.Metric.Name == newestAt {
			continue
		}
		x, _ := v.value(i) // Read above.
		if err := cells.putNamed(r.Metric, at[r.Metric.Device], x); err != nil {
			return nil, err
		}
	}
	return cells, nil
}

func (c Cells) putNamed(of victoriaLabels, at int64, x float64) error {
	name, ok := strings.CutPrefix(of.Name, Series+"_")
	metric, known := roomsensor.MetricNamed(name)
	if !ok || !known {
		return fmt.Errorf("%w: a series is called %q", errPeer, of.Name)
	}
	return c.put(Cell{Device: of.Device, At: at, Metric: metric, Of: rollups[of.Rollup]}, x)
}

// rollups are the aggregate functions by their names. A series without one has readings.
var rollups = map[string]string{
	"min_over_time": Min, "max_over_time": Max, "avg_over_time": Mean, "count_over_time": Count,
}

// readVictoriaAggregates reads a series for each function, metric and device. The times are those of the ends of
// buckets.
func readVictoriaAggregates(body io.Reader, bucket time.Duration) (Cells, error) {
	var matrix struct {
		Data struct {
			Result []struct {
				Metric victoriaLabels `json:"metric"`
				Values [][2]any       `json:"values"` // time in seconds, and the value as text
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(body).Decode(&matrix); err != nil {
		return nil, fmt.Errorf("reading aggregates: %w", err)
	}
	cells := Cells{}
	for i := range matrix.Data.Result {
		series := &matrix.Data.Result[i]
		if rollups[series.Metric.Rollup] == "" {
			return nil, fmt.Errorf("%w: a function is called %q", errPeer, series.Metric.Rollup)
		}
		for _, point := range series.Values {
			at, _ := point[0].(float64)
			text, _ := point[1].(string)
			x, err := parseNumber(text)
			if err == nil {
				err = cells.putNamed(series.Metric, int64(at)-int64(bucket.Seconds()), x)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return cells, nil
}

// readVictoriaCoverage reads the counts, which have no time, and the times of readings.
func readVictoriaCoverage(body io.Reader) (Cells, error) {
	var v victoriaVector
	if err := json.NewDecoder(body).Decode(&v); err != nil {
		return nil, fmt.Errorf("reading an instant: %w", err)
	}
	cells := Cells{}
	for i, r := range v.Data.Result {
		x, err := v.value(i)
		switch {
		case err != nil:
		case r.Metric.Name == First, r.Metric.Name == Last:
			err = cells.put(Cell{Device: r.Metric.Device, At: int64(x), Metric: roomsensor.CO2, Of: r.Metric.Name}, 1)
		default:
			r.Metric.Rollup = "count_over_time"
			err = cells.putNamed(r.Metric, 0, x)
		}
		if err != nil {
			return nil, err
		}
	}
	return cells, nil
}

// readVictoriaSeries reads one JSON object per series.
func readVictoriaSeries(body io.Reader) (Cells, error) {
	cells := Cells{}
	for decoder := json.NewDecoder(body); ; {
		var series struct {
			Metric     victoriaLabels `json:"metric"`
			Values     []float64      `json:"values"`
			Timestamps []int64        `json:"timestamps"` // milliseconds
		}
		err := decoder.Decode(&series)
		if errors.Is(err, io.EOF) {
			return cells, nil
		}
		if err == nil && len(series.Values) != len(series.Timestamps) {
			err = errPeer
		}
		if err != nil {
			return nil, fmt.Errorf("reading a series: %w", err)
		}
		for i, x := range series.Values {
			if err := cells.putNamed(series.Metric, time.UnixMilli(series.Timestamps[i]).Unix(), x); err != nil {
				return nil, err
			}
		}
	}
}

// readVictoriaCSV reads time, device, metric and value of each line.
func readVictoriaCSV(body io.Reader) (Cells, error) {
	cells, lines := Cells{}, csv.NewReader(body)
	lines.FieldsPerRecord, lines.ReuseRecord = 4, true
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return cells, nil
		}
		if err == nil {
			metric := strings.TrimPrefix(line[2], Series+"_")
			err = cells.putRow([]string{"time", "device", metric}, []string{line[0], line[1], line[3]})
		}
		if err != nil {
			return nil, fmt.Errorf("reading a CSV: %w", err)
		}
	}
}
