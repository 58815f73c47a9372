package main

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

var (
	one = uuid.MustParse("00000000-0000-0000-0000-000000000001")
	two = uuid.MustParse("00000000-0000-0000-0000-000000000002")
)

// values are the first metrics, in their order.
func values(xs ...float32) (v roomsensor.Values) {
	for i, x := range xs {
		v.Set(roomsensor.Metrics[i], x)
	}
	return v
}

func TestAppendLine(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_763_700_000, 0)
	full, gap := values(412, 21.31, 40.5, 0, 35.2), values(412)
	gap.Set(roomsensor.Sound, 35)
	b := AppendLine(nil, one, at, &full)
	require.Equal(t, "readings,device=00000000-0000-0000-0000-000000000001 "+
		"co2_ppm=412,temp_c=21.31,humidity_pct=40.5,lux=0,spl_db=35.2 1763700000\n", string(b))
	require.Equal(t, "readings,device=00000000-0000-0000-0000-000000000002 co2_ppm=412,spl_db=35 1763700000\n",
		string(AppendLine(nil, two, at, &gap)))
}
