package harness

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/ledger"
)

// Fleet is the senders of a trial.
type Fleet struct {
	Now   time.Time // no reading is newer
	Teams []Team
	Units []*ledger.Unit
	// Excluded are devices with readings that are not in the ledger.
	Excluded []uuid.UUID
}

// Team is a team with an ingest key and an API key.
type Team struct {
	ID         uuid.UUID
	Credential string
	Key        string
}

// swapAge is how long ago the first device of each team got another unit.
const swapAge = 38 * 24 * time.Hour

// CreateFleet migrates the database and creates teams and devices with operator commands. The first device of each team
// gets a second unit, so that the unit of a reading of that device depends on its time.
func (s *Service) CreateFleet(ctx context.Context, teams, units int) (*Fleet, error) {
	if err := s.Command(ctx, nil, "migrate", "up"); err != nil {
		return nil, err
	}
	f := &Fleet{Now: time.Now().UTC().Truncate(time.Microsecond)}
	for i := range teams {
		t, err := s.createTeam(ctx, fmt.Sprintf("Team %d", i+1))
		if err != nil {
			return nil, err
		}
		f.Teams = append(f.Teams, t)
	}
	for i := range units {
		u, err := s.createDevice(ctx, f, i%teams, i)
		if err != nil {
			return nil, err
		}
		f.Units = append(f.Units, u)
	}
	for i, u := range f.Units[:teams] {
		next, err := s.swap(ctx, f, u, units+i)
		if err != nil {
			return nil, err
		}
		f.Units = append(f.Units, next)
	}
	return f, nil
}

func (s *Service) createTeam(ctx context.Context, name string) (t Team, err error) {
	var output struct{ ID, Key string }
	if err := s.Command(ctx, &output, "team", "create", "--name", name); err != nil {
		return t, err
	}
	if t.ID, err = uuid.Parse(output.ID); err != nil {
		return t, fmt.Errorf("reading a team id: %w", err)
	}
	if err := s.Command(ctx, &output, "ingest-key", "create", "--team", output.ID); err != nil {
		return t, err
	}
	t.Credential = output.Key
	t.Key, err = s.CreateKey(ctx, t.ID)
	return t, err
}

// CreateKey creates an API key.
func (s *Service) CreateKey(ctx context.Context, team uuid.UUID) (string, error) {
	var output struct{ Key string }
	err := s.Command(ctx, &output, "key", "create", "--team", team.String())
	return output.Key, err
}

func (s *Service) createDevice(ctx context.Context, f *Fleet, team, number int) (*ledger.Unit, error) {
	u := &ledger.Unit{HardwareID: hardwareID(number), Team: team}
	var output struct {
		DeviceID uuid.UUID `json:"device_id"`
	}
	err := s.Command(ctx, &output, "device", "create", "--team", f.Teams[team].ID.String(),
		"--hardware-id", u.HardwareID, "--name", fmt.Sprintf("Room %d", number+1))
	u.Device = output.DeviceID
	return u, err
}

func hardwareID(number int) string { return fmt.Sprintf("dev:8644750465%05d", number) }

// swap ends the assignment of a unit and assigns a new unit to its device.
func (s *Service) swap(ctx context.Context, f *Fleet, u *ledger.Unit, number int) (*ledger.Unit, error) {
	at := f.Now.Add(-swapAge).Truncate(roomsensor.BucketLength)
	next := *u
	next.HardwareID, next.From = hardwareID(number), at
	u.To = at
	return &next, s.Command(ctx, nil, "device", "replace-hardware", u.Device.String(),
		"--hardware-id", next.HardwareID, "--at", roomsensor.FormatTime(at))
}
