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
func startVictoriaMetrics(ctx context.Context, s *workload.Suite) (*victoriaMetrics, error) {
	path, err := s.Install(ctx, "github.com/VictoriaMetrics/VictoriaMetrics", victoriaMetricsVersion,
		"app/victoria-metrics")
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

// Settle makes written readings readable, which otherwise takes a second.
func (v *victoriaMetrics) Settle(ctx context.Context) error {
	_, err := call(ctx, http.MethodGet, v.url+"/internal/force_flush")
	return err
}

// Count returns the number of readings in a window.
func (v *victoriaMetrics) Count(ctx context.Context, w roomsensor.Window) (int, error) {
	query := fmt.Sprintf("sum(count_over_time(%s_%s[%s]))", Series, roomsensor.CO2, seconds(w))
	// At the last second of a window, a range of its length covers it.
	values := url.Values{"query": {query}, "time": {lastSecond(w)}}
	body, err := call(ctx, http.MethodGet, v.url+"/api/v1/query?"+values.Encode())
	if err != nil {
		return 0, err
	}
	return readVictoriaCount(body)
}

// everything selects all metrics; %s is a condition on devices.
const everything = `{__name__=~"` + Series + `_.+"%s}`

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
}

func readVictoriaCount(body []byte) (int, error) {
	var v struct {
		Data struct {
			Result []struct {
				Value [2]any `json:"value"` // the instant, and the value as text
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return 0, fmt.Errorf("reading a count: %w", err)
	}
	if len(v.Data.Result) == 0 {
		return 0, nil // Without series there is no sum.
	}
	text, _ := v.Data.Result[0].Value[1].(string)
	n, err := parseNumber(text)
	return int(n), err
}

func (c Cells) putNamed(of victoriaLabels, at int64, x float64) error {
	name, ok := strings.CutPrefix(of.Name, Series+"_")
	metric, known := roomsensor.MetricNamed(name)
	if !ok || !known {
		return fmt.Errorf("%w: a series is called %q", errPeer, of.Name)
	}
	return c.put(Cell{Device: of.Device, At: at, Metric: metric}, x)
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
			err = cells.putLine(line)
		}
		if err != nil {
			return nil, fmt.Errorf("reading a CSV: %w", err)
		}
	}
}

func (c Cells) putLine(line []string) error {
	at, err := strconv.ParseInt(line[0], 10, 64)
	if err != nil {
		return fmt.Errorf("reading a time: %w", err)
	}
	device, err := uuid.Parse(line[1])
	if err != nil {
		return fmt.Errorf("reading a device: %w", err)
	}
	x, err := parseNumber(line[3])
	if err != nil {
		return err
	}
	return c.putNamed(victoriaLabels{Name: line[2], Device: device}, at, x)
}
