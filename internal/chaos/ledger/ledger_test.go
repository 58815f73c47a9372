package ledger

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

var now = time.Date(2026, time.November, 20, 12, 2, 3, 0, time.UTC)

// sample is a unit whose upload brings readings of some buckets, the first of them at noon.
func sample(id, readings int) *Upload {
	u := &Upload{ID: id, Unit: &Unit{HardwareID: "dev:1", Device: uuid.MustParse("6e6ccf0f-4d92-492f-bfdd-5e68692d4149")}}
	for i := range readings {
		at := now.Truncate(time.Hour).Add(time.Duration(i) * bucket)
		u.Readings = append(u.Readings, roomsensor.Measurement{MeasuredAt: at, Values: valuesOf(1, u.Unit, at)})
	}
	return u
}

func book1(uploads ...*Upload) *Ledger { return New([]*Request{{Uploads: uploads}}) }

// stored are the rows that uploads make where nothing goes wrong.
func stored(uploads ...*Upload) (rows []Row) {
	for _, u := range uploads {
		for _, m := range u.Readings {
			rows = append(rows, Row{
				Key: KeyOf(u.Unit.Device, m.Bucket()), Values: m.Values, MeasuredAt: m.MeasuredAt, IngestedAt: now,
			})
		}
	}
	return rows
}

func line(v Verdict) string { return v.String() }

func TestCompareFindsEveryKindOfFault(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		outcome Outcome
		spoil   func([]Row) []Row
		want    string
	}{
		{"all there", OK, func(r []Row) []Row { return r }, "0 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{"one absent", OK, func(r []Row) []Row { return r[1:] }, "1 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{"one twice", OK, func(r []Row) []Row { return append(r, r[0]) }, "0 lost, 1 duplicated, 0 wrong, 0 phantom"},
		{"another value", OK, func(r []Row) []Row {
			r[0].Values.Set(roomsensor.Lux, 7)
			return r
		}, "0 lost, 0 duplicated, 1 wrong, 0 phantom"},
		{"another time", OK, func(r []Row) []Row {
			r[0].MeasuredAt = r[0].MeasuredAt.Add(time.Second)
			return r
		}, "0 lost, 0 duplicated, 1 wrong, 0 phantom"},
		{"a time that is not told", OK, func(r []Row) []Row {
			r[0].MeasuredAt = time.Time{}
			return r
		}, "0 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{"another bucket", OK, func(r []Row) []Row {
			r[2].Bucket += 3600
			return r
		}, "1 lost, 0 duplicated, 0 wrong, 1 phantom"},
		{"another device", OK, func(r []Row) []Row {
			r[2].Device = uuid.New()
			return r
		}, "1 lost, 0 duplicated, 0 wrong, 1 phantom"},
		{"failed and there", Failed, func(r []Row) []Row { return r }, "0 lost, 0 duplicated, 0 wrong, 3 phantom"},
		{"failed and absent", Failed, func([]Row) []Row { return nil }, "0 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{"unknown and there", Unknown, func(r []Row) []Row { return r }, "0 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{"unknown and absent", Unknown, func([]Row) []Row { return nil }, "0 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{"unknown and half there", Unknown, func(r []Row) []Row { return r[:1] }, "2 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{"unknown and wrong", Unknown, func(r []Row) []Row {
			r[0].Values = roomsensor.Values{}
			return r
		}, "0 lost, 0 duplicated, 1 wrong, 0 phantom"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			u := sample(1, 3)
			l := book1(u)
			l.Note([]*Upload{u}, test.outcome)
			_, verdict := l.Compare(test.spoil(stored(u)))
			require.Equal(t, test.want, line(verdict), verdict.Examples)
			require.Equal(t, test.want == "0 lost, 0 duplicated, 0 wrong, 0 phantom", verdict.Clean())
		})
	}
}

func TestTheGreatestOutcomeOfAllAttemptsCounts(t *testing.T) {
	t.Parallel()
	u := sample(1, 2)
	l := book1(u)
	for _, o := range []Outcome{Failed, OK, Unknown, Failed} {
		l.Note([]*Upload{u}, o)
	}
	_, verdict := l.Compare(nil)
	require.Equal(t, "2 lost, 0 duplicated, 0 wrong, 0 phantom", line(verdict))
	require.Equal(t, Tally{Uploads: 1, Attempts: 4, OK: 1, Readings: 2}, l.Tally())
}

// TestWhatTheStreamHoldsMustBeThere has an upload whose sender got no answer, although it was stored.
func TestWhatTheStreamHoldsMustBeThere(t *testing.T) {
	t.Parallel()
	u := sample(1, 3)
	l := book1(u)
	l.Note([]*Upload{u}, Unknown)
	require.True(t, l.Arrived(1, Arrival{Sequence: 9, At: now}))
	require.True(t, l.Arrived(1, Arrival{Sequence: 10, At: now}))
	require.False(t, l.Arrived(2, Arrival{Sequence: 11, At: now}))
	_, verdict := l.Compare(nil)
	require.Equal(t, "3 lost, 0 duplicated, 0 wrong, 0 phantom", line(verdict))
	require.Equal(t, Tally{
		Uploads: 1, Attempts: 1, Unknown: 1, UnknownStored: 1, Messages: 2, Repeated: 1, Excess: 1,
	}, l.Tally())
}

// TestKeysThatSeveralUploadsBring has two measurements of one bucket: what is sure must count, and what is unknown may.
func TestKeysThatSeveralUploadsBring(t *testing.T) {
	t.Parallel()
	sure, later := sample(1, 1), sample(2, 1)
	later.Readings[0].MeasuredAt = later.Readings[0].MeasuredAt.Add(time.Minute)
	later.Readings[0].Values = valuesOf(1, later.Unit, later.Readings[0].MeasuredAt)
	for _, test := range []struct {
		outcome         Outcome // of the later one
		sureIs, laterIs int     // wrong
	}{{Failed, 0, 1}, {Unknown, 0, 0}, {OK, 1, 0}} {
		l := book1(sure, later)
		sure.outcome, later.outcome = OK, test.outcome
		_, verdict := l.Compare(stored(sure))
		require.Equal(t, test.sureIs, verdict.Wrong)
		_, verdict = l.Compare(stored(later))
		require.Equal(t, test.laterIs, verdict.Wrong)
		_, verdict = l.Compare(nil)
		require.Equal(t, 1, verdict.Lost)
	}
}
