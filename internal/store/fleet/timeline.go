package fleet

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// Timeline reads a page of a team's devices with their assignments in a window, from one snapshot.
func (s *Store) Timeline(
	ctx context.Context, teamID uuid.UUID, q roomsensor.TimelineQuery,
) (timeline roomsensor.Timeline, err error) {
	filter, ok := MetadataFilter(q.Metadata)
	if !ok || !roomsensor.IsPlain(q.Search) {
		return roomsensor.Timeline{}, nil
	}
	err = s.InSnapshot(ctx, "reading a timeline", func(tx pgx.Tx) error {
		rows, err := s.Queries.TimelineDeviceList(ctx, tx, db.TimelineDeviceListParams{
			TeamID: teamID, Metadata: filter, Search: q.Search, WindowFrom: q.Window.From, WindowTo: q.Window.To,
			Most: int64(q.Limit), Skip: int64(q.Skip),
		})
		if err != nil {
			return err
		}
		ids := make([]uuid.UUID, len(rows))
		for i, row := range rows {
			ids[i], timeline.Total = row.ID, int(row.Total)
			timeline.Devices = append(timeline.Devices, roomsensor.TimelineDevice{
				ID: row.ID, HardwareID: row.HardwareID, DisplayName: row.DisplayName,
			})
		}
		return s.addAssignments(ctx, tx, teamID, ids, q.Window, timeline.Devices)
	})
	return timeline, err
}

// addAssignments reads the assignments of devices, whose ids are in the same order.
func (s *Store) addAssignments(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, ids []uuid.UUID, window roomsensor.Window,
	devices []roomsensor.TimelineDevice,
) error {
	rows, err := s.Queries.TimelineAssignmentList(ctx, tx, db.TimelineAssignmentListParams{
		TeamID: teamID, DeviceIds: ids, WindowFrom: window.From, WindowTo: window.To, Most: roomsensor.MaxTimelineAssignments,
	})
	if err != nil {
		return fmt.Errorf("reading assignments: %w", err)
	}
	for i := range slices.Backward(rows) {
		d := &devices[slices.Index(ids, rows[i].DeviceID)]
		d.Assignments = append(d.Assignments, AssignmentOf(&rows[i]))
	}
	return nil
}
