package api_test

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// An id of another team is as unknown as one that nobody has, also beside an
// assignment and beside ids of the own team.
func TestForeignDevicesAreUnknown(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 31.1", "decision 31.2", "decision 34.6")
	f := setup(t)
	theirs, foreign, block, foreignBlock := number(0x7e, 2), number(0xde, 9), number(0xa5, 1), number(0xa5, 2)
	f.addTeam(t, theirs)
	f.addDevice(t, theirs, foreign, "dev:9")
	f.addReading(t, foreign, start.Add(-time.Hour), 1)
	f.addAssignment(t, deviceID, block, start.Add(-2*time.Hour), nil)
	f.addAssignment(t, foreign, foreignBlock, start.Add(-2*time.Hour), nil)
	own := deviceID.String()
	for _, unknown := range []string{foreign.String(), number(9, 9).String()} {
		for _, query := range []string{
			"devices=" + unknown, "devices=" + own + "," + unknown, "devices=" + unknown + "&assignment_id=" + block.String(),
			"devices=" + own + "," + unknown + "&assignment_id=" + block.String(),
			"devices=" + unknown + "&assignment_id=" + foreignBlock.String(), "shape=wide&last=1m&devices=" + unknown,
		} {
			f.get(t, "/readings.csv?"+query).requireError(t, roomsensor.CodeDeviceNotFound, "devices")
		}
	}
	for _, query := range []string{"", "&devices=" + own} {
		f.get(t, "/readings.csv?assignment_id="+foreignBlock.String()+query).
			requireError(t, roomsensor.CodeAssignmentNotFound, "assignment_id")
	}
}

// An assignment whose device is not among those named leaves the header row
// alone, in either shape.
func TestAssignmentOfAnotherDevice(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 31.3", "decision 31.4")
	f := setup(t)
	second, block := number(0xde, 2), number(0xa5, 1)
	f.addDevice(t, teamID, second, "dev:2")
	f.addReadings(t, deviceID, start.Add(-time.Hour), 3)
	f.addReadings(t, second, start.Add(-time.Hour), 5)
	f.addAssignment(t, deviceID, block, start.Add(-2*time.Hour), nil)
	own, other := deviceID.String(), second.String()
	for query, rows := range map[string]string{
		"&devices=" + other: "0", "&devices=" + other + "," + other: "0", "&devices=" + own + "," + strings.ToUpper(own): "3",
		"&devices=" + other + "," + own: "3", "&devices=" + strings.Repeat(own+",", 999) + own: "3", "": "3",
	} {
		for _, shape := range []string{"long", "wide"} {
			got := f.get(t, "/readings.csv?shape="+shape+"&assignment_id="+block.String()+query)
			require.Equal(t, http.StatusOK, got.status)
			require.Equal(t, rows, got.header.Get("X-Row-Count"))
			require.Equal(t, rows, strconv.Itoa(bytes.Count(got.body, []byte("\n"))-1))
		}
	}
}

// growing is a backend whose readings grow between the parts of an export.
type growing struct {
	api.Backend
	grow func()
}

func (g *growing) OpenExport(ctx context.Context, team uuid.UUID, q roomsensor.ExportQuery) (api.Export, error) {
	export, err := g.Backend.OpenExport(ctx, team, q)
	g.grow()
	return &growingExport{export, g.grow}, err
}

type growingExport struct {
	api.Export
	grow func()
}

func (g *growingExport) Lines() int {
	defer g.grow()
	return g.Export.Lines()
}

func (g *growingExport) Each(ctx context.Context, f func(*roomsensor.ExportRow) error) error {
	return g.Export.Each(ctx, func(row *roomsensor.ExportRow) error { g.grow(); return f(row) })
}

// What arrives while an export runs is not in it, neither in the count nor in
// the rows; the next one has it.
func TestCountAndRowsAreOfOneSnapshot(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 32.2", "decision 32.5")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-20*time.Hour), 50)
	n := 0
	grow := func() {
		f.addReading(t, deviceID, start.Add(-15*time.Hour+time.Duration(n)*5*time.Minute), 1)
		f.exec(t, "UPDATE readings SET co2_ppm = co2_ppm + 1")
		n++
	}
	quiet := f.replica
	for _, shape := range []string{"long", "wide"} {
		f.replica = quiet
		before := f.get(t, "/readings.csv?shape="+shape)
		rows := 50 + n
		f.replica = f.serve(t, &growing{backend{f.store}, grow}, nil)
		got := f.get(t, "/readings.csv?shape="+shape)
		require.Equal(t, strconv.Itoa(rows), got.header.Get("X-Row-Count"))
		require.Equal(t, string(before.body), string(got.body))
	}
	require.Greater(t, n, 100)
}

// Vary stands on every answer of what compresses, and the count of lines ahead
// of a body in any coding.
func TestVaryIsOnEveryAnswerThatMayCompress(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 33.3", "decision 32.2", "decision 32.4")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-20*time.Hour), 50)
	f.addAssignment(t, deviceID, number(0xa5, 1), start.Add(-2*time.Hour), nil)
	id := deviceID.String()
	for _, path := range []string{
		"/devices", "/devices?limit=1", "/devices?metadata.a=b", "/devices/current", "/devices/" + id + "/assignments",
		"/devices/" + id + "/readings", "/devices/" + id + "/readings?last=1m",
		"/readings.csv", "/readings.csv?shape=wide", "/readings.csv?last=1m", "/readings.csv?shape=wide&last=1m",
	} {
		for _, coding := range []string{"", "identity", "gzip", "zstd", "br", "*;q=0"} {
			accept := header("Accept-Encoding", coding)
			get, head := f.get(t, path, accept), f.do(t, http.MethodHead, path, "", accept)
			require.Equal(t, []string{"Accept-Encoding"}, get.header.Values("Vary"))
			require.Equal(t, []string{"Accept-Encoding"}, head.header.Values("Vary"))
			require.Equal(t, get.header.Get("X-Row-Count"), head.header.Get("X-Row-Count"))
			if tag := get.header.Get("ETag"); tag != "" {
				unchanged := f.get(t, path, accept, header("If-None-Match", "*"))
				require.Equal(t, http.StatusNotModified, unchanged.status)
				require.Equal(t, []string{"Accept-Encoding"}, unchanged.header.Values("Vary"))
				continue
			}
			body, err := expand(t, get.header.Get("Content-Encoding"), bytes.NewReader(get.body))
			require.NoError(t, err)
			require.Equal(t, get.header.Get("X-Row-Count"), strconv.Itoa(bytes.Count(body, []byte("\n"))-1))
		}
	}
}
