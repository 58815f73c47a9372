package main

import (
	"fmt"
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
		{one, early, roomsensor.CO2, ""}: 411, {one, early, roomsensor.Temp, ""}: 21.31,
		{one, late, roomsensor.CO2, ""}:  412,
		{two, early, roomsensor.CO2, ""}: 421, {two, early, roomsensor.Temp, ""}: 22.5,
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
	"rows of InfluxDB": {readInfluxRows, `{"results":[{"statement_id":0,"series":[
{"name":"readings","tags":{"device":"00000000-0000-0000-0000-000000000002"},"columns":["time","co2_ppm","temp_c"],"values":[[1763700000,421,22.5]]},
{"name":"readings","tags":{"device":"00000000-0000-0000-0000-000000000001"},"columns":["time","co2_ppm","temp_c"],"values":[[1763700300,412,null],[1763700000,411,21.31]]}]}]}
`},
	"CSV of InfluxDB": {readInfluxCSV, `name,tags,time,device,co2_ppm,temp_c
readings,,1763700000,00000000-0000-0000-0000-000000000001,411,21.31
readings,,1763700000,00000000-0000-0000-0000-000000000002,421,22.5
readings,,1763700300,00000000-0000-0000-0000-000000000001,412,
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
	_, err = readInfluxRows(strings.NewReader(`{"results":[{"statement_id":0,"error":"timeout"}]}`))
	require.ErrorIs(t, err, errPeer)
}

func TestReadVictoriaLatest(t *testing.T) {
	t.Parallel()
	cells, err := readVictoriaLatest(strings.NewReader(`{"status":"success","data":{"resultType":"vector","result":[
{"metric":{"__name__":"at","device":"00000000-0000-0000-0000-000000000001"},"value":[1763700599,"1763700300"]},
{"metric":{"__name__":"readings_co2_ppm","device":"00000000-0000-0000-0000-000000000001"},"value":[1763700599,"412"]},
{"metric":{"__name__":"readings_temp_c","device":"00000000-0000-0000-0000-000000000001"},"value":[1763700599,"21.31"]}
]},"stats":{"seriesFetched":"3","executionTimeMsec":13}}`))
	require.NoError(t, err)
	require.Equal(t, Cells{{one, late, roomsensor.CO2, ""}: 412, {one, late, roomsensor.Temp, ""}: 21.31}, cells)
}

// device begins the ids of recorded answers.
const device = "00000000-0000-0000-0000-00000000000"

// aggregates are those of the following answers: two hours of a device.
func aggregates() Cells {
	const next = early - early%3600 + 3600
	return Cells{
		{one, next - 3600, roomsensor.CO2, Min}: 411, {one, next - 3600, roomsensor.CO2, Max}: 412,
		{one, next - 3600, roomsensor.CO2, Mean}: 411.5, {one, next - 3600, roomsensor.CO2, Count}: 2,
		{one, next, roomsensor.Temp, Mean}: 21.31,
	}
}

func TestReadAggregates(t *testing.T) {
	t.Parallel()
	series := func(metric, function, values string) string {
		return `{"metric":{"__name__":"readings_` + metric + `","device":"` + device + `1","rollup":"` + function +
			`"},"values":[` + values + `]}`
	}
	matrix := `{"status":"success","data":{"resultType":"matrix","result":[` + strings.Join([]string{
		series("co2_ppm", "min_over_time", `[1763701200,"411"]`), series("co2_ppm", "max_over_time", `[1763701200,"412"]`),
		series("co2_ppm", "avg_over_time", `[1763701200,"411.5"]`), series("co2_ppm", "count_over_time", `[1763701200,"2"]`),
		series("temp_c", "avg_over_time", `[1763704800,"21.31"]`),
	}, ",") + `]}}`
	cells, err := readVictoriaAggregates(strings.NewReader(matrix), time.Hour)
	require.NoError(t, err)
	require.Equal(t, aggregates(), cells)
	for _, wrong := range []string{`"max_over_time`, `"first_over_time`, `"`} {
		_, err = readVictoriaAggregates(strings.NewReader(strings.ReplaceAll(matrix, `"min_over_time`, wrong)), time.Hour)
		require.Error(t, err, wrong)
	}

	cells, err = readInfluxRows(strings.NewReader(`{"results":[{"statement_id":0,"series":[{"name":"readings",
"tags":{"device":"` + device + `1"},
"columns":["time","co2_ppm_min","co2_ppm_max","co2_ppm_mean","co2_ppm_count","temp_c_mean"],
"values":[[1763697600,411,412,411.5,2,null],[1763701200,null,null,null,null,21.31]]}]}]}`))
	require.NoError(t, err)
	require.Equal(t, aggregates(), cells)
}

// coverage is that of the following answers: a device with two readings, and one with a single one.
func coverage() Cells {
	return Cells{
		{one, 0, roomsensor.CO2, Count}: 2, {one, 0, roomsensor.Temp, Count}: 1, {two, 0, roomsensor.CO2, Count}: 1,
		{one, early, roomsensor.CO2, First}: 1, {one, late, roomsensor.CO2, Last}: 1,
		{two, early, roomsensor.CO2, First}: 1, {two, early, roomsensor.CO2, Last}: 1,
	}
}

func TestReadVictoriaCoverage(t *testing.T) {
	t.Parallel()
	var series []string
	for _, s := range [][3]string{
		{"readings_co2_ppm", "1", "2"},
		{"readings_temp_c", "1", "1"},
		{"readings_co2_ppm", "2", "1"},
		{"first", "1", "1763700000"},
		{"last", "1", "1763700300"},
		{"first", "2", "1763700000"},
		{"last", "2", "1763700000"},
	} {
		series = append(series,
			`{"metric":{"__name__":"`+s[0]+`","device":"`+device+s[1]+`"},"value":[1763701199,"`+s[2]+`"]}`)
	}
	cells, err := readVictoriaCoverage(strings.NewReader(`{"data":{"result":[` + strings.Join(series, ",") + `]}}`))
	require.NoError(t, err)
	require.Equal(t, coverage(), cells)
}

func TestReadInfluxCoverage(t *testing.T) {
	t.Parallel()
	result := func(columns string, values ...string) string {
		var series []string
		for i, v := range values {
			series = append(series, fmt.Sprintf(`{"tags":{"device":"%s%d"},"columns":["time",%s],"values":[[%s]]}`,
				device, i+1, columns, v))
		}
		return `{"series":[` + strings.Join(series, ",") + `]}`
	}
	results := []string{
		result(`"co2_ppm_count","temp_c_count"`, "1763697600,2,1", "1763697600,1,null"),
		result(`"first"`, "1763700000,411", "1763700000,421"), result(`"last"`, "1763700300,412", "1763700000,421"),
	}
	cells, err := readInfluxCoverage(strings.NewReader(`{"results":[` + strings.Join(results, ",") + `]}`))
	require.NoError(t, err)
	require.Equal(t, coverage(), cells)
	_, err = readInfluxCoverage(strings.NewReader(`{"results":[` + strings.Join(results[:2], ",") + `]}`))
	require.ErrorIs(t, err, errPeer, "a statement has no result")
	_, err = readInfluxCoverage(strings.NewReader(`{"results":[{"error":"timeout"},` + strings.Join(results[1:], ",") + `]}`))
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
