package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// february2015 is the window of the samples.
var february2015 = client.Between(
	time.Date(2015, time.February, 1, 0, 0, 0, 0, time.UTC), time.Date(2015, time.March, 1, 0, 0, 0, 0, time.UTC))

// sample is one measurement of a logger, with its values as decimals; a value that was not measured is empty.
type sample struct {
	at     time.Time
	values [roomsensor.MetricCount]string
}

// officeSamples returns about one measurement per minute, of which the last one in each 5 minutes is the reading.
func officeSamples(seed uint64, n int) []sample {
	random := rand.New(rand.NewPCG(seed, 1))
	at := time.Date(2015, time.February, 4, 17, 51, 0, 0, time.UTC)
	decimal := func(least, span float64, digits int) string {
		return strconv.FormatFloat(least+span*random.Float64(), 'f', digits, 64)
	}
	samples := make([]sample, n)
	for i := range samples {
		samples[i].at = at.Add(-time.Duration(random.IntN(2)) * time.Second)
		samples[i].values[roomsensor.CO2] = decimal(700, 300, 13)
		samples[i].values[roomsensor.Temp] = decimal(20, 3, 2)
		samples[i].values[roomsensor.Humidity] = decimal(25, 5, 13)
		if i%60 != 0 {
			samples[i].values[roomsensor.Lux] = decimal(0, 450, 0)
		}
		at = at.Add(time.Minute)
	}
	return samples
}

// packed returns uploads, as JSON lines, of at most size measurements each.
func packed(unit string, samples []sample, size int) (lines []string) {
	for part := range slices.Chunk(samples, size) {
		readings := make([]string, len(part))
		for i := range part {
			fields := []string{`"measured_at":"` + roomsensor.FormatTime(part[i].at) + `"`}
			for _, m := range roomsensor.Metrics {
				if part[i].values[m] != "" {
					fields = append(fields, `"`+m.String()+`":`+part[i].values[m])
				}
			}
			readings[i] = "{" + strings.Join(fields, ",") + "}"
		}
		lines = append(lines, fmt.Sprintf(`{"hardware_id":%q,"readings":[%s]}`, unit, strings.Join(readings, ",")))
	}
	return lines
}

// expectedCSV returns the rows that the samples of a device must have in the export: for each bucket the later
// measurement, in the shortest decimals of 32 bits.
func expectedCSV(t *testing.T, device, name string, samples []sample) (rows []string) {
	t.Helper()
	byBucket := map[string]*sample{}
	for i := range samples {
		bucket := roomsensor.FormatTime(roomsensor.BucketOf(samples[i].at))
		if before := byBucket[bucket]; before == nil || !before.at.After(samples[i].at) {
			byBucket[bucket] = &samples[i]
		}
	}
	for bucket, s := range byBucket {
		row, mask := bucket+","+device+","+name, 0
		for m, text := range s.values {
			row += ","
			if text != "" {
				x, err := strconv.ParseFloat(text, 32)
				require.NoError(t, err)
				row += strconv.FormatFloat(x, 'f', -1, 32)
				mask |= 1 << m
			}
		}
		rows = append(rows, fmt.Sprint(row, ",", mask))
	}
	slices.Sort(rows)
	return rows
}

// TestUploadToRead uploads the log of two devices and reads it as CSV. The same measurements again, in
// random order and in uploads of another size, change no row.
func TestUploadToRead(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 38 a", "decision 38 b", "decision 1 c", "decision 1 d")
	e := newService(t)
	feed := func(lines []string) {
		r := e.run(strings.NewReader(strings.Join(lines, "\n")), "upload", "-")
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, len(lines), strings.Count(r.out, "\n"), "one receipt per line")
		e.settle()
	}
	const seed = 7
	random := rand.New(rand.NewPCG(seed, 2))
	var again []string
	want := map[string][]string{}
	for i, n := range []int{2400, 3100} {
		unit, name := fmt.Sprint("dev:", i+1), fmt.Sprint("Room ", i+1)
		device, samples := e.newDevice(unit, "--name", name), officeSamples(seed+uint64(i), n)
		feed(packed(unit, samples, 60))
		want[device] = expectedCSV(t, device, name, samples)
		random.Shuffle(n, func(a, b int) { samples[a], samples[b] = samples[b], samples[a] })
		again = append(again, packed(unit, samples, 7)...)
	}
	for device, rows := range want {
		header, body, _ := strings.Cut(e.api().csv(february2015, device), "\n")
		require.Equal(t, "bucket_at,device_id,display_name,co2_ppm,temp_c,humidity_pct,lux,spl_db,valid_mask", header)
		require.Equal(t, rows, strings.Split(strings.TrimSuffix(body, "\n"), "\n"))
	}

	for _, shown := range e.api().current() {
		require.Equal(t, client.StatusOnline, shown.Status, "the status follows the arrival, not the measurements")
		require.Equal(t, "2015-02", shown.Latest.BucketAt.Format("2006-01"))
	}

	before := e.storedReadings()
	random.Shuffle(len(again), func(a, b int) { again[a], again[b] = again[b], again[a] })
	feed(again)
	require.Equal(t, before, e.storedReadings())
	require.Empty(t, e.list("rejects", "list"))
}

// TestUploadShowsInAPI covers what a device sends: at once, late, and from other hardware.
func TestUploadShowsInAPI(t *testing.T) {
	t.Parallel()
	e := newService(t)
	e.receiver = e.start("ingest", "--no-worker")
	conformance.Covers(t, "spec 5, rule 3, default")
	e.key = e.field("key", "key", "create", "--team", e.team)
	require.Equal(t, []client.Scope{client.ScopeRead}, e.api().team().APIKey.Scopes, "the default scope")
	e.checkNewReadings("dev:1")
	e.checkLateBurst("dev:2")
	e.checkNewHardware("dev:3", "dev:4")
}

// readingsSince returns the readings of a device since an instant, newest first.
func (e *streamEnv) readingsSince(device string, since time.Time) []client.Reading {
	e.t.Helper()
	return e.api().readings(device, client.Window{From: since})
}

// uploadSeries uploads n measurements of CO2 from an instant on, 5 minutes apart. It returns the bounds of the arrival,
// with a minute for differences between clocks.
func (e *streamEnv) uploadSeries(unit, more string, from time.Time, n int) (after, before time.Time) {
	e.t.Helper()
	after = time.Now().Add(-time.Minute)
	measured := make([]string, n)
	for i := range measured {
		at := from.Add(time.Duration(i) * roomsensor.BucketLength)
		measured[i] = fmt.Sprintf(`{"measured_at":%q,"co2_ppm":%d,"temp_c":null}`, roomsensor.FormatTime(at), 400+i)
	}
	got := e.upload(fmt.Sprintf(`{"hardware_id":%q,%s"readings":[%s]}`, unit, more, strings.Join(measured, ",")))
	require.Equal(e.t, 202, got.status, got.body)
	e.settle()
	return after, time.Now().Add(time.Minute)
}

// checkNewReadings checks that there is one reading per 5 minutes, in the bucket of its time, with any signal.
func (e *streamEnv) checkNewReadings(unit string) {
	e.t.Helper()
	conformance.Covers(e.t, "spec 1, interval", "spec 1, conventions, rule 2", "spec 2, reading, bucket_at",
		"spec 2, reading, ingested_at", "spec 2, signal, rssi_dbm", "spec 2, signal, bars", "spec 2, signal, weak",
		"spec 2, device, signal", "spec 2, device, last_seen_at", "spec 8, measurement_interval")
	device := e.newDevice(unit)
	require.Nil(e.t, e.api().device(device).LastSeenAt)
	first := roomsensor.BucketOf(time.Now()).Add(-time.Hour)
	after, before := e.uploadSeries(unit, `"signal":{"rssi_dbm":-119,"bars":0},`, first.Add(3*time.Second), 12)

	readings := e.readingsSince(device, first)
	require.Len(e.t, readings, 12)
	for i, reading := range readings {
		require.Equal(e.t, first.Add(time.Duration(11-i)*roomsensor.BucketLength), reading.BucketAt)
		require.Equal(e.t, float64(400+11-i), *reading.CO2PPM)
		for _, missing := range []*float64{reading.TempC, reading.HumidityPct, reading.Lux, reading.SPLDB} {
			require.Nil(e.t, missing, "a missing value is null, never zero")
		}
		require.WithinRange(e.t, reading.IngestedAt, after, before)
	}
	shown := e.api().device(device)
	require.WithinRange(e.t, *shown.LastSeenAt, after, before)
	require.Equal(e.t, client.Signal{RSSIDBM: new(-119), Bars: new(0)}, shown.Signal)

	e.uploadSeries(unit, `"signal":{"rssi_dbm":-71,"bars":4},`, first.Add(3*time.Second), 1)
	require.Equal(e.t, client.Signal{RSSIDBM: new(-71), Bars: new(4)}, e.api().device(device).Signal, "the signal of the last upload")
	require.Len(e.t, e.readingsSince(device, first), 12)
}

// checkLateBurst checks a device that was offline and uploads its buffered readings.
func (e *streamEnv) checkLateBurst(unit string) {
	e.t.Helper()
	conformance.Covers(e.t, "spec 1, conventions, rule 3, burst", "spec 1, conventions, rule 3, offline", "spec 3, status, offline_to_online",
		"spec 3, status, stale_to_online", "spec 3, status, upload", "spec 2, device, last_seen_at", "spec 2, device, status")
	device := e.newDevice(unit)
	require.Equal(e.t, client.StatusOffline, e.api().device(device).Status)
	start := roomsensor.BucketOf(time.Now()).Add(-72 * time.Hour)
	sent := 0
	for _, away := range []struct {
		since  string
		status client.Status
	}{{"100 hours", client.StatusOffline}, {"2 hours", client.StatusStale}, {"25 hours", client.StatusOffline}} {
		e.exec(`UPDATE device_state SET last_seen_at = now() - $2::text::interval WHERE device_id = $1`, device, away.since)
		require.Equal(e.t, away.status, e.api().device(device).Status)

		next := start.Add(time.Duration(sent) * roomsensor.BucketLength)
		after, before := e.uploadSeries(unit, `"sent_at":"2020-01-01T00:00:00Z",`, next, 100)
		sent += 100
		shown := e.api().device(device)
		require.Equal(e.t, client.StatusOnline, shown.Status)
		require.WithinRange(e.t, *shown.LastSeenAt, after, before)
		readings := e.readingsSince(device, start)
		require.Len(e.t, readings, sent)
		require.Equal(e.t, start.Add(time.Duration(sent-1)*roomsensor.BucketLength), readings[0].BucketAt)
		require.WithinRange(e.t, readings[0].IngestedAt, after, before)
		require.Equal(e.t, start, readings[sent-1].BucketAt)
	}
}

// checkNewHardware checks that a device keeps its id and readings through new firmware and new hardware.
func (e *streamEnv) checkNewHardware(unit, next string) {
	e.t.Helper()
	conformance.Covers(e.t, "spec 2, device, device_id, permanent", "spec 2, device, firmware_version", "spec 2, device, hardware_id, form")
	device := e.newDevice(unit)
	first := roomsensor.BucketOf(time.Now()).Add(-30 * time.Minute)
	requireShown := func(unit string, firmware *string, readings int) {
		e.t.Helper()
		shown := e.api().device(device)
		require.Equal(e.t, []any{device, unit, firmware}, []any{shown.DeviceID.String(), shown.HardwareID, shown.FirmwareVersion})
		require.Len(e.t, e.readingsSince(device, first), readings)
	}
	requireShown(unit, nil, 0)
	e.uploadSeries(unit, `"firmware_version":"1.9.3",`, first, 1)
	requireShown(unit, new("1.9.3"), 1)
	e.uploadSeries(unit, `"firmware_version":"2.0.0",`, first.Add(5*time.Minute), 1)
	requireShown(unit, new("2.0.0"), 2)
	e.command("device", "replace-hardware", device, "--hardware-id", next, "--at", roomsensor.FormatTime(first.Add(10*time.Minute)))
	requireShown(next, new("2.0.0"), 2)
	e.uploadSeries(next, `"firmware_version":"2.0.1",`, first.Add(10*time.Minute), 1)
	requireShown(next, new("2.0.1"), 3)
}
