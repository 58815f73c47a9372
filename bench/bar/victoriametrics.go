package bar

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

	"roomsensor/internal/procs"
	"roomsensor/internal/roomsensor"
)

// The version of VictoriaMetrics, and its module.
const (
	VictoriaMetricsVersion = "v1.102.0"
	victoriaModule         = "github.com/VictoriaMetrics/VictoriaMetrics"
)

// VictoriaMetrics is one node of it, with a series for each metric of each device.
type VictoriaMetrics struct {
	*procs.Process
	url string
}

// BuildVictoriaMetrics compiles it into a directory, from its module.
func BuildVictoriaMetrics(ctx context.Context, dir string) (path string, err error) {
	return buildPeer(ctx, dir, victoriaModule, VictoriaMetricsVersion, "app/victoria-metrics")
}

// StartVictoriaMetrics runs it with its data beside the program, as it comes but for the time that it keeps data, which
// would be a month.
func StartVictoriaMetrics(ctx context.Context, path string, log io.Writer) (*VictoriaMetrics, error) {
	address, err := procs.FreeAddress()
	if err != nil {
		return nil, err
	}
	v := &VictoriaMetrics{url: "http://" + address}
	v.Process, err = startPeer(ctx, v.url, procs.Command{Path: path, Log: log, Args: []string{
		"-storageDataPath=" + filepath.Join(filepath.Dir(path), "victoria-metrics-data"),
		"-retentionPeriod=100y", "-httpListenAddr=" + address,
	}})
	return v, err
}

// String is its name and version.
func (*VictoriaMetrics) String() string { return "VictoriaMetrics " + VictoriaMetricsVersion }

// Lacks is what it does not promise.
func (*VictoriaMetrics) Lacks() string {
	return "not synced when acknowledged; what comes again is there twice"
}

// WriteURL takes lines.
func (v *VictoriaMetrics) WriteURL() string { return v.url + "/write?precision=s" }

// Settle makes what was written readable, which else takes a second.
func (v *VictoriaMetrics) Settle(ctx context.Context) error {
	_, err := tell(ctx, http.MethodGet, v.url+"/internal/force_flush")
	return err
}

// Count is the readings in a window.
func (v *VictoriaMetrics) Count(ctx context.Context, w roomsensor.Window) (int, error) {
	query := fmt.Sprintf("sum(count_over_time(%s_%s[%s]))", Series, roomsensor.CO2, seconds(w))
	body, err := tell(ctx, http.MethodGet, v.instant(query, w).URL)
	if err != nil {
		return 0, err
	}
	return readVictoriaCount(body)
}

// everything selects all metrics; the %s is a condition on devices.
const everything = `{__name__=~"` + Series + `_.+"%s}`

// Latest asks for the newest value of each metric of each device in a window, and for the time of the newest reading.
func (v *VictoriaMetrics) Latest(w roomsensor.Window) *Question {
	length := seconds(w)
	values := fmt.Sprintf("last_over_time("+everything+"[%s])", "", length)
	times := fmt.Sprintf(`label_set(tlast_over_time(%s_%s[%s]), "__name__", "%s")`,
		Series, roomsensor.CO2, length, newestAt)
	return v.instant("union("+values+", "+times+")", w)
}

// newestAt is what the times of the newest readings are called.
const newestAt = "at"

// instant asks at the last second of a window: a range of its length then ends before its first one.
func (v *VictoriaMetrics) instant(query string, w roomsensor.Window) *Question {
	values := url.Values{"query": {query}, "time": {lastSecond(w)}}
	return &Question{URL: v.url + "/api/v1/query?" + values.Encode(), Read: readVictoriaLatest}
}

// Page asks for the readings of a device in a window, series by series.
func (v *VictoriaMetrics) Page(device uuid.UUID, w roomsensor.Window) *Question {
	return &Question{URL: v.export("", []uuid.UUID{device}, w, nil), Read: readVictoriaSeries}
}

// Export asks for the readings of some devices, all where none are named, as CSV: a line for each value.
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

// lastSecond is the last one of a window, for what includes the end.
func lastSecond(w roomsensor.Window) string { return strconv.FormatInt(w.To.Unix()-1, 10) }

func seconds(w roomsensor.Window) string { return fmt.Sprintf("%.0fs", w.To.Sub(w.From).Seconds()) }
