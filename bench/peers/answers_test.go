package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// early and late are the starts of two buckets, in seconds and as times.
const (
	early = 1_763_700_000
	late  = early + 300
)

// known returns the readings of every answer below. The second reading of the first device has no temperature.
func known() Cells {
	return Cells{
		{one, early, roomsensor.CO2}: 411, {one, early, roomsensor.Temp}: 21.31,
		{one, late, roomsensor.CO2}:  412,
		{two, early, roomsensor.CO2}: 421, {two, early, roomsensor.Temp}: 22.5,
	}
}

func TestReadingsAreTheirCells(t *testing.T) {
	t.Parallel()
	cells, at := Cells{}, time.Unix(early, 0)
	for device, v := range map[[16]byte]roomsensor.Values{one: values(411, 21.31), two: values(421, 22.5)} {
		cells.Add(device, at, &v)
	}
	gap := values(412)
	cells.Add(one, at.Add(roomsensor.BucketLength), &gap)
	require.Equal(t, known(), cells)
}

// whole contains recorded answers of peers with all known readings.
var whole = map[string]struct {
	read func(io.Reader) (Cells, error)
	text string
}{
	"series of VictoriaMetrics": {readVictoriaSeries, `
{"metric":{"__name__":"readings_temp_c","device":"00000000-0000-0000-0000-000000000001"},"values":[21.31],"timestamps":[1763700000000]}
{"metric":{"__name__":"readings_co2_ppm","device":"00000000-0000-0000-0000-000000000001"},"values":[411,412],"timestamps":[1763700000000,1763700300000]}
{"metric":{"__name__":"readings_co2_ppm","device":"00000000-0000-0000-0000-000000000002"},"values":[421],"timestamps":[1763700000000]}
{"metric":{"__name__":"readings_temp_c","device":"00000000-0000-0000-0000-000000000002"},"values":[22.5],"timestamps":[1763700000000]}
`},
	"CSV of VictoriaMetrics": {readVictoriaCSV, `1763700000,00000000-0000-0000-0000-000000000001,readings_co2_ppm,411
1763700300,00000000-0000-0000-0000-000000000001,readings_co2_ppm,412
1763700000,00000000-0000-0000-0000-000000000001,readings_temp_c,21.31
1763700000,00000000-0000-0000-0000-000000000002,readings_temp_c,22.5
1763700000,00000000-0000-0000-0000-000000000002,readings_co2_ppm,421
`},
}

func TestReadAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range whole {
		cells, err := answer.read(strings.NewReader(answer.text))
		require.NoError(t, err, name)
		require.Equal(t, known(), cells, name)
	}
}

// A value that is there twice would else be lost in the cells.
func TestReadAnswersDuplicateValue(t *testing.T) {
	t.Parallel()
	for name, answer := range whole {
		text := strings.ReplaceAll(strings.ReplaceAll(answer.text, "1763700300", "1763700000"), "0002", "0001")
		_, err := answer.read(strings.NewReader(text))
		require.ErrorIs(t, err, errPeer, name)
	}
}

func TestReadAnswersInvalid(t *testing.T) {
	t.Parallel()
	for name, answer := range whole {
		for _, text := range []string{
			answer.text[:len(answer.text)/2], strings.ReplaceAll(answer.text, "0000-0000", "0"),
			strings.ReplaceAll(answer.text, "21.31", "warm"),
		} {
			_, err := answer.read(strings.NewReader(text))
			require.Error(t, err, name+": "+text)
		}
	}
	_, err := readVictoriaCSV(strings.NewReader("1763700000,00000000-0000-0000-0000-000000000001,readings_wind,1\n"))
	require.ErrorIs(t, err, errPeer)
	_, err = readInfluxCount([]byte(`{"results":[{"statement_id":0,"error":"timeout"}]}`))
	require.ErrorIs(t, err, errPeer)
}

func TestReadCounts(t *testing.T) {
	t.Parallel()
	n, err := readVictoriaCount([]byte(`{"data":{"result":[{"metric":{},"value":[1763701499,"30"]}]}}`))
	require.NoError(t, err)
	require.Equal(t, 30, n)
	n, err = readVictoriaCount([]byte(`{"data":{"result":[]}}`))
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = readInfluxCount([]byte(
		`{"results":[{"series":[{"name":"readings","columns":["time","count"],"values":[[1763700000,15]]}]}]}`))
	require.NoError(t, err)
	require.Equal(t, 15, n)
	n, err = readInfluxCount([]byte(`{"results":[{"statement_id":0}]}`))
	require.NoError(t, err)
	require.Zero(t, n)
}
