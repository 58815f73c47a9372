package overview

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// noDevices is the overview of teams without devices.
type noDevices struct{ Backend }

func (noDevices) CurrentDevices(
	context.Context, uuid.UUID, roomsensor.DeviceQuery, roomsensor.Window,
) ([]roomsensor.CurrentDevice, error) {
	return nil, nil
}

// A team takes at most half of the streams, so that another team always gets some. Closed streams are free again.
func TestLiveLimits(t *testing.T) {
	t.Parallel()
	l := newLive(newOverviews(noDevices{}, time.Now, zerolog.Nop()), checkInterval)
	var all []*stream
	fill := func(team uuid.UUID) (n int) {
		for {
			st, err := l.open(uuid.New(), team)
			if err != nil {
				require.ErrorContains(t, err, "kept up to date")
				return n
			}
			all = append(all, st)
			n++
		}
	}
	large := uuid.New()
	require.Equal(t, maxStreams/2, fill(large))
	require.Equal(t, maxStreams/4, fill(uuid.New()))
	for _, st := range all[:maxStreams/2] {
		l.close(st)
	}
	require.NotContains(t, l.watched, large)
	all = all[maxStreams/2:]
	require.NotZero(t, fill(large))
	for _, st := range all {
		l.close(st)
	}
	require.Empty(t, l.watched)
	require.Empty(t, l.streams)
}

func TestChangedSince(t *testing.T) {
	t.Parallel()
	margin := clockMargin.Microseconds()
	w := &overview{process: "here", version: 50_000_000, since: 1000}
	for token, want := range map[string]int64{
		"here-2000":     2000,
		"here-1000":     1000,
		"here-999":      0,
		"there-2000":    0,
		"there-1000":    0,
		"there-9999999": 0,
		"":              0,
		"x":             0,
		"here-x":        0,
	} {
		require.Equal(t, want, w.changedSince(token+"-style", "style"), token)
	}
	later := &overview{process: "there", version: 1000 + margin}
	require.EqualValues(t, 1000, w.changedSince(later.token("style"), "style"), "its clock may be ahead")
	require.Equal(t, w.version, w.changedSince(w.token("style"), "style"))
	require.Zero(t, w.changedSince(w.token("style"), "other"), "of other limits")
}
