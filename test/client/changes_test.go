package client_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/test/proctest"
)

// copyOf is what a follower keeps: the last state of each reading, and the position after it.
type copyOf struct {
	readings map[string]client.DeviceReading
	position client.Position
	deleted  []client.ReadingDeletion
}

func (k *copyOf) store(page client.Changes) {
	for _, r := range page.Readings {
		k.readings[r.DeviceID.String()+r.BucketAt.String()] = r
	}
	k.deleted = append(k.deleted, page.Deleted...)
	k.position = page.Position
}

// TestFollow checks that a follower that begins again at its position every now and then has every reading, and that a
// position goes with its filters.
func TestFollow(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	f := &faults{}
	c, pauses := newClient(t, s, f)
	kept := &copyOf{readings: map[string]client.DeviceReading{}}
	query := client.ChangeQuery{Since: time.Now().Add(-time.Hour), PageSize: 2, UntilCaughtUp: true}
	insert := func(bucket string, co2 int) {
		s.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm) VALUES ($1, $2::timestamptz, $3)
			ON CONFLICT (device_id, bucket_at) DO UPDATE SET co2_ppm = excluded.co2_ppm, ingested_at = now()`, weightRoom, bucket, co2)
	}
	// catchUp follows until the copy has n readings, with a new iterator after each page.
	catchUp := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			for page, err := range c.Follow(t.Context(), query, kept.position) {
				require.NoError(t, err)
				kept.store(page)
				break
			}
			return len(kept.readings) == n
		}, proctest.Patience, 50*time.Millisecond)
	}
	insert("2024-11-03 00:00Z", 500)
	insert("2024-11-03 00:05Z", 501)
	insert("2024-11-03 00:10Z", 502)
	catchUp(3)
	insert("2024-11-03 00:00Z", 600)
	insert("2024-10-03 00:00Z", 503)
	catchUp(4)
	for _, r := range collect(t, c.Readings(t.Context(), weightRoom, client.ReadingQuery{Window: client.Window{
		From: time.Date(2024, 11, 3, 0, 0, 0, 0, time.UTC), To: time.Date(2024, 11, 4, 0, 0, 0, 0, time.UTC),
	}})) {
		require.Equal(t, r, kept.readings[weightRoom.String()+r.BucketAt.String()].Reading)
	}
	require.Empty(t, *pauses)

	query.Devices = []uuid.UUID{dorm}
	for _, err := range c.Follow(t.Context(), query, kept.position) {
		require.True(t, client.HasCode(err, client.CodeValidationFailed), err)
	}
	for _, err := range c.Follow(t.Context(), client.ChangeQuery{}, "x") {
		require.True(t, client.HasCode(err, client.CodeCursorInvalid), err)
	}
}

// TestFollowDeletions checks that a follower gets deletions if it asks for them, with every field.
func TestFollowDeletions(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	c, _ := newClient(t, s, &faults{})
	query := client.ChangeQuery{Since: time.Now().Add(-time.Hour), UntilCaughtUp: true}
	day := time.Date(2024, time.November, 3, 0, 0, 0, 0, time.UTC)
	s.AddReadings(t, []uuid.UUID{weightRoom}, day, 3, time.Hour)
	s.DeleteReadings(t, weightRoom, day, day.AddDate(0, 0, 1))
	for _, query.Deletions = range []bool{true, false} {
		kept := &copyOf{readings: map[string]client.DeviceReading{}}
		require.Eventually(t, func() bool {
			for page, err := range c.Follow(t.Context(), query, kept.position) {
				require.NoError(t, err)
				kept.store(page)
			}
			return !query.Deletions || len(kept.deleted) > 0
		}, proctest.Patience, 50*time.Millisecond)
		require.Empty(t, kept.readings)
		if !query.Deletions {
			require.Empty(t, kept.deleted)
		} else {
			require.Len(t, kept.deleted, 1)
			want := client.ReadingDeletion{DeviceID: weightRoom, From: day, To: day.AddDate(0, 0, 1), DeletedAt: kept.deleted[0].DeletedAt}
			require.Equal(t, want, kept.deleted[0])
			require.Less(t, time.Since(want.DeletedAt), time.Minute)
		}
	}
}

// TestFollowWaits checks that a follower waits for changes, survives every fault that can pass, and ends with its
// context.
func TestFollowWaits(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	f := &faults{fault: []func(*http.Response) (*http.Response, error){
		nil, broken, answerWith(429, "Retry-After", "600"), cut, answerWith(503, "Retry-After", "5"), broken, broken, broken,
	}}
	c, pauses := newClient(t, s, f, client.WithMaxAttempts(1))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	pages := 0
	for page, err := range c.Follow(ctx, client.ChangeQuery{}, "") {
		if ctx.Err() != nil {
			require.ErrorIs(t, err, context.Canceled)
			break
		}
		require.NoError(t, err)
		pages++
		if pages == 1 {
			require.Empty(t, page.Readings, "it begins now")
			require.NotEmpty(t, page.Position)
			s.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm) VALUES ($1, '2024-11-03Z', 500)`, dorm)
		}
		if len(page.Readings) > 0 {
			require.Equal(t, dorm, page.Readings[0].DeviceID)
			stop()
		}
	}
	require.Error(t, ctx.Err())
	require.Empty(t, f.requests[0].URL.RawQuery, "the first position is there at once")
	require.Contains(t, f.requests[1].URL.RawQuery, "wait=30")
	long := 0
	for _, pause := range *pauses {
		if pause >= 600*time.Second {
			long++
		}
	}
	require.Equal(t, 1, long, "a follower waits for the rate limit")
	require.LessOrEqual(t, (*pauses)[0], 2*time.Second, "the least time between two requests of a feed that caught up")

	c, _ = newClient(t, s, &faults{fault: []func(*http.Response) (*http.Response, error){broken}}, client.WithMaxAttempts(1))
	for _, err := range c.Follow(t.Context(), client.ChangeQuery{GiveUp: true}, "") {
		require.ErrorIs(t, err, errBroken)
	}
}
