package worker

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

var sampleDay = time.Date(2026, time.November, 20, 10, 0, 0, 0, time.UTC)

// addDevice registers a unit with a sampling.
func (db *database) addDevice(t require.TestingT, sampling roomsensor.Sampling) (device uuid.UUID, unit string) {
	db.units++
	unit = fmt.Sprint("dev:", 1_000_000+db.units)
	d, err := db.CreateDevice(context.Background(), roomsensor.NewDevice{TeamID: db.ours, HardwareID: unit, Sampling: sampling}, sampleDay)
	require.NoError(t, err)
	return d.ID, unit
}

// uploadAt returns a delivery of an upload with measurements at some seconds after sampleDay.
func (db *database) uploadAt(unit string, sequence uint64, readings ...string) *delivery {
	text := `{"hardware_id":"` + unit + `","readings":[` + strings.Join(readings, ",") + `]}`
	return parsed(roomsensor.Arrival{At: sampleDay.Add(time.Hour), Sequence: sequence, Team: &db.ours}, unit, []byte(text))
}

func sampleAt(seconds int, values string) string {
	return fmt.Sprintf(`{"measured_at":%q,%s}`, roomsensor.FormatTime(sampleDay.Add(time.Duration(seconds)*time.Second)), values)
}

// readingsOf returns the readings of a device as text.
func (db *database) readingsOf(t require.TestingT, device uuid.UUID) (list []string) {
	db.query(t, func(scan func(...any)) {
		var text string
		scan(&text)
		list = append(list, text)
	}, `SELECT concat_ws(' ', to_char(bucket_at AT TIME ZONE 'UTC', 'HH24:MI'), to_char(measured_at AT TIME ZONE 'UTC', 'HH24:MI:SS'), coalesce(co2_ppm::text, '-'), coalesce(temp_c::text, '-'))
		FROM readings WHERE device_id = $1 ORDER BY bucket_at`, device)
	return list
}

// modelSample is a measurement of one of two devices.
type modelSample struct {
	Unit, Second int
	Text         string // of its CO2
}

func (s *modelSample) measurement() roomsensor.Measurement {
	m := roomsensor.Measurement{MeasuredAt: sampleDay.Add(time.Duration(s.Second) * time.Second)}
	if x, err := strconv.ParseFloat(s.Text, 32); err == nil {
		m.Values.Set(roomsensor.CO2, float32(x))
	}
	return m
}

// sampleScenario is what two writers store at the same time: each sample is delivered twice, in another order and division.
type sampleScenario struct {
	samples []modelSample
	writers [2][][]modelSample
}

var sampleScenarios = rapid.Custom(func(t *rapid.T) (s sampleScenario) {
	s.samples = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) modelSample {
		return modelSample{
			rapid.IntRange(0, 1).Draw(t, "unit"), 30 * rapid.IntRange(0, 29).Draw(t, "time"),
			rapid.SampledFrom([]string{"0.1", "400.7", "100000", "3e-5", "640", "null"}).Draw(t, "co2"),
		}
	}), 1, 30).Draw(t, "samples")
	for range 2 {
		for order := rapid.Permutation(s.samples).Draw(t, "order"); len(order) > 0; {
			n, writer := rapid.IntRange(1, len(order)).Draw(t, "batch"), rapid.IntRange(0, 1).Draw(t, "writer")
			s.writers[writer] = append(s.writers[writer], order[:n])
			order = order[n:]
		}
	}
	return s
})

// want returns the readings of the scenario: the first device is mean, the second one is whole.
func (s *sampleScenario) want() map[rowID]string {
	buckets := map[rowID]map[time.Time]roomsensor.Measurement{}
	for i := range s.samples {
		m := s.samples[i].measurement()
		key := rowID{s.samples[i].Unit, m.Bucket()}
		if buckets[key] == nil {
			buckets[key] = map[time.Time]roomsensor.Measurement{}
		}
		if known, ok := buckets[key][m.MeasuredAt]; ok {
			m = roomsensor.Merge(known, m)
		}
		buckets[key][m.MeasuredAt] = m
	}
	want := map[rowID]string{}
	for key, measurements := range buckets {
		want[key] = expect(key.Unit == 0, measurements)
	}
	return want
}

// The mean of a bucket is the same for every order, division and repetition of deliveries, and for writers at work at the
// same time; devices that are whole in the same batches are not affected. Each scenario takes some ten transactions.
func TestSamplesModel(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A13.2", "A13.3")
	db := newDatabase(t)
	for seed := range 25 {
		s := sampleScenarios.Example(seed)
		var devices [2]uuid.UUID
		var units [2]string
		devices[0], units[0] = db.addDevice(t, roomsensor.SamplingMean)
		devices[1], units[1] = db.addDevice(t, roomsensor.SamplingWhole)
		var writers errgroup.Group
		for writer, batches := range s.writers {
			writers.Go(func() error {
				for n, batch := range batches {
					var deliveries []*delivery
					for i, sample := range batch {
						deliveries = append(deliveries, db.uploadAt(units[sample.Unit], uint64(10_000*(seed*2+writer+1)+100*n+i),
							sampleAt(sample.Second, `"co2_ppm":`+sample.Text)))
					}
					if _, err := db.writer().write(t.Context(), deliveries); err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(t, writers.Wait(), seed)
		got := map[rowID]string{}
		for unit, device := range devices {
			db.query(t, func(scan func(...any)) {
				var bucket, measured time.Time
				var co2 *float32
				scan(&bucket, &measured, &co2)
				got[rowID{unit, bucket.UTC()}] = describe(measured.UTC(), co2)
			}, "SELECT bucket_at, measured_at, co2_ppm FROM readings WHERE device_id = $1", device)
		}
		require.Equal(t, s.want(), got, seed)
	}
}

// rowID is a unit of a model and a bucket.
type rowID struct {
	Unit   int
	Bucket time.Time
}

func describe(measured time.Time, co2 *float32) string {
	if co2 == nil {
		return roomsensor.FormatTime(measured) + " -"
	}
	return fmt.Sprint(roomsensor.FormatTime(measured), " ", *co2)
}

// expect returns the reading of a bucket: the mean of its measurements, or the last one.
func expect(mean bool, measurements map[time.Time]roomsensor.Measurement) string {
	var times []time.Time
	for at := range measurements {
		times = append(times, at)
	}
	slices.SortFunc(times, time.Time.Compare)
	last := times[len(times)-1]
	if !mean {
		m := measurements[last]
		if x, ok := m.Values.Get(roomsensor.CO2); ok {
			return describe(last, &x)
		}
		return describe(last, nil)
	}
	sum, n := 0.0, 0
	for _, at := range times {
		m := measurements[at]
		if x, ok := m.Values.Get(roomsensor.CO2); ok {
			sum, n = sum+float64(x), n+1
		}
	}
	if n == 0 {
		return describe(last, nil)
	}
	x := float32(sum / float64(n))
	return describe(last, &x)
}

// A change of the sampling concerns what arrives afterwards, but the reading of a bucket with samples is always their mean.
func TestSamplingChange(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A13.4", "A13.5")
	db := newDatabase(t)
	device, unit := db.addDevice(t, roomsensor.SamplingWhole)
	sequence := uint64(0)
	write := func(readings ...string) {
		t.Helper()
		sequence++
		results, err := db.writer().write(t.Context(), []*delivery{db.uploadAt(unit, sequence, readings...)})
		require.NoError(t, err)
		require.True(t, results[0].stored)
		require.Empty(t, results[0].rejects)
	}
	set := func(sampling roomsensor.Sampling) {
		t.Helper()
		require.NoError(t, db.SetSampling(t.Context(), db.ours, device, sampling))
	}
	write(sampleAt(60, `"co2_ppm":600,"temp_c":20`), sampleAt(120, `"co2_ppm":610`), sampleAt(360, `"co2_ppm":700`))
	require.Equal(t, []string{"10:00 10:02:00 610 -", "10:05 10:06:00 700 -"}, db.readingsOf(t, device))
	set(roomsensor.SamplingMean)
	write(sampleAt(240, `"co2_ppm":620,"temp_c":22`), sampleAt(180, `"temp_c":21`))
	require.Equal(t, []string{"10:00 10:04:00 615 21.5", "10:05 10:06:00 700 -"}, db.readingsOf(t, device), "the reading counts as a sample")
	set(roomsensor.SamplingWhole)
	write(sampleAt(30, `"co2_ppm":600`), sampleAt(420, `"co2_ppm":800`), sampleAt(390, `"co2_ppm":1`), sampleAt(600, `"co2_ppm":5`))
	require.Equal(t, []string{"10:00 10:04:00 610 21.5", "10:05 10:07:00 800 -", "10:10 10:10:00 5 -"}, db.readingsOf(t, device))
	versions := db.versions(t)
	write(sampleAt(30, `"co2_ppm":600`), sampleAt(240, `"co2_ppm":620,"temp_c":22`), sampleAt(180, `"temp_c":21`))
	require.Equal(t, versions, db.versions(t), "a repetition changed something")
	require.Equal(t, []string{"5"}, db.texts(t, "SELECT co2_ppm::text FROM device_state WHERE co2_ppm IS NOT NULL"))

	_, err := db.DeleteDevice(t.Context(), device)
	require.NoError(t, err)
	require.Empty(t, db.texts(t, "SELECT device_id::text FROM samples"))
}

// A worker that read the sampling before its change does not replace the mean of samples that another one stored since, and
// loses no measurement that is older than these.
func TestSamplingChangesMeanwhile(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A13.3", "A13.4")
	for _, c := range []struct {
		late      []string
		meanwhile string
		want      []string
	}{
		{
			[]string{sampleAt(60, `"co2_ppm":600`), sampleAt(400, `"co2_ppm":1`)},
			sampleAt(30, `"co2_ppm":500`),
			[]string{"10:00 10:01:00 550 -", "10:05 10:06:40 1 -"},
		},
		{[]string{sampleAt(60, `"co2_ppm":600`)}, sampleAt(180, `"co2_ppm":500`), []string{"10:00 10:03:00 550 -"}},
	} {
		db := newDatabase(t)
		device, unit := db.addDevice(t, roomsensor.SamplingWhole)
		late := db.writer()
		results, err := late.resolve(t.Context(), []*delivery{db.uploadAt(unit, 1, c.late...)})
		require.NoError(t, err)
		require.NoError(t, db.SetSampling(t.Context(), db.ours, device, roomsensor.SamplingMean))
		_, err = db.writer().write(t.Context(), []*delivery{db.uploadAt(unit, 2, c.meanwhile)})
		require.NoError(t, err)
		require.NoError(t, late.commit(t.Context(), assemble(results), false))
		require.Equal(t, c.want, db.readingsOf(t, device))
	}
}
