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

// Columns selects what a file has besides the columns of A7.2.
type Columns struct {
	Metrics  []roomsensor.Metric
	Zone     *time.Location          // of local_time; nil leaves it out (A19.1)
	Assigned []roomsensor.Assignment // by device and start; nil leaves out their columns (A18.3)
	Archive  bool                    // with measured_at and hardware_id
}

// schema returns the columns of a file. Timestamps are in microseconds, UTC. Pages have version 1, which every reader
// knows.
func schema(columns Columns) *parquet.Schema {
	var fields []reflect.StructField
	add := func(sample any, tag string) {
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("Column%d", len(fields)), Type: reflect.TypeOf(sample),
			Tag: reflect.StructTag(`parquet:"` + tag + `"`),
		})
	}
	add(int64(0), "bucket_at,timestamp(microsecond),delta")
	if columns.Zone != nil {
		add("", "local_time")
	}
	add("", "device_id,dict")
	add("", "display_name,optional,dict")
	for _, m := range columns.Metrics {
		add(float32(0), m.String()+",optional")
	}
	add(int32(0), "valid_mask")
	add(int64(0), "ingested_at,timestamp(microsecond),delta")
	if columns.Archive {
		add(int64(0), "measured_at,timestamp(microsecond),delta")
		add("", "hardware_id,optional,dict")
	}
	if columns.Assigned != nil {
		for _, name := range assignmentColumns {
			add("", name+",optional,dict")
		}
	}
	return parquet.NewSchema("reading", parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface()))
}

// assignmentColumns are the columns of the assignment that held the device at bucket_at.
var assignmentColumns = [...]string{"assignment_id", "label", "external_ref"}

// texts are cells that repeat. group is the number of the last row group that has them in its dictionaries.
type texts struct {
	cells [][]byte // nil is null
	bytes int
	group int
}

func newTexts(cells ...[]byte) *texts {
	t := &texts{cells: cells}
	for _, cell := range cells {
		t.bytes += len(cell)
	}
	return t
}

// Writer writes a file. It is not safe for concurrent use.
type Writer struct {
	file      *parquet.GenericWriter[any]
	columns   []*parquet.ColumnWriter
	selected  Columns
	team      []roomsensor.NamedDevice
	devices   map[uuid.UUID]*texts     // that occurred
	units     map[string]*texts        // that occurred
	assigned  *roomsensor.Held[*texts] // nil without their columns
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

// NewWriter makes a Writer to dst. team has the names of the devices, in the order of their ids.
func NewWriter(dst io.Writer, team []roomsensor.NamedDevice, columns Columns) *Writer {
	w := &Writer{
		file: parquet.NewGenericWriter[any](dst, schema(columns), parquet.Compression(codec),
			parquet.DataPageVersion(1), parquet.PageBufferSize(pageBytes), parquet.ColumnPageBuffers(pageBuffers),
			parquet.WriteBufferSize(0), parquet.CreatedBy("roomsensor", "", "")),
		selected: columns, team: team, devices: map[uuid.UUID]*texts{}, units: map[string]*texts{"": newTexts(nil)}, group: 1,
	}
	if columns.Assigned != nil {
		w.assigned = roomsensor.NewHeld(columns.Assigned, func(a *roomsensor.Assignment) *texts {
			t := newTexts([]byte(a.ID.String()), []byte(a.Label), nil)
			if a.ExternalRef != nil {
				t = newTexts(t.cells[0], t.cells[1], []byte(*a.ExternalRef))
			}
			return t
		})
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
	column := 0
	add := func(v parquet.Value) {
		w.batch[column] = append(w.batch[column], v)
		column++
	}
	addText := func(text []byte) {
		if text == nil {
			add(parquet.NullValue())
		} else {
			add(parquet.ByteArrayValue(text).Level(0, 1, column))
		}
	}
	add(parquet.Int64Value(row.BucketAt.UnixMicro()))
	if w.selected.Zone != nil {
		if !row.BucketAt.Equal(w.local.at) {
			text := row.BucketAt.In(w.selected.Zone).AppendFormat(nil, roomsensor.LocalTime)
			w.local = localTime{row.BucketAt, parquet.ByteArrayValue(text)}
		}
		add(w.local.value)
	}
	device := w.inGroup(w.device(row.DeviceID))
	add(parquet.ByteArrayValue(device.cells[0])) // Required.
	addText(device.cells[1])
	for _, m := range w.selected.Metrics {
		if x, ok := row.Values.Get(m); ok {
			add(parquet.FloatValue(x).Level(0, 1, column))
		} else {
			add(parquet.NullValue())
		}
	}
	add(parquet.Int32Value(int32(row.Values.Mask())))
	add(parquet.Int64Value(row.IngestedAt.UnixMicro()))
	if w.selected.Archive {
		add(parquet.Int64Value(row.MeasuredAt.UnixMicro()))
		addText(w.inGroup(w.unit(row.HardwareID)).cells[0])
	}
	if w.assigned != nil {
		for _, cell := range w.assignment(row).cells {
			addText(cell)
		}
	}
	w.rows++
	if w.rows >= groupRows || w.textBytes >= groupTextBytes {
		return w.endGroup()
	}
	if len(w.batch[0]) == batchRows {
		return w.writeBatch()
	}
	return nil
}

// inGroup notes that the row group has some texts.
func (w *Writer) inGroup(t *texts) *texts {
	if t.group != w.group {
		t.group = w.group
		w.textBytes += t.bytes
	}
	return t
}

// device returns the cells of a device. A device that the team does not have by now has no name.
func (w *Writer) device(id uuid.UUID) *texts {
	if d, ok := w.devices[id]; ok {
		return d
	}
	var name []byte
	i, ok := slices.BinarySearchFunc(w.team, id, func(d roomsensor.NamedDevice, id uuid.UUID) int {
		return bytes.Compare(d.ID[:], id[:])
	})
	if ok && w.team[i].DisplayName != nil {
		name = []byte(*w.team[i].DisplayName)
	}
	d := newTexts([]byte(id.String()), name)
	w.devices[id] = d
	return d
}

// unit returns the cell of a unit.
func (w *Writer) unit(hardwareID string) *texts {
	u, ok := w.units[hardwareID]
	if !ok {
		u = newTexts([]byte(hardwareID))
		w.units[hardwareID] = u
	}
	return u
}

// unassigned are the cells of a row whose device had no assignment.
var unassigned = newTexts(nil, nil, nil)

// assignment returns the cells of the assignment that held the device of a row.
func (w *Writer) assignment(row *roomsensor.ExportRow) *texts {
	if t, ok := w.assigned.At(row.DeviceID, row.BucketAt); ok {
		return w.inGroup(t)
	}
	return unassigned
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
