package localcopy

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/client"
)

// refreshLists replaces the lists of the copy. If the service does not answer, the old ones stay.
func (c *copier) refreshLists(ctx context.Context) error {
	c.listsAt = time.Now()
	s := c.state
	s.ListsAt = c.listsAt.UTC()
	lists, err := c.readLists(ctx)
	if err != nil {
		note := fmt.Sprintf("the lists of devices and assignments are not up to date: %v", err)
		c.report(Status{Phase: s.Phase, Note: note})
		return ctx.Err()
	}
	if err := c.store.SetLists(ctx, lists, s); err != nil {
		return fmt.Errorf("writing the devices and assignments: %w", err)
	}
	c.state = s
	return nil
}

func (c *copier) readLists(ctx context.Context) (l Lists, err error) {
	for device, err := range c.client.Devices(ctx, client.DeviceQuery{}) {
		if err != nil {
			return l, err
		}
		l.Devices = append(l.Devices, device)
	}
	seen := map[uuid.UUID]bool{} // An assignment overlaps several windows if it is long.
	for from, to := range windows(c.state.From, time.Now().Add(futureMargin)) {
		query := client.AssignmentQuery{Window: client.Between(from, to)}
		for assignment, err := range c.client.TeamAssignments(ctx, query) {
			if err != nil {
				return l, err
			}
			if !seen[assignment.AssignmentID] {
				seen[assignment.AssignmentID] = true
				l.Assignments = append(l.Assignments, assignment)
			}
		}
	}
	return l, nil
}
