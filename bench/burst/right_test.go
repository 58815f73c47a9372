package main

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
	"roomsensor/internal/dbtest"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// The judge must find what is lost, wrong or made up, or the trial would prove nothing.
func TestTheJudgeFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	o := small
	o.Devices = 1
	l := makeLoad(&o, end)
	url := dbtest.New(t).URL
	operator, err := app.OpenOperator(t.Context(), config.Database{DatabaseURL: url})
	require.NoError(t, err)
	defer operator.Close()
	team, err := operator.CreateTeam(t.Context(), "Team")
	require.NoError(t, err)
	made, err := operator.CreateDevice(t.Context(), app.DeviceOptions{TeamID: uuid.MustParse(team.ID), HardwareID: firstLate})
	require.NoError(t, err)
	device := uuid.MustParse(made.DeviceID)
	var rows []roomsensor.DeviceMeasurement
	for _, m := range l.measured[0] {
		rows = append(rows, roomsensor.DeviceMeasurement{DeviceID: device, Measurement: m})
	}
	s, err := store.Open(t.Context(), url, store.Ingest)
	require.NoError(t, err)
	defer s.Close()
	_, err = s.WriteBatch(t.Context(), roomsensor.Batch{Rows: rows})
	require.NoError(t, err)
	j, err := newJudge(t.Context(), url, newReader("", nil))
	require.NoError(t, err)
	defer j.close()

	judged := func() verdict {
		v, err := j.compare(t.Context(), []uuid.UUID{device}, l)
		require.NoError(t, err)
		return v
	}
	right := verdict{Stored: len(rows)}
	require.Equal(t, right, judged())
	require.True(t, right.clean())

	for i, sql := range []string{
		"UPDATE readings SET lux = 7 WHERE bucket_at = $1",
		"UPDATE readings SET measured_at = measured_at + interval '1 second' WHERE bucket_at = $1",
		"DELETE FROM readings WHERE bucket_at = $1",
	} {
		_, err := j.pool.Exec(t.Context(), sql, rows[i].Bucket())
		require.NoError(t, err)
	}
	_, err = j.pool.Exec(t.Context(), "INSERT INTO readings (device_id, bucket_at, measured_at) VALUES ($1, '2020-01-01', '2020-01-01')", device)
	require.NoError(t, err)
	_, err = s.WriteBatch(t.Context(), roomsensor.Batch{Rejects: []roomsensor.Reject{{Arrival: roomsensor.Arrival{At: end, Sequence: 1}, Reason: "x", Payload: []byte{}}}})
	require.NoError(t, err)
	require.Equal(t, verdict{Stored: len(rows), Lost: 1, Wrong: 2, Phantom: 1, Rejects: 1}, judged())
	require.False(t, (&verdict{Phantom: 1}).clean())
}
