package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/test/ledger"
	"roomsensor/test/proctest"
)

func TestStandbyReads(t *testing.T) {
	t.Parallel()
	r := &standbyReads{fallbacks: map[string]int{}}
	for _, on := range []string{"1", "0"} {
		metrics, err := proctest.ParseMetrics(strings.NewReader(`# TYPE roomsensor_database_standby_reads_total counter
roomsensor_database_standby_reads_total 12
# TYPE roomsensor_database_standby_fallbacks_total counter
roomsensor_database_standby_fallbacks_total{reason="lag"} 2
roomsensor_database_standby_fallbacks_total{reason="left_out"} 1e+03
# TYPE roomsensor_database_standby_used gauge
roomsensor_database_standby_used{standby="postgres-1:5432"} 0
roomsensor_database_standby_used{standby="postgres-2:5432"} ` + on + `
go_goroutines 40
`))
		require.NoError(t, err)
		require.Equal(t, on == "1", r.add(metrics, "postgres-2"))
	}
	require.Equal(t, &standbyReads{served: 24, fallbacks: map[string]int{"lag": 4, "left_out": 2000}}, r)
}

func TestReadsCheckRows(t *testing.T) {
	t.Parallel()
	device, other := uuid.New(), uuid.New()
	r := &reads{teams: map[uuid.UUID]int{device: 0, other: 1}, rows: map[ledger.Key]bool{}}
	at := time.Date(2026, time.November, 20, 10, 0, 0, 0, time.UTC)
	key := func(minutes int) ledger.Key {
		return ledger.KeyOf(device, at.Add(time.Duration(minutes)*time.Minute))
	}
	_, _, want := lastHour(r.known())
	require.Empty(t, want)
	r.add([]ledger.Key{key(-5), key(0), {Device: other, Bucket: at.Unix()}})
	r.add([]ledger.Key{key(0), key(55)})
	require.Len(t, r.known(), 3, "each reading of the first team once")
	of, hour, want := lastHour(r.known())
	require.Equal(t, device, of)
	require.Equal(t, at, hour.From)
	require.Equal(t, at.Add(time.Hour), hour.To)
	require.Len(t, want, 2)
	require.NoError(t, checkRows(want, map[ledger.Key]bool{key(0): true, key(55): true}))
	require.ErrorIs(t, checkRows(want, map[ledger.Key]bool{key(0): true}), errStale)
}
