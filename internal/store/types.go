package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"
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

// registerTypes prepares a fresh connection. Without a codec of its own pgx takes
// a uuid for a text, tries that in binary, and makes an error of it before it
// goes on: 5 µs for each id of a list.
func registerTypes(_ context.Context, conn *pgx.Conn) error {
	pgxuuid.Register(conn.TypeMap())
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &timestamps{},
	})
	return nil
}
