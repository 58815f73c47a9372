package workload

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/bench/baseline"
	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

// FewDevices is the number of devices of an export of the whole history.
const FewDevices = 10

// Export is an export of W3.
type Export struct {
	ID, Name string
	Devices  []uuid.UUID
	Window   roomsensor.Window
	Shape    string
}

// Exports returns the exports of W3: of all devices for some hours, and of ten devices for the whole history. The
// newest readings are never in the columnstore, so with that layout there is an export of older ones too.
func (s *Suite) Exports() []*Export {
	all, few := s.someDevices(s.Fleet.Devices), s.someDevices(min(FewDevices, s.Fleet.Deep))
	list := []*Export{
		{"W3a", "long, all devices", all, s.lastBuckets(len(all), s.Fleet.Recent), "long"},
		{"W3a", "long, 10 devices", few, s.lastBuckets(len(few), s.Fleet.Days), "long"},
		{"W3b", "wide, 10 devices", few, s.lastBuckets(len(few), s.Fleet.Days), "wide"},
	}
	if slices.Contains(s.Layouts, Columnstore) {
		name := fmt.Sprintf("long, %d devices in chunks that ended", s.Fleet.Deep)
		list = append(list, &Export{"W3a", name, s.someDevices(s.Fleet.Deep), s.endedBuckets(), "long"})
	}
	return list
}

func (s *Suite) someDevices(n int) (ids []uuid.UUID) {
	for i := range n {
		ids = append(ids, s.Fleet.DeviceID(i))
	}
	return ids
}

// lastBuckets returns the newest window in which so many devices with so many days have ExportRows readings.
func (s *Suite) lastBuckets(devices, days int) roomsensor.Window {
	n := min(s.ExportRows/devices, days*BucketsPerDay)
	return roomsensor.Window{From: s.Fleet.Until.Add(-time.Duration(n) * roomsensor.BucketLength), To: s.Fleet.Until}
}

// endedBuckets returns the newest window in ended chunks in which the deep devices, and no others, have ExportRows
// readings.
func (s *Suite) endedBuckets() roomsensor.Window {
	to := s.endOfEndedChunks()
	if recent := s.Fleet.RecentFrom(); s.Fleet.Deep < s.Fleet.Devices && recent.Before(to) {
		to = recent
	}
	n := min(s.ExportRows/s.Fleet.Deep, int(to.Sub(s.Fleet.From())/roomsensor.BucketLength))
	return roomsensor.Window{From: to.Add(-time.Duration(n) * roomsensor.BucketLength), To: to}
}

// export is W3: a CSV export, compared with psql's COPY of the same columns.
func (s *Suite) export(ctx context.Context) error {
	for i, x := range s.Exports() {
		err := s.exportOne(ctx, x)
		if err == nil && i == 0 {
			err = s.encodingRoofline(ctx, x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Suite) exportOne(ctx context.Context, x *Export) error {
	if err := s.CheckExport(ctx, x); err != nil {
		return err
	}
	ours, theirs, err := s.Compare(ctx, s.ExportTime(x), s.psql(x))
	if err != nil {
		return err
	}
	s.Add(report.Row{
		ID: x.ID, Workload: fmt.Sprintf("CSV %s, %d rows", x.Name, x.Rows()), Layout: s.Layout, Kind: report.Time,
		Unit: "s", Ours: ours, Against: "psql COPY", Baseline: theirs, Minimum: 2, Target: 3,
	})
	return nil
}

// ExportTime returns the side of the service, in seconds.
func (s *Suite) ExportTime(x *Export) Side {
	return timed(func(ctx context.Context) (load.Answer, error) {
		c := s.newClients(1)[0]
		defer c.http.CloseIdle()
		return c.get(ctx, x.path())
	})
}

// psql returns the side of COPY, or nil if psql is not installed.
func (s *Suite) psql(x *Export) Side {
	path, ok := s.findTool(baseline.PSQLProgram)
	if !ok {
		return nil
	}
	return timed(func(ctx context.Context) (a load.Answer, err error) {
		err = baseline.Copy(ctx, path, s.Database, x.query(s.team), func(r io.Reader) (err error) {
			a, err = load.Digest(r)
			return err
		})
		return a, err
	})
}

// timed returns the seconds that read takes. The body must be the same every time.
func timed(read func(context.Context) (load.Answer, error)) Side {
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

func (x *Export) path() string {
	path := "/readings.csv?shape=" + x.Shape + "&" + span(x.Window)
	if len(x.Devices) <= FewDevices { // Otherwise all, which is the default.
		path += "&devices=" + x.ids()
	}
	return path
}

func (x *Export) ids() string { return strings.Join(uuid.UUIDs(x.Devices).Strings(), ",") }

// query returns the same export in SQL, in the form that PostgreSQL executes fastest.
func (x *Export) query(team uuid.UUID) string {
	from := fmt.Sprintf(" FROM readings r JOIN devices d ON d.id = r.device_id WHERE d.team_id = '%s'"+
		" AND r.device_id = ANY('{%s}') AND r.bucket_at >= '%s' AND r.bucket_at < '%s'", team, x.ids(),
		x.Window.From.Format(time.RFC3339), x.Window.To.Format(time.RFC3339))
	if x.Shape == "wide" {
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

// pivot selects the columns of the wide shape, ordered by device name.
func (x *Export) pivot() string {
	var b strings.Builder
	b.WriteString("SELECT r.bucket_at")
	for _, id := range x.Devices {
		for _, m := range roomsensor.Metrics {
			fmt.Fprintf(&b, ", max(r.%s) FILTER (WHERE r.device_id = '%s')", m, id)
		}
	}
	return b.String()
}

// Rows returns the number of rows.
func (x *Export) Rows() int {
	return len(x.Devices) * int(x.Window.To.Sub(x.Window.From)/roomsensor.BucketLength)
}

// CheckExport compares the bodies of both sides line by line.
func (s *Suite) CheckExport(ctx context.Context, x *Export) error {
	ours, err := s.body(ctx, x.path())
	if err != nil {
		return err
	}
	theirs, err := s.copyBody(ctx, x)
	if err != nil {
		return err
	}
	a, b := strings.Split(string(ours), "\n"), strings.Split(theirs, "\n")
	if len(a) != len(b) || x.Shape == "long" && len(a) != x.Rows()+2 {
		return fmt.Errorf("%w: %d lines, and %d from COPY", errBody, len(a), len(b))
	}
	for i := 1; i < len(a); i++ { // The headers differ.
		if !equalLines(a[i], b[i]) {
			return fmt.Errorf("%w: line %d is %q, and %q from COPY", errBody, i, a[i], b[i])
		}
	}
	return nil
}

// copyBody returns the output of COPY.
func (s *Suite) copyBody(ctx context.Context, x *Export) (string, error) {
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return "", fmt.Errorf("connecting: %w", err)
	}
	defer conn.Release()
	var body strings.Builder
	if _, err = conn.Exec(ctx, "SET timezone = 'UTC'"); err == nil {
		_, err = conn.Conn().PgConn().CopyTo(ctx, &body, baseline.CopySQL(x.query(s.team)))
	}
	if err != nil {
		return "", fmt.Errorf("copying an export: %w", err)
	}
	return body.String(), nil
}

// equalLines compares a line of the service with one of COPY, which differ in the format of the time.
func equalLines(ours, theirs string) bool {
	bucket, values, _ := strings.Cut(theirs, ",")
	at, err := time.Parse("2006-01-02 15:04:05-07", bucket)
	return ours == theirs || err == nil && ours == at.Format(time.RFC3339)+","+values
}
