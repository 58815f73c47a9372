package csvenc_test

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

var (
	first  = uuid.MustParse("11111111-0000-4000-8000-000000000001")
	second = uuid.MustParse("22222222-0000-4000-8000-000000000002")
	third  = uuid.MustParse("11111111-0000-4000-8000-000000000003")
	noon   = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

// allColumns are the columns of an export without parameters.
var allColumns = csvenc.Columns{Metrics: roomsensor.Metrics[:]}

func named(id uuid.UUID, name string) roomsensor.NamedDevice {
	return roomsensor.NamedDevice{ID: id, DisplayName: &name}
}

// reading returns a row with one value per metric, in order; -1 and missing values at the end mean null.
func reading(device uuid.UUID, at time.Time, values ...float32) roomsensor.ExportRow {
	row := roomsensor.ExportRow{DeviceID: device, BucketAt: at}
	for i, x := range values {
		if x != -1 {
			row.Values.Set(roomsensor.Metric(i), x)
		}
	}
	return row
}

type shape interface {
	AppendHeader(dst []byte) []byte
	AppendRow(dst []byte, row *roomsensor.ExportRow) []byte
	AppendEnd(dst []byte) []byte
}

func encode(l shape, rows ...roomsensor.ExportRow) string {
	text := l.AppendHeader(nil)
	for i := range rows {
		text = l.AppendRow(text, &rows[i])
	}
	return string(l.AppendEnd(text))
}

func TestGuard(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "Gym": "Gym", "1": "1", "'": "'", "a=b": "a=b", "1=1": "1=1",
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM": "'@SUM", "\tx": "'\tx", "\rx": "'\rx",
	} {
		require.Equal(t, want, csvenc.Guard(text))
	}
	l := csvenc.NewLong([]roomsensor.NamedDevice{named(first, "=A1,B1")}, allColumns)
	require.Contains(t, encode(l, reading(first, noon)), `,"'=A1,B1",`, "guarded, then quoted")
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Gym": "gym", "Gym A": "gym_a", "  Gym -- A!  ": "gym_a", "Büro 3": "b_ro_3", "室": "", "...": "",
		"_x_": "x", "A.B": "a_b", "42": "42",
	} {
		require.Equal(t, want, csvenc.Slug(name), name)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 29 b", "decision 29 c", "decision 29 e", "decision 29 f", "decision 29 g")
	for name, tc := range map[string]struct {
		team []roomsensor.NamedDevice
		want map[uuid.UUID]string
	}{
		"different": {
			[]roomsensor.NamedDevice{named(first, "Gym"), named(second, "Hall")},
			map[uuid.UUID]string{first: "gym", second: "hall"},
		},
		"every member of a collision": {
			[]roomsensor.NamedDevice{named(first, "Gym"), named(second, "gym!")},
			map[uuid.UUID]string{first: "gym_11111111", second: "gym_22222222"},
		},
		"the same first digits": {
			[]roomsensor.NamedDevice{named(first, "Gym"), named(third, "Gym"), named(second, "Gym")},
			map[uuid.UUID]string{
				first:  "gym_11111111-0000-4000-8000-000000000001",
				third:  "gym_11111111-0000-4000-8000-000000000003",
				second: "gym_22222222",
			},
		},
		"unnamed": {
			[]roomsensor.NamedDevice{{ID: first}, named(second, "室")},
			map[uuid.UUID]string{first: "device_11111111", second: "device_22222222"},
		},
		"a name like an id": {
			[]roomsensor.NamedDevice{{ID: first}, named(second, "Device 11111111")},
			map[uuid.UUID]string{first: "device_11111111_11111111", second: "device_11111111_22222222"},
		},
		"a name like another's way out": {
			[]roomsensor.NamedDevice{named(first, "Gym"), named(second, "Gym"), named(third, "Gym 22222222")},
			map[uuid.UUID]string{
				first:  "gym_11111111",
				second: "gym_22222222-0000-4000-8000-000000000002",
				third:  "gym_22222222_11111111",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, csvenc.Names(tc.team))
		})
	}
}

// FuzzLong parses the long shape with encoding/csv and compares.
func FuzzLong(f *testing.F) {
	for _, seed := range []string{"Gym", `a,"b"`, "=1", "x\ny", "\r\n", "", "'", `"`, "\t"} {
		f.Add(seed, float32(21.4), uint8(3))
	}
	f.Fuzz(func(t *testing.T, name string, x float32, mask uint8) {
		row := roomsensor.ExportRow{DeviceID: first, BucketAt: noon}
		for _, m := range roomsensor.Metrics {
			if mask&(1<<m) != 0 {
				row.Values.Set(m, x)
			}
		}
		text := encode(csvenc.NewLong([]roomsensor.NamedDevice{named(first, name)}, allColumns), row, row)
		records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		require.NoError(t, err, text)
		require.Len(t, records, 3)
		require.Equal(t, records[1], records[2])
		// The reader turns CR LF within quotes into LF.
		require.Equal(t, strings.ReplaceAll(csvenc.Guard(name), "\r\n", "\n"), records[1][2])
		require.NotContains(t, "=+-@\t\r", firstOf(records[1][2]))
	})
}

func firstOf(text string) string {
	if text == "" {
		return "none"
	}
	return text[:1]
}

// FuzzNames checks that names differ from each other and do not depend on the order of the team (decision 29).
func FuzzNames(f *testing.F) {
	f.Add("Gym", "gym", "Gym 11111111")
	f.Add("", "device 11111111", "x")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		team := []roomsensor.NamedDevice{named(first, a), named(second, b), named(third, c)}
		names := csvenc.Names(team)
		distinct := map[string]bool{}
		for _, name := range names {
			require.Regexp(t, `^[a-z0-9][a-z0-9_-]*$`, name)
			distinct[name] = true
		}
		require.Len(t, distinct, len(team))
		require.Equal(t, names, csvenc.Names([]roomsensor.NamedDevice{team[2], team[0], team[1]}))
	})
}
