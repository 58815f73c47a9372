package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/proctest"
)

// The version of VictoriaMetrics, and its module.
const (
	VictoriaMetricsVersion = "v1.102.0"
	victoriaModule         = "github.com/VictoriaMetrics/VictoriaMetrics"
)

// VictoriaMetrics is a single node with a series per metric and device.
type VictoriaMetrics struct {
	*proctest.Process
	url string
}

// BuildVictoriaMetrics compiles it from its module into a directory.
func BuildVictoriaMetrics(ctx context.Context, dir string) (path string, err error) {
	return buildPeer(ctx, dir, victoriaModule, VictoriaMetricsVersion, "app/victoria-metrics")
}

// StartVictoriaMetrics starts it with its data beside the program and the default settings except the retention, which
// would be a month.
func StartVictoriaMetrics(ctx context.Context, path string, log io.Writer) (*VictoriaMetrics, error) {
	address, err := proctest.FreeAddress()
	if err != nil {
		return nil, err
	}
	v := &VictoriaMetrics{url: "http://" + address}
	v.Process, err = startPeer(ctx, v.url, proctest.Command{Path: path, Log: log, Args: []string{
		"-storageDataPath=" + filepath.Join(filepath.Dir(path), "victoria-metrics-data"),
		"-retentionPeriod=100y", "-httpListenAddr=" + address,
	}})
	return v, err
}

// String returns the name and version.
func (*VictoriaMetrics) String() string { return "VictoriaMetrics " + VictoriaMetricsVersion }

// Lacks returns the guarantees that it does not give.
func (*VictoriaMetrics) Lacks() string {
	return "not synced when acknowledged; what comes again occurs twice"
}

// WriteURL returns the URL that accepts lines.
func (v *VictoriaMetrics) WriteURL() string { return v.url + "/write?precision=s" }

// Settle makes written readings readable, which otherwise takes a second.
func (v *VictoriaMetrics) Settle(ctx context.Context) error {
	_, err := call(ctx, http.MethodGet, v.url+"/internal/force_flush")
	return err
}

// Count returns the number of readings in a window.
func (v *VictoriaMetrics) Count(ctx context.Context, w roomsensor.Window) (int, error) {
	query := fmt.Sprintf("sum(count_over_time(%s_%s[%s]))", Series, roomsensor.CO2, seconds(w))
	body, err := call(ctx, http.MethodGet, v.instant(query, w).URL)
	if err != nil {
		return 0, err
	}
	return readVictoriaCount(body)
}

// everything selects all metrics; %s is a condition on devices.
const everything = `{__name__=~"` + Series + `_.+"%s}`

// Latest requests the newest value of each metric and device in a window, and the time of the newest reading.
func (v *VictoriaMetrics) Latest(w roomsensor.Window) *Question {
	length := seconds(w)
	values := fmt.Sprintf("last_over_time("+everything+"[%s])", "", length)
	times := fmt.Sprintf(`label_set(tlast_over_time(%s_%s[%s]), "__name__", "%s")`,
		Series, roomsensor.CO2, length, newestAt)
	return v.instant("union("+values+", "+times+")", w)
}

// newestAt is the name of the series of times.
const newestAt = "at"

// instant queries at the last second of a window, so that a range of its length covers it.
func (v *VictoriaMetrics) instant(query string, w roomsensor.Window) *Question {
	values := url.Values{"query": {query}, "time": {lastSecond(w)}}
	return &Question{URL: v.url + "/api/v1/query?" + values.Encode(), Read: readVictoriaLatest}
}

// Page requests the readings of a device in a window, series by series.
func (v *VictoriaMetrics) Page(device uuid.UUID, w roomsensor.Window) *Question {
	return &Question{URL: v.export("", []uuid.UUID{device}, w, nil), Read: readVictoriaSeries}
}

// Export requests the readings of some devices, or all if none are given, as CSV: a line for each value.
func (v *VictoriaMetrics) Export(devices []uuid.UUID, w roomsensor.Window) *Question {
	format := url.Values{"format": {"__timestamp__:unix_s,device,__name__,__value__"}}
	return &Question{URL: v.export("/csv", devices, w, format), Read: readVictoriaCSV}
}

func (v *VictoriaMetrics) export(form string, devices []uuid.UUID, w roomsensor.Window, values url.Values) string {
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
