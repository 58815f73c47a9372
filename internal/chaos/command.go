package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/chaos/ledger"
	"roomsensor/internal/roomsensor"
)

// fleet is who sends.
type fleet struct {
	now   time.Time // no reading is younger
	teams []team
	units []*ledger.Unit
}

// team is a team with a credential for the receiver and a key of the API.
type team struct {
	id         uuid.UUID
	credential string
	key        string
}

// command runs an operator's command and reads what it prints.
func (w *world) command(ctx context.Context, printed any, args ...string) error {
	cmd := exec.CommandContext(ctx, w.programs.Roomsensor, args...) //nolint:gosec // The arguments are the trial's.
	cmd.Env = []string{"DATABASE_URL=" + w.database.address(), "NATS_URL=" + w.queue.url}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	said, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("roomsensor %s: %w: %s", strings.Join(args, " "), err, complaint.String())
	}
	if printed == nil {
		return nil
	}
	if err := json.Unmarshal(said, printed); err != nil {
		return fmt.Errorf("reading what roomsensor %s prints: %w", strings.Join(args, " "), err)
	}
	return nil
}

// swapAge is when the first device of each team got another unit.
const swapAge = 38 * 24 * time.Hour

// makeFleet migrates, and makes teams and devices as an operator does. In the first device of every team the unit was
// swapped, so that the device of a reading depends on its time.
func (w *world) makeFleet(ctx context.Context) error {
	if err := w.command(ctx, nil, "migrate", "up"); err != nil {
		return err
	}
	w.fleet.now = time.Now().UTC().Truncate(time.Microsecond)
	for i := range w.options.Teams {
		t, err := w.makeTeam(ctx, fmt.Sprintf("Team %d", i+1))
		if err != nil {
			return err
		}
		w.fleet.teams = append(w.fleet.teams, t)
	}
	for i := range w.options.Units {
		if err := w.makeDevice(ctx, i%w.options.Teams, i); err != nil {
			return err
		}
	}
	for i, u := range w.fleet.units[:w.options.Teams] {
		if err := w.swap(ctx, u, i); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) makeTeam(ctx context.Context, name string) (t team, err error) {
	var made struct{ ID, Key string }
	if err := w.command(ctx, &made, "team", "create", "--name", name); err != nil {
		return t, err
	}
	if t.id, err = uuid.Parse(made.ID); err != nil {
		return t, fmt.Errorf("reading the id of a team: %w", err)
	}
	if err := w.command(ctx, &made, "ingest-key", "create", "--team", made.ID); err != nil {
		return t, err
	}
	t.credential = made.Key
	err = w.command(ctx, &made, "key", "create", "--team", t.id.String())
	t.key = made.Key
	return t, err
}

func (w *world) makeDevice(ctx context.Context, team, number int) error {
	u := &ledger.Unit{HardwareID: hardwareID(number), Team: team}
	var made struct {
		DeviceID uuid.UUID `json:"device_id"`
	}
	err := w.command(ctx, &made, "device", "create", "--team", w.fleet.teams[team].id.String(),
		"--hardware-id", u.HardwareID, "--name", fmt.Sprintf("Room %d", number+1))
	u.Device = made.DeviceID
	w.fleet.units = append(w.fleet.units, u)
	return err
}

func hardwareID(number int) string { return fmt.Sprintf("dev:8644750465%05d", number) }

// swap puts another unit into the device of a unit.
func (w *world) swap(ctx context.Context, u *ledger.Unit, number int) error {
	at := w.fleet.now.Add(-swapAge).Truncate(roomsensor.BucketLength)
	next := *u
	next.HardwareID, next.From = hardwareID(w.options.Units+number), at
	u.To = at
	w.fleet.units = append(w.fleet.units, &next)
	return w.command(ctx, nil, "device", "replace-hardware", u.Device.String(),
		"--hardware-id", next.HardwareID, "--at", roomsensor.FormatTime(at))
}
