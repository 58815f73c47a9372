package readings

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/store/fleet"
	"roomsensor/internal/store/pg"
)

const (
	// maxNightRooms is how many assignments a night has at most. With a night of 24 hours, their readings are 576,000.
	maxNightRooms = 2000
	// maxListedRooms is the same for a client of the API.
	maxListedRooms = 5000
	// maxNightResults is how many assignments times nights are read at once, unless one night has more. Each takes 4 KB.
	maxNightResults = 1000
	// nightStatementTimeout bounds each statement of a night. It is less than the deadline of a request.
	nightStatementTimeout = "7s"
)

// NightRooms reads a night of the assignments of a team that overlap it, by device and start. more reports whether the
// team has more of them than maxNightRooms.
func (s *Store) NightRooms(
	ctx context.Context, teamID uuid.UUID, q airquality.NightQuery,
) (rooms []airquality.NightRoom, more bool, err error) {
	rooms, results, more, err := s.RoomNights(ctx, teamID, []airquality.NightQuery{q}, nil)
	if err != nil {
		return nil, false, err
	}
	for i := range rooms {
		rooms[i].NightResult = results[i][0]
	}
	return rooms, more, nil
}

// RoomNights reads nights, the newest first, of those assignments of a team that overlap the time from the oldest to
// the newest and that keep selects, by device and start; nil selects all. It returns one result per night for each,
// which is empty for a night that the assignment does not overlap. more reports whether the team has more assignments
// than maxNightRooms.
func (s *Store) RoomNights(
	ctx context.Context, teamID uuid.UUID, nights []airquality.NightQuery, keep func(*roomsensor.Assignment) bool,
) (rooms []airquality.NightRoom, results [][]airquality.NightResult, more bool, err error) {
	err = s.inNightSnapshot(ctx, func(tx pgx.Tx) error {
		rooms, more, err = s.listNightRooms(ctx, tx, teamID, nights, maxNightRooms, keep)
		if err != nil {
			return err
		}
		results, err = s.readNights(ctx, tx, teamID, rooms, nights)
		return err
	})
	return rooms, results, more, err
}

// EachNight reads nights, the newest first, from one snapshot. It calls a function with the number of each night and
// the assignments that overlap it, by device and start, until it returns false, but not for a night without any. most
// is how many assignments the function takes: it bounds how many nights are read ahead. The error is validation_failed
// if more than maxListedRooms assignments overlap a night.
func (s *Store) EachNight(
	ctx context.Context, teamID uuid.UUID, nights []airquality.NightQuery, most int,
	do func(n int, rooms []airquality.NightRoom) bool,
) error {
	return s.inNightSnapshot(ctx, func(tx pgx.Tx) error {
		found, size := 0, 1
		for first := 0; first < len(nights); {
			piece := nights[first:min(first+size, len(nights))]
			rooms, more, err := s.listNightRooms(ctx, tx, teamID, piece, maxListedRooms, nil)
			switch {
			case err != nil:
				return err
			case len(piece) > 1 && len(rooms)*len(piece) > maxNightResults:
				size = max(1, maxNightResults/len(rooms))
				continue
			case more:
				return airquality.TooManyRooms(maxListedRooms)
			}
			results, err := s.readNights(ctx, tx, teamID, rooms, piece)
			if err != nil {
				return err
			}
			for n := range piece {
				night := roomsIn(rooms, results, n)
				if found += len(night); len(night) > 0 && !do(first+n, night) {
					return nil
				}
			}
			first += len(piece)
			size = 1 + max(0, most-found)*first/max(1, found)
		}
		return nil
	})
}

// roomsIn returns the rooms that overlap a night, with what was measured in them.
func roomsIn(rooms []airquality.NightRoom, results [][]airquality.NightResult, n int) (found []airquality.NightRoom) {
	for i := range rooms {
		if !results[i][n].Window.Empty() {
			found = append(found, rooms[i])
			found[len(found)-1].NightResult = results[i][n]
		}
	}
	return found
}

// CountNights returns how many assignments EachNight has in all nights, cut to roomsensor.ExportCountCap + 1. It has
// the same error.
func (s *Store) CountNights(ctx context.Context, teamID uuid.UUID, nights []airquality.NightQuery) (int, error) {
	if len(nights) == 0 {
		return 0, nil
	}
	tags, ok := fleet.MetadataFilter(nights[0].Metadata)
	if !ok {
		return 0, nil
	}
	p := db.NightAssignmentCountParams{TeamID: teamID, Metadata: tags, ExternalRef: nights[0].ExternalRef}
	for i := range nights {
		p.NightFrom = append(p.NightFrom, nights[i].Window.From)
		p.NightTo = append(p.NightTo, nights[i].Window.To)
	}
	counts, err := s.Queries.NightAssignmentCount(ctx, s.Pool, p)
	if err != nil {
		return 0, fmt.Errorf("counting nights: %w", pg.Translate(err))
	}
	var all int64
	for _, n := range counts {
		if all += n; n > maxListedRooms {
			return 0, airquality.TooManyRooms(maxListedRooms)
		}
	}
	return int(min(all, roomsensor.ExportCountCap+1)), nil
}

// inNightSnapshot runs a function that reads nights.
func (s *Store) inNightSnapshot(ctx context.Context, run func(pgx.Tx) error) error {
	return s.InSnapshot(ctx, "reading nights", func(tx pgx.Tx) error {
		if err := s.Set(ctx, tx, "statement_timeout", nightStatementTimeout); err != nil {
			return err
		}
		return run(tx)
	})
}

// listNightRooms lists the assignments that overlap the time from the oldest night to the newest, at most some of them,
// with the limits of their devices. The newest query selects them, and so does keep, unless it is nil.
func (s *Store) listNightRooms(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, nights []airquality.NightQuery, most int,
	keep func(*roomsensor.Assignment) bool,
) (rooms []airquality.NightRoom, more bool, err error) {
	newest := &nights[0]
	w := roomsensor.Window{From: nights[len(nights)-1].Window.From, To: newest.Window.To}
	filter, ok := fleet.MetadataFilter(newest.Metadata)
	if !ok {
		return nil, false, nil
	}
	var ids []uuid.UUID // nil selects all
	if keep != nil {
		if ids, more, err = s.searchAssignments(ctx, tx, teamID, w, keep); err != nil {
			return nil, false, err
		}
	}
	rows, err := s.Queries.NightAssignmentList(ctx, tx, db.NightAssignmentListParams{
		TeamID: teamID, Metadata: filter, Athletes: newest.Athletes, ExternalRef: newest.ExternalRef, Ids: ids,
		WindowFrom: w.From, WindowTo: w.To, Most: int64(most) + 1,
	})
	if err != nil {
		return nil, false, err
	}
	for _, row := range rows[:min(len(rows), most)] {
		room := airquality.NightRoom{Assignment: fleet.AssignmentOf(&row.Assignment), DeviceName: row.DisplayName}
		var tags map[string]string
		_ = json.Unmarshal(row.Metadata, &tags) // The table checks that they are texts.
		room.Limits = newest.Limits.For(room.Assignment.DeviceID, tags)
		rooms = append(rooms, room)
	}
	return rooms, more || len(rows) > most, nil
}

// maxWindowAssignments is how many assignments a window has at most.
const maxWindowAssignments = 20_000

// searchAssignments returns the ids of those assignments in a window that keep selects. more reports whether the team
// may have others.
func (s *Store) searchAssignments(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, w roomsensor.Window, keep func(*roomsensor.Assignment) bool,
) (ids []uuid.UUID, more bool, err error) {
	held, err := s.assignmentsIn(ctx, tx, teamID, w)
	ids = []uuid.UUID{}
	for i := range held {
		if keep(&held[i]) {
			ids = append(ids, held[i].ID)
		}
	}
	return ids, len(held) == maxWindowAssignments, err
}

// AssignmentsIn returns the assignments of a team that overlap a window, by device and start.
func (s *Store) AssignmentsIn(
	ctx context.Context, teamID uuid.UUID, w roomsensor.Window,
) ([]roomsensor.Assignment, error) {
	return s.assignmentsIn(ctx, s.Pool, teamID, w)
}

func (s *Store) assignmentsIn(
	ctx context.Context, from db.DBTX, teamID uuid.UUID, w roomsensor.Window,
) ([]roomsensor.Assignment, error) {
	rows, err := s.Queries.WindowAssignmentList(ctx, from, db.WindowAssignmentListParams{
		TeamID: teamID, WindowFrom: w.From, WindowTo: w.To, Most: maxWindowAssignments,
	})
	if err != nil {
		return nil, fmt.Errorf("reading assignments: %w", pg.Translate(err))
	}
	return pg.Convert(rows, fleet.AssignmentOf), nil
}

// readNights reads the nights of some assignments: for each of them, one result per query, in their order.
func (s *Store) readNights(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, rooms []airquality.NightRoom, nights []airquality.NightQuery,
) ([][]airquality.NightResult, error) {
	reader, err := s.newNightReader(ctx, tx, teamID, rooms, nights)
	if err != nil {
		return nil, err
	}
	if err := reader.tallyReadings(ctx, tx); err != nil {
		return nil, fmt.Errorf("reading readings: %w", err)
	}
	results := make([][]airquality.NightResult, len(rooms))
	for i, tallies := range reader.tallies {
		for _, tally := range tallies {
			results[i] = append(results[i], tally.Result())
		}
	}
	return results, nil
}

// nightReader reads nights of assignments.
type nightReader struct {
	tallies  [][]*airquality.NightTally // by assignment, then night
	byDevice map[uuid.UUID][]*airquality.NightTally
	parts    db.ReadingListPartsParams
}

func (s *Store) newNightReader(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, rooms []airquality.NightRoom, nights []airquality.NightQuery,
) (*nightReader, error) {
	ids := make([]uuid.UUID, len(rooms))
	for i := range rooms {
		ids[i] = rooms[i].Assignment.DeviceID
	}
	units, err := s.fleet.DeviceUnits(ctx, tx, teamID, ids)
	if err != nil {
		return nil, err
	}
	r := &nightReader{
		tallies: make([][]*airquality.NightTally, len(rooms)), byDevice: map[uuid.UUID][]*airquality.NightTally{},
		parts: db.ReadingListPartsParams{TeamID: teamID, WindowFrom: roomsensor.Forever},
	}
	for i := range rooms {
		a := &rooms[i].Assignment
		for n := range nights {
			tally := airquality.NewNightTally(&nights[n], a, units[a.DeviceID], &rooms[i].Limits)
			r.tallies[i] = append(r.tallies[i], tally)
			r.add(a.DeviceID, tally)
		}
	}
	return r, nil
}

// add selects the readings of a night of a device. Those of one device do not overlap.
func (r *nightReader) add(deviceID uuid.UUID, tally *airquality.NightTally) {
	w := tally.Window()
	if w.Empty() {
		return
	}
	p := &r.parts
	p.WindowFrom, p.WindowTo = roomsensor.Earlier(p.WindowFrom, w.From), roomsensor.Later(p.WindowTo, w.To)
	p.DeviceIds = append(p.DeviceIds, deviceID)
	p.PartFrom, p.PartTo = append(p.PartFrom, w.From), append(p.PartTo, w.To)
	r.byDevice[deviceID] = append(r.byDevice[deviceID], tally)
}

// tallyReadings reads all readings, each once.
func (r *nightReader) tallyReadings(ctx context.Context, tx pgx.Tx) error {
	if len(r.parts.DeviceIds) == 0 {
		return nil
	}
	return eachInParts(ctx, tx, r.parts, func(row *roomsensor.ExportRow) {
		if tally := r.of(row.DeviceID, row.BucketAt); tally != nil {
			tally.Add(row.BucketAt, &row.Values)
		}
	})
}

// of returns the night of a device at a time.
func (r *nightReader) of(deviceID uuid.UUID, at time.Time) *airquality.NightTally {
	for _, tally := range r.byDevice[deviceID] {
		if tally.Window().Contains(at) {
			return tally
		}
	}
	return nil
}

// LastReadings returns the readings of devices of a team, each from a time of its own on, by device and bucket.
func (s *Store) LastReadings(
	ctx context.Context, teamID uuid.UUID, since map[uuid.UUID]time.Time,
) (found map[uuid.UUID][]roomsensor.ExportRow, err error) {
	found = make(map[uuid.UUID][]roomsensor.ExportRow, len(since))
	p := db.ReadingListPartsParams{TeamID: teamID, WindowFrom: roomsensor.Forever, WindowTo: roomsensor.Forever}
	for id, from := range since {
		p.WindowFrom = roomsensor.Earlier(p.WindowFrom, from)
		p.DeviceIds, p.PartFrom = append(p.DeviceIds, id), append(p.PartFrom, from)
		p.PartTo = append(p.PartTo, roomsensor.Forever)
	}
	err = s.InSnapshot(ctx, "reading the last readings", func(tx pgx.Tx) error {
		return eachInParts(ctx, tx, p, func(row *roomsensor.ExportRow) {
			found[row.DeviceID] = append(found[row.DeviceID], *row)
		})
	})
	for _, last := range found {
		slices.SortFunc(last, func(a, b roomsensor.ExportRow) int { return a.BucketAt.Compare(b.BucketAt) })
	}
	return found, err
}

// eachInParts calls a function with each reading of ReadingListParts. The row is only valid during the call.
func eachInParts(
	ctx context.Context, tx pgx.Tx, p db.ReadingListPartsParams, do func(*roomsensor.ExportRow),
) error {
	rows, err := tx.Query(ctx, db.ReadingListParts, pg.Positional(p)...)
	if err != nil {
		return err //nolint:wrapcheck // Its callers wrap it.
	}
	defer rows.Close()
	var row roomsensor.ExportRow
	for rows.Next() {
		decodeExportRow(rows, &row)
		do(&row)
	}
	return rows.Err()
}
