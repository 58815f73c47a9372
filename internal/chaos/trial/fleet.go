package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/chaos/ledger"
	"roomsensor/internal/roomsensor"
)

// Fleet is who sends.
type Fleet struct {
	Now   time.Time // no reading is younger
	Teams []Team
	Units []*ledger.Unit
	// Aside are devices with readings that were not sent: no matter of the ledger.
	Aside []uuid.UUID
}

// Team is a team with a credential for the receiver and a key of the API.
type Team struct {
	ID         uuid.UUID
	Credential string
	Key        string
}

// swapAge is when the first device of each team got another unit.
const swapAge = 38 * 24 * time.Hour

// MakeFleet migrates, and makes teams and devices as an operator does. In the first device of every team the unit was
// swapped, so that the device of a reading depends on its time.
func (s *Service) MakeFleet(ctx context.Context, teams, units int) (*Fleet, error) {
	if err := s.Command(ctx, nil, "migrate", "up"); err != nil {
		return nil, err
	}
	f := &Fleet{Now: time.Now().UTC().Truncate(time.Microsecond)}
	for i := range teams {
		t, err := s.makeTeam(ctx, fmt.Sprintf("Team %d", i+1))
		if err != nil {
			return nil, err
		}
		f.Teams = append(f.Teams, t)
	}
	for i := range units {
		u, err := s.makeDevice(ctx, f, i%teams, i)
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

func (s *Service) makeTeam(ctx context.Context, name string) (t Team, err error) {
	var made struct{ ID, Key string }
	if err := s.Command(ctx, &made, "team", "create", "--name", name); err != nil {
		return t, err
	}
	if t.ID, err = uuid.Parse(made.ID); err != nil {
		return t, fmt.Errorf("reading the id of a team: %w", err)
	}
	if err := s.Command(ctx, &made, "ingest-key", "create", "--team", made.ID); err != nil {
		return t, err
	}
	t.Credential = made.Key
	t.Key, err = s.MakeKey(ctx, t.ID)
	return t, err
}

// MakeKey makes a key of the API.
func (s *Service) MakeKey(ctx context.Context, team uuid.UUID) (string, error) {
	var made struct{ Key string }
	err := s.Command(ctx, &made, "key", "create", "--team", team.String())
	return made.Key, err
}

func (s *Service) makeDevice(ctx context.Context, f *Fleet, team, number int) (*ledger.Unit, error) {
	u := &ledger.Unit{HardwareID: hardwareID(number), Team: team}
	var made struct {
		DeviceID uuid.UUID `json:"device_id"`
	}
	err := s.Command(ctx, &made, "device", "create", "--team", f.Teams[team].ID.String(),
		"--hardware-id", u.HardwareID, "--name", fmt.Sprintf("Room %d", number+1))
	u.Device = made.DeviceID
	return u, err
}

func hardwareID(number int) string { return fmt.Sprintf("dev:8644750465%05d", number) }

// swap puts another unit into the device of a unit, which it ends.
func (s *Service) swap(ctx context.Context, f *Fleet, u *ledger.Unit, number int) (*ledger.Unit, error) {
	at := f.Now.Add(-swapAge).Truncate(roomsensor.BucketLength)
	next := *u
	next.HardwareID, next.From = hardwareID(number), at
	u.To = at
	return &next, s.Command(ctx, nil, "device", "replace-hardware", u.Device.String(),
		"--hardware-id", next.HardwareID, "--at", roomsensor.FormatTime(at))
}
