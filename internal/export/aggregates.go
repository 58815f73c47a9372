package export

import (
	"context"
	"errors"
	"fmt"
	"time"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
)

// prepareAggregates reads the lines of an export of aggregates (A2).
func (e *Exporter) prepareAggregates(ctx context.Context, r *Request, p *plan, countOnly bool) (*download, error) {
	now := e.now().Truncate(time.Microsecond)
	if p.ongoing {
		p.window = p.window.Intersect(roomsensor.Window{To: now})
	}
	p.window = roomsensor.Expressible(p.window)
	lines, err := e.openAggregates(ctx, r, p, aggregate.ExportQuery{
		Calendar: aggregate.NewCalendar(r.Interval, r.Zone), Fill: r.Fill, Now: now, CountOnly: countOnly,
	})
	if err != nil {
		return nil, err
	}
	return &download{
		fileName: p.fileName("aggregates", "csv", now), contentType: "text/csv; charset=utf-8", coded: true,
		rows: lines.Rows(), lines: lines.Rows(), close: func() {},
		body: func(ctx context.Context, w *writer) error {
			return sendCSV(ctx, w, csvenc.NewAggregates(p.team, r.columns()), lines)
		},
	}, nil
}

// openAggregates opens the aggregates that a plan selects. q has what the plan does not.
func (e *Exporter) openAggregates(
	ctx context.Context, r *Request, p *plan, q aggregate.ExportQuery,
) (Aggregates, error) {
	if err := checkDeviceCount(len(p.devices)); err != nil {
		return nil, err
	}
	if p.empty() {
		return noLines{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	q.Window, q.Devices, q.ExternalRef, q.Metrics = p.window, p.devices, r.Devices.ExternalRef, r.Metrics
	lines, err := e.backend.OpenAggregates(ctx, r.TeamID, q)
	if tooMany, ok := errors.AsType[*roomsensor.TooManyRowsError](err); ok {
		return nil, tooManyLines(tooMany, q.Fill)
	}
	return lines, err
}

// noLines are those of a plan that selects nothing.
type noLines struct{}

func (noLines) Rows() int { return 0 }

func (noLines) Each(context.Context, func(*aggregate.Row) error) error { return nil }

// tooManyLines returns csv_too_large with the number of lines and what makes them fewer (A2.3).
func tooManyLines(e *roomsensor.TooManyRowsError, fill bool) error {
	fix := "Ask for a shorter window or for interval=1d, or name fewer devices."
	if fill {
		fix = "Ask for a shorter window or for interval=1d, name fewer devices, or leave out fill."
	}
	return roomsensor.NewError(roomsensor.CodeCSVTooLarge, "", fmt.Sprintf(
		"The export would have %s lines; at most %d are allowed. %s", e.Count(), roomsensor.MaxExportRows, fix))
}
