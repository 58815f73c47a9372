package workload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/csvenc"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
	"roomsensor/test/proctest"
)

// The roofline compares the processor time of each stage of W16, uploads of one reading, and of the encoding of W3 with
// a floor: the least that does the work of the stage, without anything else.
const (
	// sharedBy is the number of uploads that share a sync and a transaction in the floors, about as in W16.
	sharedBy = 48
	// rooflineTarget is the wanted ratio of a stage to its floor.
	rooflineTarget = 3
	// floorProgram is the floor of the receiver.
	floorProgram = "roomsensor/bench/floor"
)

// roofline measures the floors of uploads of one reading. parts has the times of the service per million readings.
func (s *Suite) roofline(ctx context.Context, t *teams, parts map[string]report.Sample) error {
	texts := make([][]byte, s.CPUUploads)
	for i := range texts {
		at, device := t.bucket(i)
		texts[i] = t.Fleet.Upload(device, roomsensor.Window{From: at, To: at.Add(roomsensor.BucketLength)})
	}
	floors := map[string]func(context.Context, [][]byte) (time.Duration, error){
		"receiver": s.receiveFloor, "NATS": s.appendFloor, "worker": parseFloor, "PostgreSQL": s.storeFloor,
	}
	for _, name := range processorParts {
		row := report.Row{
			ID: "R1", Workload: "CPU per upload of one reading: " + name, Kind: report.Growth, Unit: "µs",
			Against: "its floor", Target: rooflineTarget,
		}
		for round := range s.Rounds + 1 {
			used, err := floors[name](ctx, texts)
			if err != nil {
				return fmt.Errorf("the floor of %s: %w", name, err)
			}
			if round == 0 || len(parts[name]) < round { // To warm up, or the part is not on this machine.
				continue
			}
			row.Ours = append(row.Ours, parts[name][round-1])
			row.Baseline = append(row.Baseline, float64(used.Microseconds())/float64(len(texts)))
		}
		s.Add(row)
	}
	return nil
}

// ownTime returns the processor time of this process that a function takes.
func ownTime(do func() error) (time.Duration, error) {
	before, err := processorUsage()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := processorUsage()
	return after - before, err
}

func processorUsage() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("reading the processor time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// receiveFloor is the program in bench/floor.
func (s *Suite) receiveFloor(ctx context.Context, texts [][]byte) (used time.Duration, err error) {
	program, err := proctest.Build(ctx, s.Dir, floorProgram)
	if err != nil {
		return 0, err
	}
	address, err := proctest.FreeAddress()
	if err != nil {
		return 0, err
	}
	server, err := proctest.Start(proctest.Command{Path: program, Args: []string{address}})
	if err != nil {
		return 0, err
	}
	defer server.Kill()
	if err := server.AwaitReady(ctx, address); err != nil {
		return 0, err
	}
	before, err := server.CPU()
	if err != nil {
		return 0, err
	}
	sender := Sender{
		Client: load.NewClient(), URL: "http://" + address + "/uploads", Bearer: "Bearer floor", Status: http.StatusAccepted,
	}
	defer sender.Client.CloseIdle()
	_, err = load.Each(ctx, SingleConnections, len(texts), func(ctx context.Context, _, i int) error {
		return sender.Post(ctx, texts[i])
	})
	if err != nil {
		return 0, err
	}
	after, err := server.CPU()
	return after - before, err
}

// appendFloor appends the uploads to a file and syncs it as often as there are batches, and reads it once.
func (s *Suite) appendFloor(_ context.Context, texts [][]byte) (used time.Duration, err error) {
	path := filepath.Join(s.Dir, "roofline")
	file, err := os.Create(path) //nolint:gosec // In the directory of the run.
	if err != nil {
		return 0, fmt.Errorf("creating a file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(path)) }()
	return ownTime(func() error {
		for i, text := range texts {
			if _, err := file.Write(text); err != nil {
				return fmt.Errorf("appending an upload: %w", err)
			}
			if i%sharedBy == 0 {
				if err := file.Sync(); err != nil {
					return fmt.Errorf("syncing the uploads: %w", err)
				}
			}
		}
		_, err := os.ReadFile(path) //nolint:gosec // See above.
		return err                  //nolint:wrapcheck // It names the file.
	})
}

// parseFloor parses the uploads as a worker does.
func parseFloor(_ context.Context, texts [][]byte) (time.Duration, error) {
	now := time.Now()
	return ownTime(func() error {
		for _, text := range texts {
			if _, refusal := upload.Parse(text, "", now); refusal != nil {
				return fmt.Errorf("%w: %v", errBody, refusal)
			}
		}
		return nil
	})
}

// storeFloor upserts a reading per upload into a table of its own, in transactions of sharedBy.
func (s *Suite) storeFloor(ctx context.Context, texts [][]byte) (used time.Duration, err error) {
	conn, err := pgx.Connect(ctx, s.Database)
	if err != nil {
		return 0, fmt.Errorf("connecting: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	_, err = conn.Exec(ctx, `DROP TABLE IF EXISTS roofline;
		CREATE TABLE roofline (LIKE readings INCLUDING DEFAULTS, PRIMARY KEY (device_id, bucket_at))`)
	if err != nil {
		return 0, fmt.Errorf("creating a table: %w", err)
	}
	before, ok, err := s.ServerCPU(ctx)
	if err != nil || !ok {
		return 0, err
	}
	now := time.Now()
	ids, buckets, values := make([]uuid.UUID, sharedBy), make([]time.Time, sharedBy), make([]float32, sharedBy)
	for i := range texts {
		at := i % sharedBy
		ids[at], buckets[at], values[at] = s.Fleet.DeviceID(i), roomsensor.BucketOf(now), float32(i)
		if at < sharedBy-1 && i < len(texts)-1 {
			continue
		}
		//nolint:dupword // All metrics have the same value.
		_, err := conn.Exec(ctx, `INSERT INTO roofline AS r
			(device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, measured_at, ingested_at)
			SELECT id, at, v, v, v, v, v, at, now() FROM unnest($1::uuid[], $2::timestamptz[], $3::real[]) u (id, at, v)
			ON CONFLICT (device_id, bucket_at) DO UPDATE SET co2_ppm = excluded.co2_ppm`,
			ids[:at+1], buckets[:at+1], values[:at+1])
		if err != nil {
			return 0, fmt.Errorf("storing readings: %w", err)
		}
	}
	after, _, err := s.ServerCPU(ctx)
	return after - before, err
}

// encodingRoofline compares the processor time of the API for an export with that of its encoding alone.
func (s *Suite) encodingRoofline(ctx context.Context, x *Export) error {
	rows := make([]roomsensor.ExportRow, 0, x.Rows())
	for at := x.Window.From; at.Before(x.Window.To); at = at.Add(roomsensor.BucketLength) {
		for i, id := range x.Devices {
			rows = append(rows, roomsensor.ExportRow{DeviceID: id, BucketAt: at, Values: s.Fleet.Reading(i, at).Values})
		}
	}
	names := make([]roomsensor.NamedDevice, len(x.Devices))
	for i, id := range x.Devices {
		names[i] = roomsensor.NamedDevice{ID: id, DisplayName: new(s.Fleet.Name(i))}
	}
	perReading := func(read func(context.Context) (time.Duration, error)) Side {
		return func(ctx context.Context) (float64, error) {
			used, err := read(ctx)
			return float64(used.Nanoseconds()) / float64(len(rows)), err
		}
	}
	ours, floor, err := s.Compare(ctx, perReading(func(ctx context.Context) (time.Duration, error) {
		before, err := s.api.CPU()
		if err != nil {
			return 0, err
		}
		if _, err := s.ExportTime(x)(ctx); err != nil {
			return 0, err
		}
		after, err := s.api.CPU()
		return after - before, err
	}), perReading(func(context.Context) (time.Duration, error) {
		encoder := csvenc.NewLong(names, csvenc.Columns{Metrics: roomsensor.Metrics[:]})
		return ownTime(func() error {
			buffer := make([]byte, 0, encodedBytes)
			for i := range rows {
				if buffer = encoder.AppendRow(buffer, &rows[i]); len(buffer) > encodedBytes/2 {
					buffer = buffer[:0]
				}
			}
			return nil
		})
	}))
	if err != nil {
		return err
	}
	s.Add(report.Row{
		ID: "R2", Workload: "CPU of the API per reading of an export", Layout: s.Layout, Kind: report.Growth, Unit: "ns",
		Ours: ours, Against: "encoding alone", Baseline: floor, Target: rooflineTarget,
	})
	return nil
}

// encodedBytes is the size of the buffer of encoded lines.
const encodedBytes = 64 << 10
