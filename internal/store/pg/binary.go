package pg

import (
	"context"
	"encoding/binary"
	"math"
	"reflect"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"

	"roomsensor/internal/roomsensor"
)

// The rows of pages and exports are decoded from PostgreSQL's binary format straight into the domain, without an
// allocation per row or per null. Their queries run by text, with the arguments of Positional.

// Positional returns the fields of a parameter struct in order, as the arguments of a query that runs by its text: sqlc
// declares the fields in the order of $1, $2 and so on.
func Positional(params any) []any {
	v := reflect.ValueOf(params)
	args := make([]any, v.NumField())
	for i := range args {
		args[i] = v.Field(i).Interface()
	}
	return args
}

// postgresEpoch is the start of PostgreSQL's timestamps, 2000-01-01, in microseconds since 1970.
const postgresEpoch = 946_684_800_000_000

// The range of timestamps that the API can express. PostgreSQL has earlier and later ones and infinities, which only
// SQL can have inserted; they are served as the nearest end of the range.
var (
	firstTime = time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC).UnixMicro() - postgresEpoch
	lastTime  = roomsensor.Forever.UnixMicro() - postgresEpoch
)

// DecodeTime decodes a timestamptz: microseconds since 2000.
func DecodeTime(b []byte) time.Time { return time.UnixMicro(DecodeMicros(b)).UTC() }

// DecodeMicros decodes a timestamptz into microseconds since 1970.
func DecodeMicros(b []byte) int64 {
	micros := int64(binary.BigEndian.Uint64(b)) //nolint:gosec // Two's complement.
	return min(max(micros, firstTime), lastTime) + postgresEpoch
}

// DecodeValues decodes a column of type real for each metric, in the order of roomsensor.Metrics; null is a nil slice.
func DecodeValues(columns [][]byte) (v roomsensor.Values) {
	for i, m := range roomsensor.Metrics {
		if columns[i] != nil {
			v.Set(m, math.Float32frombits(binary.BigEndian.Uint32(columns[i])))
		}
	}
	return v
}

// The binary format of COPY starts with a signature, flags and the length of an extension, both 0. It ends with a row
// of -1 columns.
const (
	copyHeader  = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	copyTrailer = "\xff\xff"
	copyNull    = math.MaxUint32 // a length of -1
)

// CopyEncoder encodes rows in the binary format of COPY. Each row is a call of Row, followed by its columns in the
// order of the statement.
type CopyEncoder struct{ buf []byte }

// NewCopyEncoder returns an encoder with room for rows of some bytes.
func NewCopyEncoder(rowBytes int) *CopyEncoder {
	e := &CopyEncoder{buf: make([]byte, 0, len(copyHeader)+rowBytes+len(copyTrailer))}
	e.buf = append(e.buf, copyHeader...)
	return e
}

// Row starts a row.
func (e *CopyEncoder) Row(columns uint16) { e.buf = binary.BigEndian.AppendUint16(e.buf, columns) }

// UUID adds a column of type uuid.
func (e *CopyEncoder) UUID(id uuid.UUID) {
	e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(len(id)))
	e.buf = append(e.buf, id[:]...)
}

// Time adds a column of type timestamptz.
func (e *CopyEncoder) Time(at time.Time) {
	e.buf = binary.BigEndian.AppendUint32(e.buf, 8)
	micros := at.UnixMicro() - postgresEpoch
	e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(micros)) //nolint:gosec // Two's complement.
}

// Values adds a column of type real for each metric, in the order of roomsensor.Metrics; null for an absent one.
func (e *CopyEncoder) Values(v *roomsensor.Values) {
	for _, m := range roomsensor.Metrics {
		x, ok := v.Get(m)
		if !ok {
			e.buf = binary.BigEndian.AppendUint32(e.buf, copyNull)
			continue
		}
		e.buf = binary.BigEndian.AppendUint32(e.buf, 4)
		e.buf = binary.BigEndian.AppendUint32(e.buf, math.Float32bits(x))
	}
}

// Flush returns what was encoded since the last Flush. It is valid until the next call of another method.
func (e *CopyEncoder) Flush() []byte {
	flushed := e.buf
	e.buf = e.buf[:0]
	return flushed
}

// End adds the end of the format and flushes.
func (e *CopyEncoder) End() []byte {
	e.buf = append(e.buf, copyTrailer...)
	return e.Flush()
}

// timestamps decodes timestamptz as DecodeTime does. The codec of pgx fails on an infinity: one such value would fail
// the whole list that contains it.
type timestamps struct {
	pgtype.TimestamptzCodec
}

// PlanScan returns a plan for the binary format, and that of the embedded codec for the text format.
func (t *timestamps) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(pgtype.TimestamptzScanner); ok && format == pgtype.BinaryFormatCode {
		return scanTimestamp{}
	}
	return t.TimestamptzCodec.PlanScan(m, oid, format, target)
}

type scanTimestamp struct{}

func (scanTimestamp) Scan(src []byte, target any) error {
	at := pgtype.Timestamptz{}
	if src != nil {
		at = pgtype.Timestamptz{Time: DecodeTime(src), Valid: true}
	}
	//nolint:forcetypeassert,wrapcheck // PlanScan checked the type; a codec returns errors unchanged.
	return target.(pgtype.TimestamptzScanner).ScanTimestamptz(at)
}

// registerTypes prepares a new connection. Without a codec for uuid.UUID, pgx tries it as text first, which fails and
// costs 5 µs per id.
func registerTypes(_ context.Context, conn *pgx.Conn) error {
	pgxuuid.Register(conn.TypeMap())
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &timestamps{},
	})
	return nil
}
