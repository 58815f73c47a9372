package receiver

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

const (
	// maxReported is the limit of rejects in the report of a dry run (A8.4).
	maxReported = 1000
	// lookupUploads is how many uploads of a dry run share a lookup of installations.
	lookupUploads = 1000
)

// dryRunReport is what a worker would report of a request (A8.1).
type dryRunReport struct {
	Uploads       int              `json:"uploads"`
	Readings      int              `json:"readings"`
	Rejects       []reportedReject `json:"rejects"`
	IgnoredFields []string         `json:"ignored_fields"`
}

type reportedReject struct {
	Line   int               `json:"line"` // number of the upload in the request, from 1
	Reason roomsensor.Reason `json:"reason"`
	Detail string            `json:"detail"`
}

// dryRun returns what a worker would report of the uploads now. It publishes and stores nothing.
func (q *request) dryRun(key *roomsensor.Key, u *uploads) (any, error) {
	report := &dryRunReport{
		Uploads: len(u.messages), Readings: u.readings, Rejects: []reportedReject{}, IgnoredFields: u.ignored.Names(),
	}
	arrival := roomsensor.Arrival{At: time.Now().UTC().Truncate(time.Microsecond), Team: &key.TeamID}
	line := 0
	for group := range slices.Chunk(u.messages, lookupUploads) {
		units, err := q.installations(key.TeamID, group)
		if err != nil {
			return nil, err
		}
		for i := range group {
			line++
			report.add(line, resolve(&group[i], arrival, units))
		}
		if len(report.Rejects) == maxReported {
			break
		}
	}
	return report, nil
}

func (r *dryRunReport) add(line int, rejections []upload.Refusal) {
	for _, rejection := range rejections {
		if len(r.Rejects) < maxReported {
			r.Rejects = append(r.Rejects, reportedReject{line, rejection.Reason, rejection.Detail})
		}
	}
}

// installations reads the installations of the units of some uploads.
func (q *request) installations(
	team uuid.UUID, messages []queue.Message,
) (units map[string][]roomsensor.Installation, err error) {
	ids := make([]string, len(messages))
	for i := range messages {
		ids[i] = messages[i].HardwareID
	}
	slices.Sort(ids)
	err = q.useDatabase(team, func(ctx context.Context) error {
		units, err = q.Database.Installations(ctx, slices.Compact(ids))
		return err
	})
	return units, err
}

// dryRunParser is held while an upload is parsed in a dry run: parsed, it takes up to 32 times its text.
var dryRunParser = make(chan struct{}, 1)

// resolve returns what a worker would reject of an upload that arrives now.
func resolve(
	m *queue.Message, arrival roomsensor.Arrival, units map[string][]roomsensor.Installation,
) (rejections []upload.Refusal) {
	dryRunParser <- struct{}{}
	defer func() { <-dryRunParser }()
	u, refusal := upload.Parse(m.Text, m.HardwareID, arrival.At)
	if refusal != nil {
		return []upload.Refusal{*refusal}
	}
	resolution := u.Resolve(arrival, units[m.HardwareID])
	for i := range resolution.Rejections {
		rejections = append(rejections, resolution.Rejections[i].Refusal)
	}
	return rejections
}
