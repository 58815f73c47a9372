package store_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// TestColumns checks the columns of the statements whose rows are decoded by the numbers of their columns. The test of
// package pg checks that the rows of the generated code have the order of the statements.
func TestColumns(t *testing.T) {
	t.Parallel()
	var values, stats []string
	for _, m := range roomsensor.Metrics {
		name := strings.ReplaceAll(m.String(), "_", "")
		values = append(values, name)
		stats = append(stats, name+"min", name+"max", name+"count", name+"sum")
	}
	join := slices.Concat[[]string]
	for row, want := range map[any][]string{
		db.ReadingListRow{}:           join([]string{"bucketat"}, values, []string{"ingestedat"}),
		db.FeedReadingListRow{}:       join([]string{"deviceid", "bucketat"}, values, []string{"ingestedat"}),
		db.ReadingExportRow{}:         join([]string{"deviceid", "bucketat"}, values),
		db.ReadingExportIngestedRow{}: join([]string{"deviceid", "bucketat"}, values, []string{"ingestedat"}),
		db.ReadingHourlyCO2ListRow{}:  {"deviceid", "hour", "co2ppm"},
		db.ReadingMaskListRow{}:       {"deviceid", "bucketat", "validmask"},
		db.ReadingSumRow{}:            join([]string{"deviceid", "islast"}, stats),
		db.HourlySumRow{}:             join([]string{"deviceid", "islast"}, stats),
		db.ReadingsHourly{}:           join([]string{"deviceid", "hour", "readingcount"}, stats),
	} {
		var columns []string
		for _, field := range reflect.VisibleFields(reflect.TypeOf(row)) {
			columns = append(columns, strings.ToLower(field.Name))
		}
		require.Equal(t, want, columns, "%T", row)
	}
}
