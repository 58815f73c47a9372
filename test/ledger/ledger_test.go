package ledger

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

var now = time.Date(2026, time.November, 20, 12, 2, 3, 0, time.UTC)

// sample returns an upload with readings of consecutive buckets from noon.
func sample(id, readings int) *Upload {
	u := &Upload{ID: id, Unit: &Unit{HardwareID: "dev:1", Device: uuid.MustParse("6e6ccf0f-4d92-492f-bfdd-5e68692d4149")}}
	for i := range readings {
		at := now.Truncate(time.Hour).Add(time.Duration(i) * bucket)
		u.Readings = append(u.Readings, roomsensor.Measurement{MeasuredAt: at, Values: valuesOf(1, u.Unit, at)})
	}
	return u
}

func newLedger(uploads ...*Upload) *Ledger { return New([]*Request{{Uploads: uploads}}) }

// stored returns the rows of completely stored uploads.
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

func TestCompare(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		outcome Outcome
		change  func([]Row) []Row
		want    string
	}{
		{"complete", OK, func(r []Row) []Row { return r }, "0 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{"row missing", OK, func(r []Row) []Row { return r[1:] }, "1 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{"row twice", OK, func(r []Row) []Row { return append(r, r[0]) }, "0 lost, 1 duplicated, 0 wrong, 0 phantom"},
		{"other value", OK, func(r []Row) []Row {
			r[0].Values.Set(roomsensor.Lux, 7)
			return r
		}, "0 lost, 0 duplicated, 1 wrong, 0 phantom"},
		{"other time", OK, func(r []Row) []Row {
			r[0].MeasuredAt = r[0].MeasuredAt.Add(time.Second)
			return r
		}, "0 lost, 0 duplicated, 1 wrong, 0 phantom"},
		{"time not exported", OK, func(r []Row) []Row {
			r[0].MeasuredAt = time.Time{}
			return r
		}, "0 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{"other bucket", OK, func(r []Row) []Row {
			r[2].Bucket += 3600
			return r
		}, "1 lost, 0 duplicated, 0 wrong, 1 phantom"},
		{"other device", OK, func(r []Row) []Row {
			r[2].Device = uuid.New()
			return r
		}, "1 lost, 0 duplicated, 0 wrong, 1 phantom"},
		{"failed and stored", Failed, func(r []Row) []Row { return r }, "0 lost, 0 duplicated, 0 wrong, 3 phantom"},
		{"failed and absent", Failed, func([]Row) []Row { return nil }, "0 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{"unknown and stored", Unknown, func(r []Row) []Row { return r }, "0 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{"unknown and absent", Unknown, func([]Row) []Row { return nil }, "0 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{"unknown and partial", Unknown, func(r []Row) []Row { return r[:1] }, "2 lost, 0 duplicated, 0 wrong, 0 phantom"},
		{"unknown and wrong", Unknown, func(r []Row) []Row {
			r[0].Values = roomsensor.Values{}
			return r
		}, "0 lost, 0 duplicated, 1 wrong, 0 phantom"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			u := sample(1, 3)
			l := newLedger(u)
			l.Note([]*Upload{u}, test.outcome)
			_, verdict := l.Compare(test.change(stored(u)))
			require.Equal(t, test.want, line(verdict), verdict.Examples)
			require.Equal(t, test.want == "0 lost, 0 duplicated, 0 wrong, 0 phantom", verdict.Clean())
		})
	}
}

func TestNote(t *testing.T) {
	t.Parallel()
	u := sample(1, 2)
	l := newLedger(u)
	for _, o := range []Outcome{Failed, OK, Unknown, Failed} {
		l.Note([]*Upload{u}, o)
	}
	_, verdict := l.Compare(nil)
	require.Equal(t, "2 lost, 0 duplicated, 0 wrong, 0 phantom", line(verdict))
	require.Equal(t, Tally{Uploads: 1, Attempts: 4, OK: 1, Readings: 2}, l.Tally())
}

// TestArrived has an upload whose sender got no answer although it is in the stream: it must be stored.
func TestArrived(t *testing.T) {
	t.Parallel()
	u := sample(1, 3)
	l := newLedger(u)
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

// TestCompareMerged has two measurements of one bucket: the confirmed one must count, the unknown one may.
func TestCompareMerged(t *testing.T) {
	t.Parallel()
	sure, later := sample(1, 1), sample(2, 1)
	later.Readings[0].MeasuredAt = later.Readings[0].MeasuredAt.Add(time.Minute)
	later.Readings[0].Values = valuesOf(1, later.Unit, later.Readings[0].MeasuredAt)
	for _, test := range []struct {
		outcome         Outcome // of the later one
		sureIs, laterIs int     // wrong
	}{{Failed, 0, 1}, {Unknown, 0, 0}, {OK, 1, 0}} {
		l := newLedger(sure, later)
		sure.outcome, later.outcome = OK, test.outcome
		_, verdict := l.Compare(stored(sure))
		require.Equal(t, test.sureIs, verdict.Wrong)
		_, verdict = l.Compare(stored(later))
		require.Equal(t, test.laterIs, verdict.Wrong)
		_, verdict = l.Compare(nil)
		require.Equal(t, 1, verdict.Lost)
	}
}
