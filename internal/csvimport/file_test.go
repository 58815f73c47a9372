package csvimport_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/csvimport"
	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// options returns the options of a file with the columns Time, Temp and Hum, whose lines are of one unit.
func options(t *testing.T, format, zone string) *csvimport.Options {
	t.Helper()
	o := &csvimport.Options{
		Time: "Time", Device: "dev:1", Now: time.Date(2026, time.November, 20, 0, 0, 0, 0, time.UTC),
		Metrics: []csvimport.MetricColumn{{Metric: roomsensor.Temp, Place: "Temp"}, {Metric: roomsensor.Humidity, Place: "Hum"}},
	}
	var err error
	o.TimeFormat, err = mapping.NewTimeFormat(format, zone)
	require.NoError(t, err)
	return o
}

// read returns the lines of a file: "2 dev:1 2026-11-01T00:00:00Z temp_c=21.4", or "3: PROBLEM". An error is the last.
func read(o *csvimport.Options, text string) (lines []string) {
	f, err := csvimport.Open(strings.NewReader(text), o)
	for err == nil {
		var l *csvimport.Line
		if l, err = f.Next(); err != nil {
			break
		}
		if l.Problem != "" {
			lines = append(lines, fmt.Sprintf("%d: %s", l.Number, l.Problem))
			continue
		}
		shown := fmt.Sprintf("%d %s %s", l.Number, l.HardwareID, roomsensor.FormatTime(l.MeasuredAt))
		for _, m := range roomsensor.Metrics {
			if x, ok := l.Values.Get(m); ok {
				shown += fmt.Sprintf(" %s=%g", m, x)
			}
		}
		lines = append(lines, shown)
	}
	if !errors.Is(err, io.EOF) {
		lines = append(lines, err.Error())
	}
	return lines
}

func TestForms(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A15.2")
	set := func(change func(*csvimport.Options)) *csvimport.Options {
		o := options(t, "rfc3339", "")
		change(o)
		return o
	}
	recognised := set(func(*csvimport.Options) {})
	const first, second = "2 dev:1 2026-11-01T00:00:00Z temp_c=21.5 humidity_pct=40", "3 dev:1 2026-11-01T00:05:00Z temp_c=22"
	const at, next = "2026-11-01T00:00:00Z", "2026-11-01T00:05:00Z"
	for name, tc := range map[string]struct {
		options *csvimport.Options
		text    string
		want    []string
	}{
		"comma":                {recognised, "Time,Temp,Hum\n" + at + ",21.5,40\n" + next + ",22,\n", []string{first, second}},
		"semicolon":            {recognised, "Time;Temp;Hum\r\n" + at + ";21,5;40\r\n" + next + ";22;", []string{first, second}},
		"tab":                  {recognised, "Time\tTemp\tHum\n" + at + "\t21.5\t40\n" + next + "\t22\tNaN\n", []string{first, second}},
		"BOM, quotes":          {recognised, "\ufeff\"Time\",\" Temp \",\"a;b;\"\"c\",Hum\n" + at + ",\"21,5\",\"x\n\ny\",40\n\n", []string{first}},
		"line numbers":         {recognised, "Time,Temp,Hum\n\n" + next + ",\"22\",\n" + at + ",x\n", []string{second, "4: has 2 values, but the first line 3 columns"}},
		"blank columns":        {recognised, " Time , Temp , Hum \n " + at + " , 21.5 , 40 \n", []string{first}},
		"row numbers":          {recognised, "\"Time\",\"Temp\",\"Hum\"\n\"1\"," + at + ",21.5,40\n\"2\"," + next + ",22,\n", []string{first, second}},
		"delimiter at the end": {recognised, "Time;Temp;Hum\n" + at + ";21,5;40;\n" + next + ";22;;\n", []string{first, second}},
		"broken quotes": {
			recognised, "Time,Temp,Hum\n\"" + at + ",21.5,40\n" + next + ",22,\n" + next + ",2\"2,\n" + next + ",22,\n",
			[]string{
				"2: has a quote that does not end, or one inside a value", second,
				"4: has a quote that does not end, or one inside a value", strings.Replace(second, "3", "5", 1),
			},
		},
		"set": {
			set(func(o *csvimport.Options) { o.Delimiter, o.Decimal = ';', ',' }), "Time;Temp;Hum;a,b,c,d,e\n" + at + ";21,500;40;\n",
			[]string{first},
		},
		"no quotes": {
			set(func(o *csvimport.Options) { o.NoQuotes = true; o.Metrics[1].Place = `"Hum"` }), "Time,Temp,\"Hum\"\n" + at + ",21.5,40\n" + at + ",\"21.5\",40\n",
			[]string{first, `3: has "\"21.5\"" for temp_c, which is not a number`},
		},
		"thousands are no decimals": {
			recognised, "Time;Temp;Hum\n" + at + ";1,000;40\n", []string{`2: has "1,000" for temp_c, which is not a number`},
		},
		"one decimal sign": {
			recognised, "Time;Temp;Hum\n" + at + ";21,5;40\n" + at + ";1.021,5;40\n" + at + ";21.5;40\n",
			[]string{
				`2: has "21,5" for temp_c, which is not a number`, `3: has "1.021,5" for temp_c, which is not a number`,
				strings.Replace(first, "2", "4", 1),
			},
		},
		"nulls and values": {
			recognised, "Time,Temp,Hum\n" + at + ",unavailable,\n" + at + ",n/a,\n" + at + ",1,101\n" + at + ",-0x1p3,\n",
			[]string{
				"2 dev:1 " + at, `3: has "n/a" for temp_c, which is not a number`,
				`4: has "101" for humidity_pct, which is outside the range 0 to 100`, `5: has "-0x1p3" for temp_c, which is not a number`,
			},
		},
		"times": {
			recognised, "Time,Temp,Hum\n,1,1\n2014-12-31T23:59:59Z,1,1\n2026-11-20T00:10:01Z,1,1\n",
			[]string{
				`2: has "", which is not a time in this format`, `3: has the time "2014-12-31T23:59:59Z", which is before 2015 or in the future`,
				`4: has the time "2026-11-20T00:10:01Z", which is before 2015 or in the future`,
			},
		},
		"empty":         {recognised, "\n\n", []string{"the file is empty"}},
		"UTF-16":        {recognised, "\xff\xfeT\x00", []string{"the file is UTF-16: save it as UTF-8"}},
		"no CSV":        {recognised, "Time,Temp,Hum\n" + strings.Repeat("x", 70_000), []string{"a line after line 1 has more than 65536 bytes: this is not a CSV file"}},
		"no gzip":       {recognised, "\x1f\x8bxx", []string{"the file is not gzip: unexpected EOF"}},
		"no column":     {recognised, "time,Temp,Hum\n", []string{`the file has no column "Time". Its columns are "time, Temp, Hum"`}},
		"two columns":   {recognised, "Time,Temp,Temp,Hum\n", []string{`the file has several columns "Temp"`}},
		"broken header": {recognised, "\"Time,Temp\n", []string{"line 1, which must have the names of the columns, has a quote that does not end"}},
	} {
		require.Equal(t, tc.want, read(tc.options, tc.text), name)
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A15.1")
	o := options(t, "local", "Europe/Berlin")
	o.Device, o.Unit, o.Metrics = "", "Room", nil
	for _, text := range []string{"temp_c=Temp*0.5-10", "co2_ppm=CO2*x", "lux=Lux*1e-1+.5", "spl_db=dB*1"} {
		column, err := csvimport.ParseMetricColumn(text)
		require.NoError(t, err)
		o.Metrics = append(o.Metrics, column)
	}
	const header = "Room,Time,Temp,CO2*x,Lux,dB\n"
	require.Equal(t, []string{
		// The clock is set back over 02:30, and forward over 02:30.
		"2 dev:2 2025-10-26T00:30:00Z co2_ppm=612 temp_c=11 lux=12.5 spl_db=7", "3 dev:2 2026-03-29T01:30:00Z spl_db=7",
		`4: has the unit "Hall", which is not a hardware id, dev: and 1 to 20 digits: give --units`,
	}, read(o, header+"dev:2,2025-10-26 02:30,42,612,120,7\ndev:2,2026-03-29T02:30:00,,,null,7\nHall,2026-03-29 02:30,,,,7\n"))

	var err error
	o.Units, err = csvimport.ReadUnits(strings.NewReader("display_name;hardware_id\nHall;dev:3\nGym;dev:4\nGym;dev:5\nOld;\n"))
	require.NoError(t, err)
	require.Equal(t, []string{
		"2 dev:3 2026-03-29T00:30:00Z spl_db=7", `3: has the unit "Gym", for which --units has several hardware ids`,
		`4: has the unit "Old", which --units does not have`,
	}, read(o, header+"Hall,2026-03-29 01:30,,,,7\nGym,2026-03-29 01:30,,,,7\nOld,2026-03-29 01:30,,,,7\n"))

	small, err := csvimport.ParseMetricColumn("lux=Lux*1e-1")
	require.NoError(t, err)
	o.Metrics = []csvimport.MetricColumn{small}
	require.Equal(t, []string{"2 dev:3 2026-03-29T00:30:00Z lux=12"}, read(o, header+"Hall,2026-03-29 01:30,,,120,\n"))

	for _, wrong := range []string{"co2=CO2", "co2_ppm", "co2_ppm="} {
		_, err := csvimport.ParseMetricColumn(wrong)
		require.ErrorContains(t, err, "is not METRIC=COLUMN", wrong)
	}
	o.Metrics = []csvimport.MetricColumn{{Metric: roomsensor.Temp, Place: "Temp"}, {Metric: roomsensor.Temp, Place: "dB"}}
	require.Equal(t, []string{"there are two columns for temp_c: name one"}, read(o, header))
	o.Metrics = []csvimport.MetricColumn{{Metric: roomsensor.Temp, Place: "Temp*1.2.3"}}
	require.Equal(t, []string{`the scale or offset of "Temp*1.2.3" is not a number`}, read(o, header))
	for want, text := range map[string]string{
		`no column "hardware_id"`: "device_id\n", `no column "device_id"`: "hardware_id\n", "line 2 is not a line": "device_id,hardware_id\nx\n",
		`line 2 has "x"`: "device_id,hardware_id\nx,x\n",
	} {
		_, err := csvimport.ReadUnits(strings.NewReader(text))
		require.ErrorContains(t, err, want)
	}
}

func TestLongShape(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A15.1")
	const text = "bucket_at,device_id,display_name,co2_ppm,lux,valid_mask\n" +
		"2026-11-20T00:00:00Z,6d2f9b34-1c7d-4e0b-b1aa-93c0d5e8f421,'=Gym,612.5,,1\n" +
		"2026-11-20T00:00:00Z,0b7e6c1a-94a3-4c58-8a57-5d1f0c2e7a10,Hall,455,12,9\n"
	o := options(t, "rfc3339", "")
	o.Time, o.Device, o.Metrics = "", "", nil
	gym, hall := "2 dev:1 2026-11-20T00:00:00Z co2_ppm=612.5", "3 dev:2 2026-11-20T00:00:00Z co2_ppm=455 lux=12"
	for _, units := range []string{
		"display_name,hardware_id\n=Gym,dev:1\nHall,dev:2\n", "hardware_id,display_name\ndev:1,'=Gym\ndev:2,Hall\n",
		"device_id,hardware_id,display_name\n6d2f9b34-1c7d-4e0b-b1aa-93c0d5e8f421,dev:1,\n0b7e6c1a-94a3-4c58-8a57-5d1f0c2e7a10,dev:2,\n",
	} {
		var err error
		o.Units, err = csvimport.ReadUnits(strings.NewReader(units))
		require.NoError(t, err)
		require.Equal(t, []string{gym, hall}, read(o, text), units)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Equal(t, []string{gym, hall}, read(o, packed.String()))
	require.Contains(t, read(o, packed.String()[:packed.Len()-4])[0], "unexpected EOF")

	o.Units, o.Device = nil, "dev:1"
	require.Equal(t, []string{gym, "3: belongs to another device than the lines before it: give --units in place of --device"}, read(o, text))
	require.Contains(t, read(o, strings.Replace(text, "6d2f9b34", "6d2f9b35", 1))[0], "belongs to another device", "of another file")
	require.Contains(t, read(o, "Time,Temp\n")[0], "is not an export in the long shape: give --time and --metric")
	require.Contains(t, read(o, "bucket_at,device_id\n")[0], "no column of a metric")
}
