package parquetenc

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"roomsensor/internal/roomsensor"
)

const (
	// groupRows is the most rows of a row group. Readers skip and decode whole groups in parallel; small ones are slow.
	groupRows = 64 << 10
	// groupTextBytes bounds the ids and names in the dictionaries of a row group, which are in memory until it ends.
	groupTextBytes = 1 << 20
	// pageBytes is the size at which a column ends a page and compresses it. Each column has one in memory.
	pageBytes = 64 << 10
	// batchRows is the number of rows that are collected before the columns get them.
	batchRows = 512
)

// codec compresses as fast as the CSV is compressed. It is safe for concurrent use.
var codec = &zstd.Codec{Level: zstd.SpeedFastest}

// pageBuffers has the compressed pages of all writers until their row groups end.
var pageBuffers = parquet.NewBufferPool()

// schema returns the columns of A7.2, and local_time if it is selected (A19.1). Timestamps are in microseconds, UTC.
// Pages have version 1, which every reader knows.
func schema(metrics []roomsensor.Metric, local bool) *parquet.Schema {
	var fields []reflect.StructField
	add := func(sample any, tag string) {
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("Column%d", len(fields)), Type: reflect.TypeOf(sample),
			Tag: reflect.StructTag(`parquet:"` + tag + `"`),
		})
	}
	add(int64(0), "bucket_at,timestamp(microsecond),delta")
	if local {
		add("", "local_time")
	}
	add("", "device_id,dict")
	add("", "display_name,optional,dict")
	for _, m := range metrics {
		add(float32(0), m.String()+",optional")
	}
	add(int32(0), "valid_mask")
	add(int64(0), "ingested_at,timestamp(microsecond),delta")
	return parquet.NewSchema("reading", parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface()))
}

// device has the cells of a device. group is the number of the last row group that has it in its dictionaries.
type device struct {
	id    parquet.Value
	name  []byte // nil without a name
	bytes int
	group int
}

// Writer writes a file. It is not safe for concurrent use.
type Writer struct {
	file      *parquet.GenericWriter[any]
	columns   []*parquet.ColumnWriter
	metrics   []roomsensor.Metric
	team      []roomsensor.NamedDevice
	devices   map[uuid.UUID]*device // that occurred
	zone      *time.Location        // of local_time; nil without it
	local     localTime
	batch     [][]parquet.Value // by column
	group     int               // number of the row group, from 1
	rows      int               // of the row group
	textBytes int               // in the dictionaries of the row group
}

// localTime is local_time of the last bucket: many consecutive rows have the same one.
type localTime struct {
	at    time.Time
	value parquet.Value
}

// NewWriter makes a Writer to dst. team has the names of the devices, in the order of their ids. zone is that of
// local_time; nil leaves out the column.
func NewWriter(
	dst io.Writer, team []roomsensor.NamedDevice, metrics []roomsensor.Metric, zone *time.Location,
) *Writer {
	w := &Writer{
		file: parquet.NewGenericWriter[any](dst, schema(metrics, zone != nil), parquet.Compression(codec),
			parquet.DataPageVersion(1), parquet.PageBufferSize(pageBytes), parquet.ColumnPageBuffers(pageBuffers),
			parquet.WriteBufferSize(0), parquet.CreatedBy("roomsensor", "", "")),
		zone: zone, metrics: metrics, team: team, devices: map[uuid.UUID]*device{}, group: 1,
	}
	w.columns = w.file.ColumnWriters()
	w.batch = make([][]parquet.Value, len(w.columns))
	for i := range w.batch {
		w.batch[i] = make([]parquet.Value, 0, batchRows)
	}
	return w
}

// Write adds a row. Rows must be in the order of the long CSV (A7.2).
func (w *Writer) Write(row *roomsensor.ExportRow) error {
	d := w.device(row.DeviceID)
	if d.group != w.group {
		d.group = w.group
		w.textBytes += d.bytes
	}
	column := 0
	add := func(v parquet.Value) {
		w.batch[column] = append(w.batch[column], v)
		column++
	}
	add(parquet.Int64Value(row.BucketAt.UnixMicro()))
	if w.zone != nil {
		if !row.BucketAt.Equal(w.local.at) {
			text := row.BucketAt.In(w.zone).AppendFormat(nil, roomsensor.LocalTime)
			w.local = localTime{row.BucketAt, parquet.ByteArrayValue(text)}
		}
		add(w.local.value)
	}
	add(d.id)
	if d.name == nil {
		add(parquet.NullValue())
	} else {
		add(parquet.ByteArrayValue(d.name).Level(0, 1, column))
	}
	for _, m := range w.metrics {
		if x, ok := row.Values.Get(m); ok {
			add(parquet.FloatValue(x).Level(0, 1, column))
		} else {
			add(parquet.NullValue())
		}
	}
	add(parquet.Int32Value(int32(row.Values.Mask())))
	add(parquet.Int64Value(row.IngestedAt.UnixMicro()))
	w.rows++
	if w.rows >= groupRows || w.textBytes >= groupTextBytes {
		return w.endGroup()
	}
	if len(w.batch[0]) == batchRows {
		return w.writeBatch()
	}
	return nil
}

// device returns the cells of a device. A device that the team does not have by now has no name.
func (w *Writer) device(id uuid.UUID) *device {
	if d, ok := w.devices[id]; ok {
		return d
	}
	text := id.String()
	d := &device{id: parquet.ByteArrayValue([]byte(text)), bytes: len(text)}
	i, ok := slices.BinarySearchFunc(w.team, id, func(d roomsensor.NamedDevice, id uuid.UUID) int {
		return bytes.Compare(d.ID[:], id[:])
	})
	if ok && w.team[i].DisplayName != nil {
		d.name = []byte(*w.team[i].DisplayName)
		d.bytes += len(d.name)
	}
	w.devices[id] = d
	return d
}

// writeBatch gives the collected rows to the columns.
func (w *Writer) writeBatch() error {
	for i, column := range w.columns {
		if _, err := column.WriteRowValues(w.batch[i]); err != nil {
			return fmt.Errorf("encoding a column: %w", err)
		}
		w.batch[i] = w.batch[i][:0]
	}
	return nil
}

// endGroup writes the row group.
func (w *Writer) endGroup() error {
	if err := w.writeBatch(); err != nil {
		return err
	}
	w.group, w.rows, w.textBytes = w.group+1, 0, 0
	if err := w.file.Flush(); err != nil {
		return fmt.Errorf("writing a row group: %w", err)
	}
	return nil
}

// Close writes the rest and the footer, without which no reader opens the file.
func (w *Writer) Close() error {
	if err := w.writeBatch(); err != nil {
		return err
	}
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("ending a file: %w", err)
	}
	return nil
}
