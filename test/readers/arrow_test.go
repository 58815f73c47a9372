package readers_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
)

// TestArrow checks that Arrow's reader for Go finds the columns of A7.2 and every value.
func TestArrow(t *testing.T) {
	t.Parallel()
	e := newExport(t)
	source, err := file.NewParquetReader(bytes.NewReader(e.parquet))
	require.NoError(t, err)
	reader, err := pqarrow.NewFileReader(source, pqarrow.ArrowReadProperties{BatchSize: 1 << 16}, memory.DefaultAllocator)
	require.NoError(t, err)
	schema, err := reader.Schema()
	require.NoError(t, err)
	timestamp := arrow.FixedWidthTypes.Timestamp_us
	want := []arrow.DataType{timestamp, arrow.BinaryTypes.String, arrow.BinaryTypes.String}
	for range 5 {
		want = append(want, arrow.PrimitiveTypes.Float32)
	}
	want = append(want, arrow.PrimitiveTypes.Int32, timestamp)
	for i, field := range schema.Fields() {
		require.True(t, arrow.TypeEqual(want[i], field.Type), "%s is %s", field.Name, field.Type)
		require.Equal(t, i >= 2 && i <= 7, field.Nullable, field.Name)
	}
	records, err := reader.GetRecordReader(t.Context(), nil, nil)
	require.NoError(t, err)
	defer records.Release()
	n := 0
	for records.Next() {
		batch := records.RecordBatch()
		for i := range int(batch.NumRows()) {
			var cells []string
			for _, column := range batch.Columns() {
				cells = append(cells, arrowCell(column, i))
			}
			require.Equal(t, e.cells(&e.rows[n]), cells, n)
			n++
		}
	}
	require.NoError(t, records.Err())
	require.Equal(t, rowCount, n)
}

// arrowCell returns a value as export.cells does.
func arrowCell(column arrow.Array, i int) string {
	if column.IsNull(i) {
		return "null"
	}
	switch c := column.(type) {
	case *array.Timestamp:
		return fmt.Sprint(int64(c.Value(i)))
	case *array.Float32:
		return fmt.Sprint(math.Float32bits(c.Value(i)))
	case *array.Int32:
		return fmt.Sprint(c.Value(i))
	case *array.String:
		return c.Value(i)
	}
	return column.ValueStr(i)
}
