package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// timestamps reads timestamptz as rawTime does. The codec of pgx fails on an
// infinity, and with it the whole answer: one key that expires at infinity
// would be of no use, one such device would end the list of all.
type timestamps struct {
	pgtype.TimestamptzCodec
}

// PlanScan is the codec's own for all but the binary form.
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
		at = pgtype.Timestamptz{Time: rawTime(src), Valid: true}
	}
	//nolint:forcetypeassert,wrapcheck // PlanScan looked; a codec passes errors on as they are.
	return target.(pgtype.TimestamptzScanner).ScanTimestamptz(at)
}

// registerTimestamps prepares a fresh connection.
func registerTimestamps(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &timestamps{},
	})
	return nil
}
