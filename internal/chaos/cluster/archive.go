package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/chaos/trial"
	"roomsensor/internal/roomsensor"
)

const (
	archiveDevices = 24
	archiveEach    = 10_000
	// archiveRows make an export of some 25 MB, more than all buffers between a process and its client hold, so that it
	// is under way while nobody reads.
	archiveRows = archiveDevices * archiveEach
)

// archive is a team with a history, put there by SQL as a restore does, for exports that take a while.
type archive struct {
	key  string
	from time.Time
	to   time.Time
}

func (w *world) makeArchive(ctx context.Context) error {
	var team struct{ ID uuid.UUID }
	if err := w.trial.Command(ctx, &team, "team", "create", "--name", "Archive"); err != nil {
		return err
	}
	for i := range archiveDevices {
		var made struct {
			DeviceID uuid.UUID `json:"device_id"`
		}
		err := w.trial.Command(ctx, &made, "device", "create", "--team", team.ID.String(),
			"--hardware-id", fmt.Sprintf("dev:777%d", i), "--name", fmt.Sprintf("Archive %d", i))
		if err != nil {
			return err
		}
		w.fleet.Aside = append(w.fleet.Aside, made.DeviceID)
	}
	key, err := w.trial.MakeKey(ctx, team.ID)
	if err != nil {
		return err
	}
	to := w.fleet.Now.Truncate(roomsensor.BucketLength)
	w.archive = &archive{key: key, from: to.Add(-archiveEach * roomsensor.BucketLength), to: to}
	return w.trial.Ask(ctx, w.fillArchive)
}

func (w *world) fillArchive(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `
		INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, measured_at)
		SELECT d, b, 400 + n % 997, 15 + n % 171 / 10.0, 30 + n % 41, n % 1009, 30 + n % 499 / 10.0, b
		FROM unnest($1::uuid[]) d,
		     generate_series($2::timestamptz, $3::timestamptz - interval '5 min', interval '5 min')
		     WITH ORDINALITY s (b, n)`,
		w.fleet.Aside, w.archive.from, w.archive.to)
	if err != nil {
		return fmt.Errorf("filling the archive: %w", err)
	}
	return nil
}

// export is a CSV under way.
type export struct {
	response *http.Response
	client   net.Addr // this end of the connection
	close    func()
}

func (e *export) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		e.client = conn.LocalAddr()
	}
	return conn, err //nolint:wrapcheck // As the transport's own.
}

// open asks for the whole archive, over a connection of its own.
func (a *archive) open(ctx context.Context, api string) (*export, error) {
	e := &export{}
	transport := &http.Transport{DisableCompression: true, DialContext: e.dial}
	window := url.Values{"from": {roomsensor.FormatTime(a.from)}, "to": {roomsensor.FormatTime(a.to)}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+api+"/v1/readings.csv?"+window.Encode(), nil)
	if err != nil {
		return nil, err //nolint:wrapcheck // By those who call.
	}
	request.Header.Set("Authorization", "Bearer "+a.key)
	e.response, err = transport.RoundTrip(request) //nolint:bodyclose // By close.
	if err != nil {
		return nil, err //nolint:wrapcheck // By those who call.
	}
	e.close = func() {
		_ = e.response.Body.Close()
		transport.CloseIdleConnections()
	}
	if e.response.StatusCode != http.StatusOK {
		e.close()
		return nil, fmt.Errorf("the API answered %s", e.response.Status)
	}
	return e, nil
}

// rows reads to the end, and counts the lines after the header.
func (e *export) rows() (n int, err error) {
	lines := bufio.NewReader(e.response.Body)
	for {
		_, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return n - 1, nil
		}
		if err != nil {
			return n - 1, err //nolint:wrapcheck // By those who call.
		}
		n++
	}
}

// whole reads the archive once.
func (a *archive) whole(ctx context.Context, api string) error {
	e, err := a.open(ctx, api)
	if err != nil {
		return err
	}
	defer e.close()
	n, err := e.rows()
	if err == nil && n != archiveRows {
		err = fmt.Errorf("an export ended in order after %d of %d rows", n, archiveRows)
	}
	return err
}

var errNotBroken = errors.New("an export ended in order although its process had died")

// breakExport kills the process that serves an export, in the middle. The client must see that, and its next request
// over the same address must succeed.
func (f *faults) breakExport(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e, err := f.archive.open(ctx, f.trial.API)
	if err != nil {
		return fmt.Errorf("asking for an export: %w", err)
	}
	defer e.close()
	if _, err := e.response.Body.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("reading the first byte of an export: %w", err)
	}
	victim := f.apis.who(e.client)
	if victim == nil {
		return errNobody
	}
	f.hit(victim.member.member)
	if err := victim.member.kill(ctx); err != nil {
		return err
	}
	n, err := e.rows()
	if err == nil {
		return fmt.Errorf("%w: %d rows", errNotBroken, n)
	}
	f.Say("the export broke after %d of %d rows: %v", n, archiveRows, err)
	began := time.Now()
	if err := f.archive.whole(ctx, f.trial.API); err != nil {
		return fmt.Errorf("asking again for the export: %w", err)
	}
	f.note("retry took %.1f s", time.Since(began).Seconds())
	if err := trial.Pause(ctx, f.options.Down); err != nil {
		return err
	}
	return victim.member.restart(ctx)
}
