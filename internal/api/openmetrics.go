package api

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

const (
	maxAgeParameter = "max_age"
	labelsParameter = "labels"

	openMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	// maxMetricsDevices is the most devices of a body. They have at most maxMetricsTags bytes of tags: more than those of
	// a team with a snapshot.
	maxMetricsDevices = 8192
	maxMetricsTags    = roomsensor.MaxPageBytes
	// maxMetricsBytes is the most bytes of a body. Those of a line without its labels are at most metricsLineBytes.
	maxMetricsBytes  = maxTeamBodies
	metricsLineBytes = 64
	// metricsLines is the most lines of a device: its metrics, the last upload and the status.
	metricsLines = roomsensor.MetricCount + 2
	// metricsFamilyBytes is more than the lines that describe the metrics take.
	metricsFamilyBytes = 1 << 10
)

// getMetrics handles GET /metrics: the newest values of all devices for Prometheus (A20).
func (s *server) getMetrics(ctx context.Context, c *call) error {
	q, err := c.query(maxAgeParameter, labelsParameter, metadataPrefix)
	if err != nil {
		return err
	}
	age, err := roomsensor.ParseMaxAge(q.Get(maxAgeParameter))
	if err != nil {
		return err
	}
	labels, err := parseLabels(q.Get(labelsParameter))
	if err != nil {
		return err
	}
	devices, err := s.currentDevices(ctx, c.key.TeamID, q.Tags())
	if err != nil {
		return err
	}
	named, bytes, err := labelDevices(devices, labels)
	if err != nil {
		return err
	}
	share, err := reserve(ctx, s.bodies, c.key.TeamID, bytes, shareWait)
	if err != nil {
		return err
	}
	defer share.Release()
	c.rows = len(devices)
	body := renderMetrics(make([]byte, 0, bytes), devices, named, s.now(), age)
	return httpedge.WriteText(c.Response(), c.Request(), openMetricsType, body)
}

// labelDevices returns the labels of each device, and the most bytes that a body with them has. Its error is
// validation_failed if that is too large (A20.3).
func labelDevices(devices []roomsensor.CurrentDevice, labels []tagLabel) (named []string, bytes int, err error) {
	tags := 0
	for i := range devices {
		named = append(named, labelsOf(&devices[i].Device, labels))
		bytes += metricsLines * (len(named[i]) + metricsLineBytes)
		tags += devices[i].TagBytes()
		// After so many tags, the store omits devices.
		if i == maxMetricsDevices || bytes > maxMetricsBytes || tags > maxMetricsTags {
			return nil, 0, roomsensor.Invalid(metadataPrefix+"<key>", fmt.Sprintf(
				"A response has at most %d devices and %d MiB. Select some devices with metadata.<key>=value, and "+
					"send a request for each value.",
				maxMetricsDevices, maxMetricsBytes>>20))
		}
	}
	return named, bytes + metricsFamilyBytes, nil
}

// currentDevices returns the devices with tags as /devices/current has them, at most one more than maxMetricsDevices.
func (s *server) currentDevices(
	ctx context.Context, teamID uuid.UUID, tags map[string]string,
) ([]roomsensor.CurrentDevice, error) {
	snap, err := s.current.of(ctx, teamID)
	if err != nil {
		return nil, err
	}
	q := roomsensor.DeviceQuery{Metadata: tags, Limit: maxMetricsDevices + 1, MaxTagBytes: maxMetricsTags}
	if snap.partial {
		// In the order of sendScan.
		share, err := reserve(ctx, s.bodies, teamID, maxMetricsTags, shareWait)
		if err != nil {
			return nil, err
		}
		defer share.Release()
		scan, err := reserve(ctx, s.scans, teamID, 1, shareWait)
		if err != nil {
			return nil, err
		}
		defer scan.Release()
		return s.backend.CurrentDevices(ctx, teamID, q, roomsensor.Window{}) // Without statistics.
	}
	return snap.page(q), nil
}

// tagLabel is a tag that becomes a label.
type tagLabel struct{ key, name string }

var (
	notInLabel     = regexp.MustCompile(`[^a-zA-Z0-9_]|^[0-9]`)
	reservedLabels = []string{"device_id", "display_name", "status"}
)

// parseLabels parses the parameter labels, a list of keys of tags. A character that a label cannot have becomes _.
func parseLabels(text *string) (labels []tagLabel, err error) {
	if text == nil {
		return nil, nil
	}
	for key := range strings.SplitSeq(*text, ",") {
		l := tagLabel{key, notInLabel.ReplaceAllString(key, "_")}
		taken := slices.ContainsFunc(labels, func(o tagLabel) bool { return o.name == l.name })
		if key == "" || taken || slices.Contains(reservedLabels, l.name) || strings.HasPrefix(l.name, "__") {
			return nil, roomsensor.Invalid(labelsParameter, "labels must be a list of keys of tags separated by commas, such "+
				"as labels=building,floor. Each makes a label of its own, other than device_id, display_name and status.")
		}
		labels = append(labels, l)
	}
	return labels, nil
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// renderMetrics appends the values as OpenMetrics text, with the labels of each device. A value whose bucket is older
// than age is absent, so that nothing old looks fresh.
func renderMetrics(
	body []byte, devices []roomsensor.CurrentDevice, named []string, now time.Time, age time.Duration,
) []byte {
	family := func(name, help string) { body = fmt.Appendf(body, "# TYPE %s gauge\n# HELP %[1]s %s\n", name, help) }
	for _, m := range roomsensor.Metrics {
		name := "roomsensor_" + m.String()
		family(name, "Newest "+m.String()+" of the device.")
		for i := range devices {
			latest := devices[i].Latest
			if latest == nil || now.Sub(latest.BucketAt) > age {
				continue
			}
			if x, ok := latest.Values.Get(m); ok {
				body = append(roomsensor.AppendNumber(fmt.Appendf(body, "%s{%s} ", name, named[i]), x), '\n')
			}
		}
	}
	const seen, status = "roomsensor_last_seen_timestamp_seconds", "roomsensor_status"
	family(seen, "When the last upload of the device arrived.")
	for i := range devices {
		if at := devices[i].LastSeenAt; at != nil {
			seconds := strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', -1, 64)
			body = fmt.Appendf(body, "%s{%s} %s\n", seen, named[i], seconds)
		}
	}
	family(status, "1 for the status that the device has: online, stale or offline.")
	for i := range devices {
		current := roomsensor.StatusAt(now, devices[i].LastSeenAt)
		body = fmt.Appendf(body, "%s{%s,status=\"%s\"} 1\n", status, named[i], current)
	}
	return append(body, "# EOF\n"...)
}

func labelsOf(d *roomsensor.Device, labels []tagLabel) string {
	var text strings.Builder
	fmt.Fprintf(&text, `device_id="%s"`, d.ID)
	if d.DisplayName != nil {
		fmt.Fprintf(&text, `,display_name="%s"`, labelEscapes.Replace(*d.DisplayName))
	}
	for _, l := range labels {
		if value, ok := d.Metadata[l.key]; ok {
			fmt.Fprintf(&text, `,%s="%s"`, l.name, labelEscapes.Replace(value))
		}
	}
	return text.String()
}
