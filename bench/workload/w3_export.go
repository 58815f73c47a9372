package workload

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/bench/bar"
	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

// fewDevices are those of an export over the whole history.
const fewDevices = 10

// selection is what one export takes.
type selection struct {
	id, name string
	devices  []uuid.UUID
	window   roomsensor.Window
	shape    string
}

// selections are the exports of W3: of the whole fleet for some hours, and of ten devices for all that they have. The
// newest hours of a fleet are never columns, so beside the layout Columnstore there is an export of older ones.
func (s *suite) selections() []*selection {
	all, few := s.someDevices(s.fleet.Devices), s.someDevices(min(fewDevices, s.fleet.Deep))
	list := []*selection{
		{"W3a", "long, all devices", all, s.lastBuckets(len(all), s.fleet.Recent), "long"},
		{"W3a", "long, 10 devices", few, s.lastBuckets(len(few), s.fleet.Days), "long"},
		{"W3b", "wide, 10 devices", few, s.lastBuckets(len(few), s.fleet.Days), "wide"},
	}
	if slices.Contains(s.Layouts, Columnstore) {
		name := fmt.Sprintf("long, %d devices in chunks that ended", s.fleet.Deep)
		list = append(list, &selection{"W3a", name, s.someDevices(s.fleet.Deep), s.endedBuckets(), "long"})
	}
	return list
}

func (s *suite) someDevices(n int) (ids []uuid.UUID) {
	for i := range n {
		ids = append(ids, s.fleet.DeviceID(i))
	}
	return ids
}

// lastBuckets is the window in which devices, which have so many days, have as many rows as an export may.
func (s *suite) lastBuckets(devices, days int) roomsensor.Window {
	n := min(s.ExportRows/devices, days*bucketsADay)
	return roomsensor.Window{From: s.fleet.Until.Add(-time.Duration(n) * roomsensor.BucketLength), To: s.fleet.Until}
}

// endedBuckets is the last window in chunks that ended in which the devices with the whole history, and no others, have
// as many rows as an export may.
func (s *suite) endedBuckets() roomsensor.Window {
	to := s.ended()
	if recent := s.fleet.RecentFrom(); s.fleet.Deep < s.fleet.Devices && recent.Before(to) {
		to = recent
	}
	n := min(s.ExportRows/s.fleet.Deep, int(to.Sub(s.fleet.From())/roomsensor.BucketLength))
	return roomsensor.Window{From: to.Add(-time.Duration(n) * roomsensor.BucketLength), To: to}
}

// export is W3: a CSV over HTTP, against psql's COPY of the same columns.
func (s *suite) export(ctx context.Context) error {
	for _, x := range s.selections() {
		if err := s.exportOne(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) exportOne(ctx context.Context, x *selection) error {
	if err := s.checkExport(ctx, x); err != nil {
		return err
	}
	get := s.exporting(x)
	ours, theirs, err := s.contest(ctx, get, s.psql(x))
	if err != nil {
		return err
	}
	s.add(report.Row{
		ID: x.id, Workload: fmt.Sprintf("CSV %s, %d rows", x.name, s.exportRows(x)), Layout: s.layout, Kind: report.Time,
		Unit: "s", Ours: ours, Against: "psql COPY", Bar: theirs, Reach: 2, Aim: 3,
	})
	return s.profileAPI(ctx, strings.NewReplacer(" ", "-", ",", "").Replace(strings.ToLower(x.id)+"-"+x.name), get)
}

// exporting is the side of the service.
func (s *suite) exporting(x *selection) side {
	return steadily(func(ctx context.Context) (load.Answer, error) {
		all := s.visitors(1)
		defer all.close()
		return all.list[0].get(ctx, x.path())
	})
}

// psql is the side of COPY; nil where there is no psql.
func (s *suite) psql(x *selection) side {
	if slices.Contains(bar.Missing(), bar.PSQLProgram) {
		return nil
	}
	return steadily(func(ctx context.Context) (a load.Answer, err error) {
		err = bar.Copy(ctx, s.Database, x.query(s.team), func(r io.Reader) (err error) {
			a, err = load.Digest(r)
			return err
		})
		return a, err
	})
}

// steadily times what reads a body, which must be the same every time.
func steadily(read func(context.Context) (load.Answer, error)) side {
	var first load.Answer
	return func(ctx context.Context) (float64, error) {
		began := time.Now()
		answer, err := read(ctx)
		took := time.Since(began).Seconds()
		if first.Bytes == 0 {
			first = answer
		}
		if err == nil && answer.Hash != first.Hash {
			err = errDiffers
		}
		return took, err
	}
}

func (x *selection) path() string {
	path := "/readings.csv?shape=" + x.shape + "&" + span(x.window)
	if len(x.devices) <= fewDevices { // Else all, which is what leaving them out means.
		path += "&devices=" + joined(x.devices)
	}
	return path
}

func joined(ids []uuid.UUID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return strings.Join(texts, ",")
}

// query selects the same in SQL, in the form that costs PostgreSQL least.
func (x *selection) query(team uuid.UUID) string {
	from := fmt.Sprintf(" FROM readings r JOIN devices d ON d.id = r.device_id WHERE d.team_id = '%s'"+
		" AND r.device_id = ANY('{%s}') AND r.bucket_at >= '%s' AND r.bucket_at < '%s'", team, joined(x.devices),
		x.window.From.Format(time.RFC3339), x.window.To.Format(time.RFC3339))
	if x.shape == "wide" {
		return x.pivot() + from + " GROUP BY 1 ORDER BY 1"
	}
	var metrics, mask []string
	for i, m := range roomsensor.Metrics {
		metrics = append(metrics, "r."+m.String())
		mask = append(mask, fmt.Sprintf("((r.%s IS NOT NULL)::int << %d)", m, i))
	}
	return fmt.Sprintf("SELECT r.bucket_at, r.device_id, d.display_name, %s, %s%s ORDER BY r.bucket_at, r.device_id",
		strings.Join(metrics, ", "), strings.Join(mask, " | "), from)
}

// pivot has the devices in the order of their names, which is that of their numbers.
func (x *selection) pivot() string {
	var b strings.Builder
	b.WriteString("SELECT r.bucket_at")
	for _, id := range x.devices {
		for _, m := range roomsensor.Metrics {
			fmt.Fprintf(&b, ", max(r.%s) FILTER (WHERE r.device_id = '%s')", m, id)
		}
	}
	return b.String()
}

func (s *suite) exportRows(x *selection) int {
	return len(x.devices) * int(x.window.To.Sub(x.window.From)/roomsensor.BucketLength)
}

// checkExport compares both bodies, as values, cell by cell.
func (s *suite) checkExport(ctx context.Context, x *selection) error {
	ours, err := s.body(ctx, x.path())
	if err != nil {
		return err
	}
	theirs, err := s.copied(ctx, x)
	if err != nil {
		return err
	}
	a, b := strings.Split(string(ours), "\n"), strings.Split(theirs, "\n")
	if len(a) != len(b) || x.shape == "long" && len(a) != s.exportRows(x)+2 {
		return fmt.Errorf("%w: %d lines, and %d from COPY", errBody, len(a), len(b))
	}
	for i := 1; i < len(a); i++ { // The headers have other names.
		if !equalLines(a[i], b[i]) {
			return fmt.Errorf("%w: line %d is %q, and %q from COPY", errBody, i, a[i], b[i])
		}
	}
	return nil
}

// copied is the body of COPY, all of it.
func (s *suite) copied(ctx context.Context, x *selection) (string, error) {
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return "", fmt.Errorf("connecting: %w", err)
	}
	defer conn.Release()
	var body strings.Builder
	if _, err = conn.Exec(ctx, "SET timezone = 'UTC'"); err == nil {
		_, err = conn.Conn().PgConn().CopyTo(ctx, &body, bar.CopySQL(x.query(s.team)))
	}
	if err != nil {
		return "", fmt.Errorf("copying an export: %w", err)
	}
	return body.String(), nil
}

func equalLines(ours, theirs string) bool {
	a, b := strings.Split(ours, ","), strings.Split(theirs, ",")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && !equalTimes(a[i], b[i]) && !equalNumbers(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equalTimes(ours, theirs string) bool {
	a, err := time.Parse(time.RFC3339, ours)
	if err != nil {
		return false
	}
	b, err := time.Parse("2006-01-02 15:04:05-07", theirs)
	return err == nil && a.Equal(b)
}

func equalNumbers(ours, theirs string) bool {
	a, err := strconv.ParseFloat(ours, 32)
	if err != nil {
		return false
	}
	b, err := strconv.ParseFloat(theirs, 32)
	return err == nil && float32(a) == float32(b)
}
