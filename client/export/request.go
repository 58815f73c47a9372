package export

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"roomsensor/client"
)

// request requests one part.
func (r *runner) request(ctx context.Context, s segment, group int) (*client.Export, error) {
	request := &r.plan.Request
	q := request.query(s.From, s.To, r.plan.Groups[group])
	if request.Format == Parquet {
		return r.client.ExportParquet(ctx, q)
	}
	return r.client.ExportCSV(ctx, q)
}

// query returns the query of a part.
func (r *Request) query(from, to time.Time, devices group) client.ExportQuery {
	q := client.ExportQuery{
		Window: client.Between(from, to), Devices: devices, Metrics: r.Metrics,
		ColumnIDs: r.ColumnIDs, IngestedAt: r.IngestedAt, Assignment: r.Assignment,
		TimeZone: r.TimeZone, Excel: r.Excel, ExternalRef: r.ExternalRef, Metadata: r.Metadata,
	}
	if r.Wide {
		q.Shape = client.Wide
	}
	return q
}

// remedy says what to do about a part that failed.
type remedy int

const (
	giveUp remedy = iota // the same request cannot succeed
	repeat               // the same request may succeed later
	divide               // the part has too many readings
)

// countedRows finds the number of readings in a message (decision 30 c). Without it, a part is divided by its size.
var countedRows = regexp.MustCompile(`\bwould have (\d+) rows\b`)

// remedyFor returns what to do about an error. rows is the number of readings of a part that must be divided, 0 if
// it is unknown. pause is the wait that the service asks for.
func remedyFor(err error) (what remedy, rows int, pause time.Duration) {
	refusal, refused := errors.AsType[*client.Error](err)
	_, local := errors.AsType[*localError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case local, certificate:
		return giveUp, 0, 0
	case !refused: // The connection or the response broke.
		return repeat, 0, 0
	case refusal.Code == client.CodeCSVTooLarge:
		if found := countedRows.FindStringSubmatch(refusal.Message); found != nil {
			rows, _ = strconv.Atoi(found[1]) // Too large for an int counts as unknown.
		}
		return divide, rows, 0
	case refusal.Status == http.StatusTooManyRequests, refusal.Status >= http.StatusInternalServerError &&
		refusal.Status != http.StatusNotImplemented:
		return repeat, 0, refusal.RetryAfter
	}
	return giveUp, 0, 0
}

// localError is a failure of this machine, such as a full disk.
type localError struct{ error }

func (e *localError) Unwrap() error { return e.error }
