package admin

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/store"
)

// Operator carries out the operator's commands on the database. It refuses a command with a process.RefusedError, a
// sentence that says what to do.
type Operator struct {
	store *store.Store
	url   string
	now   func() time.Time
}

// Open prepares the connection to the database. The caller must call Close.
func Open(ctx context.Context, cfg config.Database) (*Operator, error) {
	s, err := process.OpenStore(ctx, cfg, store.Operator)
	if err != nil {
		return nil, err
	}
	return New(cfg, s), nil
}

// New returns an Operator on an open store.
func New(cfg config.Database, s *store.Store) *Operator {
	return &Operator{store: s, url: string(cfg.DatabaseURL), now: time.Now}
}

// Close closes the connections.
func (o *Operator) Close() { o.store.Close() }

// effectiveTime returns the time at which a change takes effect: *at, or now if at is nil. It refuses a time in the
// future or before 2015. flag is the name of the flag that gave the time.
func (o *Operator) effectiveTime(flag string, at *time.Time) (time.Time, error) {
	effective, err := roomsensor.EffectiveTime(at, o.now())
	if err != nil {
		return time.Time{}, process.Refusef("--%s %s %v.", flag, roomsensor.FormatTime(*at), err)
	}
	return effective, nil
}

// timestamp is now in the precision of the database, 1 µs.
func (o *Operator) timestamp() time.Time { return o.now().UTC().Truncate(time.Microsecond) }

// CreateTeam creates a team.
func (o *Operator) CreateTeam(ctx context.Context, name string) (Team, error) {
	team, err := o.store.CreateTeam(ctx, name)
	if err != nil {
		return Team{}, o.explain(ctx, err)
	}
	return viewTeam(&team), nil
}

// Teams lists all teams, oldest first.
func (o *Operator) Teams(ctx context.Context) (List[Team], error) {
	teams, err := o.store.Teams(ctx)
	return listOf(teams, viewTeam), o.explain(ctx, err)
}

// TeamSettings returns a team with what people set for it.
func (o *Operator) TeamSettings(ctx context.Context, teamID uuid.UUID) (TeamSettings, error) {
	team, err := o.store.TeamSettings(ctx, teamID)
	if err != nil {
		return TeamSettings{}, o.explain(ctx, err)
	}
	return viewTeamSettings(&team), nil
}

// UpdateTeamSettings changes what people set for a team.
func (o *Operator) UpdateTeamSettings(
	ctx context.Context, teamID uuid.UUID, change func(*accounts.TeamSettings),
) (TeamSettings, error) {
	team, err := o.store.UpdateTeamSettings(ctx, teamID, func(team *accounts.TeamSettings) error {
		change(team)
		return nil
	})
	if err != nil {
		return TeamSettings{}, o.explain(ctx, err)
	}
	return viewTeamSettings(&team), nil
}

// RenameTeam renames a team.
func (o *Operator) RenameTeam(ctx context.Context, teamID uuid.UUID, name string) (Team, error) {
	team, err := o.store.RenameTeam(ctx, teamID, name)
	if err != nil {
		return Team{}, o.explain(ctx, err)
	}
	return viewTeam(&team), nil
}
