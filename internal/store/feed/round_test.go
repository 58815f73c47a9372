package feed_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestFeedCopied checks that the feed has the readings that a worker copied: straight into the table, because none of
// them was stored, and merged with those that were.
func TestFeedCopied(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.MinCopyRows = 1
	follower := f.newFollower(f.watermark(t), f.Store)
	rows := make([]roomsensor.DeviceMeasurement, 10)
	for _, value := range []float32{1, 2} {
		for i := range rows {
			at := at(feedBuckets[0]).Add(time.Duration(i) * roomsensor.BucketLength)
			rows[i] = co2(f.DeviceID, roomsensor.FormatTime(at), value)
		}
		require.EqualValues(t, len(rows), f.WriteRows(t, rows...))
		follower.catchUp(t)
		follower.requireCopy(t, f.table(t), "value %v", value)
	}
}

// TestFeedRoundEdges checks that a round has the readings of its start and not those of its end, of workers and of other
// programs, in whichever way their places are found.
func TestFeedRoundEdges(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*fixture){
		"a worker": func(f *fixture) { f.WriteRows(t, co2(f.DeviceID, feedBuckets[0], 1)) },
		"another program": func(f *fixture) {
			f.Exec(t, "INSERT INTO readings (device_id, bucket_at, co2_ppm) VALUES ($1, $2, 1)", f.DeviceID, feedBuckets[0])
		},
	} {
		f := setup(t)
		write(f)
		written := f.table(t)[place{f.DeviceID, at(feedBuckets[0])}].IngestedAt
		starts := roomsensor.FeedRound{From: written, To: written.Add(time.Microsecond)}
		ends := roomsensor.FeedRound{From: written.Add(-time.Microsecond), To: written}
		require.True(t, f.wakes(t, starts), name)
		require.False(t, f.wakes(t, ends), name)
		for _, purged := range []time.Duration{0, time.Hour, roomsensor.FeedKeep + 48*time.Hour} { // Batches, days, chunks.
			if purged > 0 {
				f.PurgeFeedAt(t, time.Now().Add(purged))
			}
			require.Equal(t, 1, f.count(t, starts), "%s, purged %v", name, purged)
			require.Zero(t, f.count(t, ends), "%s, purged %v", name, purged)
		}
	}
}

// wakes reports whether a part of the feed wakes requests of the team.
func (f *fixture) wakes(t *testing.T, part roomsensor.FeedRound) bool {
	t.Helper()
	changes, err := f.FeedChanges(t.Context(), []uuid.UUID{f.TeamID}, part)
	require.NoError(t, err)
	return changes.Any || slices.Contains(changes.Devices[f.TeamID], f.DeviceID)
}

// count returns the number of readings of a round.
func (f *fixture) count(t *testing.T, round roomsensor.FeedRound) (n int) {
	t.Helper()
	progress, err := f.EachChange(t.Context(), f.TeamID, roomsensor.FeedQuery{Round: round, Most: 10},
		func(*roomsensor.Change) bool { n++; return true })
	require.NoError(t, err)
	require.True(t, progress.Done)
	return n
}
