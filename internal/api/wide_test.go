package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// Ids whose first eight digits are the same, and one that has others.
var (
	alpha  = uuid.MustParse("aaaaaaaa-0000-4000-8000-000000000001")
	alpha2 = uuid.MustParse("aaaaaaaa-0000-4000-8000-000000000002")
	beta   = uuid.MustParse("bbbbbbbb-0000-4000-8000-000000000001")
	gamma  = uuid.MustParse("cccccccc-0000-4000-8000-000000000001")
)

// wideNames are teams and what their devices are called in the wide shape. An
// empty name is none.
var wideNames = map[string]struct {
	contract []string
	team     map[uuid.UUID]string
	want     map[uuid.UUID]string
}{
	"slugs": {
		[]string{"decision 29.3"},
		map[uuid.UUID]string{alpha: "  Gym -- Hall 2!", beta: "BÜRO__3", gamma: "a.b"},
		map[uuid.UUID]string{alpha: "gym_hall_2", beta: "b_ro_3", gamma: "a_b"},
	},
	"unnamed": {
		[]string{"decision 29.4"},
		map[uuid.UUID]string{alpha: "", beta: "室温", gamma: "--"},
		map[uuid.UUID]string{alpha: "device_aaaaaaaa", beta: "device_bbbbbbbb", gamma: "device_cccccccc"},
	},
	"two of a name": {
		[]string{"decision 29.5"},
		map[uuid.UUID]string{alpha: "Gym", beta: "gym!", gamma: "Hall"},
		map[uuid.UUID]string{alpha: "gym_aaaaaaaa", beta: "gym_bbbbbbbb", gamma: "hall"},
	},
	"two of a name and of first digits": {
		[]string{"decision 29.5", "decision 29.6"},
		map[uuid.UUID]string{alpha: "Gym", alpha2: "gym", beta: "GYM"},
		map[uuid.UUID]string{alpha: "gym_" + alpha.String(), alpha2: "gym_" + alpha2.String(), beta: "gym_bbbbbbbb"},
	},
	"unnamed of the same first digits": {
		[]string{"decision 29.4", "decision 29.6"},
		map[uuid.UUID]string{alpha: "", alpha2: "", beta: ""},
		map[uuid.UUID]string{
			alpha: "device_aaaaaaaa_" + alpha.String(), alpha2: "device_aaaaaaaa_" + alpha2.String(), beta: "device_bbbbbbbb",
		},
	},
	"a name like that of an unnamed": {
		[]string{"decision 29.5"},
		map[uuid.UUID]string{alpha: "", beta: "Device AAAAAAAA"},
		map[uuid.UUID]string{alpha: "device_aaaaaaaa_aaaaaaaa", beta: "device_aaaaaaaa_bbbbbbbb"},
	},
	"a name like another's way out": {
		[]string{"decision 29.5", "decision 29.6"},
		map[uuid.UUID]string{alpha: "Gym", beta: "Gym", gamma: "Gym bbbbbbbb"},
		map[uuid.UUID]string{alpha: "gym_aaaaaaaa", beta: "gym_" + beta.String(), gamma: "gym_bbbbbbbb_cccccccc"},
	},
}

// Names do not depend on which devices are selected: each alone has the name
// that it has among all.
func TestNamesOfWideColumns(t *testing.T) {
	t.Parallel()
	for name, tc := range wideNames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Covers(t, append(tc.contract, "decision 29.1", "decision 29.2", "decision 29.7")...)
			f := setup(t)
			f.exec(t, `DELETE FROM devices`)
			var names []string
			for id, display := range tc.team {
				f.exec(t, `INSERT INTO devices (id, team_id, hardware_id, display_name) VALUES ($1, $2, $3, nullif($4, ''))`,
					id, teamID, "dev:"+id.String()[35:], display)
				names = append(names, tc.want[id])
			}
			slices.Sort(names)
			require.Equal(t, names, f.wideNames(t, ""))
			for id, want := range tc.want {
				require.Equal(t, []string{want}, f.wideNames(t, "&devices="+id.String()))
			}
		})
	}
}

// wideNames reads the names of the columns, five to a device.
func (f *fixture) wideNames(t *testing.T, query string) (names []string) {
	t.Helper()
	columns, _ := f.export(t, "?shape=wide"+query)
	require.Equal(t, "bucket_at", columns[0])
	for five := range slices.Chunk(columns[1:], 5) {
		name := strings.TrimSuffix(five[0], ".co2_ppm")
		require.Equal(t, []string{name + ".co2_ppm", name + ".temp_c", name + ".humidity_pct", name + ".lux", name + ".spl_db"}, five)
		names = append(names, name)
	}
	return names
}

// Devices of other teams make no collision, and one of the own team makes one
// even where only the others are selected.
func TestCollisionsAreOfTheTeam(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 29.7")
	f := setup(t)
	f.nameDevice(t, deviceID, "Gym")
	other := number(0x7e, 2)
	f.addTeam(t, other)
	f.addDevice(t, other, alpha, "dev:2")
	f.nameDevice(t, alpha, "Gym")
	require.Equal(t, []string{"gym"}, f.wideNames(t, ""))
	f.addDevice(t, teamID, beta, "dev:3")
	f.nameDevice(t, beta, "gym")
	require.Equal(t, []string{"gym_de000000"}, f.wideNames(t, "&devices="+deviceID.String()))
}

// One line a bucket, with empty cells where a device has none, and columns for
// a device without rows.
func TestRowsOfTheWideShape(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 29.1", "decision 29.2", "decision 32.2")
	f := setup(t)
	for i, name := range []string{"b", "a b", "a"} { // "a" < "a_b" < "b" by bytes.
		id := number(0xdf, i)
		f.addDevice(t, teamID, id, fmt.Sprintf("dev:%d", 10+i))
		f.nameDevice(t, id, name)
		f.addReadings(t, id, start.Add(time.Duration(i-4)*time.Hour), 18) // Half overlaps with the next.
	}
	require.Equal(t, []string{"a", "a_b", "b", "device_de000000"}, f.wideNames(t, ""))
	got := f.do(t, http.MethodHead, "/readings.csv?shape=wide", "")
	require.Equal(t, "42", got.header.Get("X-Row-Count"))
	_, records := f.export(t, "?shape=wide")
	require.Len(t, records, 42)
	for i, r := range records {
		require.Equal(t, roomsensor.FormatTime(start.Add(-4*time.Hour+time.Duration(i)*5*time.Minute)), r["bucket_at"])
		for n, name := range []string{"b", "a_b", "a"} {
			want := ""
			if value := i - 12*n; value >= 0 && value < 18 {
				want = fmt.Sprint(value)
			}
			require.Equal(t, want, r[name+".co2_ppm"])
		}
		require.Empty(t, r["device_de000000.co2_ppm"])
	}
}
