package export

import (
	"context"
	"fmt"
	"time"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/wording"
)

// prepareNights reads the lines of an export of nights (A17.3). A snapshot has all of them, so that they are the rows
// that X-Row-Count counts; the count before bounds their number, and is all that HEAD needs.
func (e *Exporter) prepareNights(ctx context.Context, r *Request, countOnly bool) (*download, error) {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	nights, queries := r.Nights.Nights()
	rows, err := e.backend.CountNights(ctx, r.TeamID, queries)
	if err != nil {
		return nil, err
	}
	lines := &nightLines{rows: rows}
	if !countOnly && rows <= roomsensor.MaxExportRows {
		if lines, err = e.readNightLines(ctx, r, nights, queries); err != nil {
			return nil, err
		}
	}
	if lines.rows > roomsensor.MaxExportRows {
		tooMany := roomsensor.TooManyRowsError{Rows: lines.rows}
		return nil, roomsensor.NewError(roomsensor.CodeCSVTooLarge, "", fmt.Sprintf(
			"The export would have %s rows; at most %d are allowed. Ask for fewer nights, or select some assignments with "+
				"external_ref or metadata.<key>.", tooMany.Count(), roomsensor.MaxExportRows))
	}
	from, to := r.Nights.From.Format(time.DateOnly), r.Nights.To.Format(time.DateOnly)
	return &download{
		fileName: "nights_" + from + "_" + to + ".csv", contentType: "text/csv; charset=utf-8", coded: true,
		rows: lines.rows, lines: lines.rows, close: func() {}, body: lines.send,
	}, nil
}

// readNightLines reads all nights of a selection.
func (e *Exporter) readNightLines(
	ctx context.Context, r *Request, nights []airquality.Night, queries []airquality.NightQuery,
) (*nightLines, error) {
	lines := &nightLines{spool: spool{part: csvenc.AppendNightHeader(nil)}}
	var failed error
	names := wording.CompareNames()
	err := e.backend.EachNight(ctx, r.TeamID, queries, roomsensor.MaxExportRows+1,
		func(n int, rooms []airquality.NightRoom) bool {
			airquality.SortRooms(rooms, names)
			failed = lines.add(nights[n].Date, rooms)
			return failed == nil && lines.rows <= roomsensor.MaxExportRows
		})
	if err == nil {
		err = failed
	}
	if err == nil {
		err = lines.pack()
	}
	return lines, err
}

// nightLines are the lines of an export of nights.
type nightLines struct {
	spool

	rows int
}

// add adds the lines of a night.
func (l *nightLines) add(date time.Time, rooms []airquality.NightRoom) error {
	for i := range rooms {
		l.part = csvenc.AppendNight(l.part, date, &rooms[i])
	}
	l.rows += len(rooms)
	return l.packFull()
}
