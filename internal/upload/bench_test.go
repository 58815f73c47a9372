package upload_test

import (
	"fmt"
	"strings"
	"testing"

	"roomsensor/internal/upload"
)

// BenchmarkParse parses three days of a device.
func BenchmarkParse(b *testing.B) {
	var readings []string
	for i := range 864 {
		readings = append(readings, fmt.Sprintf(
			`{"measured_at":"2026-11-%02dT%02d:%02d:03Z","co2_ppm":%d,"temp_c":21.4,"humidity_pct":40.1,"lux":120,"spl_db":38.2}`,
			17+i/288, i/12%24, i%12*5, 400+i))
	}
	text := with("[" + strings.Join(readings, ",") + "]")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = upload.Parse(text, unit, arrived)
	}
}
