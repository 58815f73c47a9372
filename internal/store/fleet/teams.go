// Package fleet reads and changes teams, their keys, devices, hardware units and assignments, and has what the API
// counts and remembers of requests.
package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"roomsensor/db"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/roomsensor/alerting"
	"roomsensor/internal/store/pg"
	"roomsensor/internal/timezone"
)

// Store reads and changes the fleets of teams. It is safe for concurrent use.
type Store struct {
	*pg.DB
	changes *fairshare.Limiter // by device
	limiter limiter
}

// New returns a store with the pools of a role.
func New(d *pg.DB) *Store {
	s := &Store{DB: d, changes: deviceChanges()}
	s.limiter.count = s.countHits
	return s
}

// Team returns a team.
func (s *Store) Team(ctx context.Context, teamID uuid.UUID) (roomsensor.Team, error) {
	row, err := s.Queries.TeamSettingsGet(ctx, s.Pool, teamID)
	if err != nil {
		return roomsensor.Team{}, pg.TranslateByID(err, "reading a team", roomsensor.KindTeam, teamID.String())
	}
	return roomsensor.Team{ID: row.ID, Name: row.Name}, nil
}

// Teams lists all teams, the oldest first.
func (s *Store) Teams(ctx context.Context) ([]roomsensor.Team, error) {
	return s.teams(ctx, db.TeamListParams{})
}

// maxNamesakes is how many teams or devices with the same name are listed.
const maxNamesakes = 10

// TeamsNamed lists teams with a name, the oldest first, and at most maxNamesakes of them.
func (s *Store) TeamsNamed(ctx context.Context, name string) ([]roomsensor.Team, error) {
	return s.teams(ctx, db.TeamListParams{Name: &name, Most: new(int64(maxNamesakes))})
}

func (s *Store) teams(ctx context.Context, p db.TeamListParams) ([]roomsensor.Team, error) {
	rows, err := s.Queries.TeamList(ctx, s.Pool, p)
	if err != nil {
		return nil, fmt.Errorf("listing teams: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.TeamListRow) roomsensor.Team {
		return roomsensor.Team{ID: row.ID, Name: row.Name}
	}), nil
}

// RenameTeam changes the name of a team.
func (s *Store) RenameTeam(ctx context.Context, teamID uuid.UUID, name string) (renamed roomsensor.Team, err error) {
	err = s.InChange(ctx, "renaming a team", func(tx pgx.Tx) error {
		row, err := s.Queries.TeamRename(ctx, tx, db.TeamRenameParams{TeamID: teamID, Name: name})
		if err != nil {
			return pg.TranslateByID(err, "updating a team", roomsensor.KindTeam, teamID.String())
		}
		renamed = roomsensor.Team{ID: row.ID, Name: row.Name}
		return nil
	})
	return renamed, err
}

// CreateTeam creates a team.
func (s *Store) CreateTeam(ctx context.Context, name string) (created roomsensor.Team, err error) {
	err = s.InChange(ctx, "creating a team", func(tx pgx.Tx) error {
		row, err := s.Queries.TeamInsert(ctx, tx, name)
		created = roomsensor.Team{ID: row.ID, Name: row.Name}
		return err
	})
	return created, err
}

// TeamSettings returns a team and what people set for it.
func (s *Store) TeamSettings(ctx context.Context, teamID uuid.UUID) (accounts.TeamSettings, error) {
	row, err := s.Queries.TeamSettingsGet(ctx, s.Pool, teamID)
	if err != nil {
		return accounts.TeamSettings{}, pg.TranslateByID(err, "reading a team", roomsensor.KindTeam, teamID.String())
	}
	return TeamSettingsOf(&row), nil
}

// UpdateTeamSettings changes a team with a function, which gets what is stored. Nothing changes if the function returns
// an error, which is returned as it is.
func (s *Store) UpdateTeamSettings(
	ctx context.Context, teamID uuid.UUID, change func(*accounts.TeamSettings) error,
) (team accounts.TeamSettings, err error) {
	err = s.InChange(ctx, "changing a team", func(tx pgx.Tx) error {
		row, err := s.Queries.TeamSettingsLock(ctx, tx, teamID)
		if err != nil {
			return pg.TranslateByID(err, "reading a team", roomsensor.KindTeam, teamID.String())
		}
		team = TeamSettingsOf(&row)
		if err := change(&team); err != nil {
			return err
		}
		limits, err := encodeLimits(&team.Limits)
		if err != nil {
			return err
		}
		return s.Queries.TeamSettingsUpdate(ctx, tx, db.TeamSettingsUpdateParams{
			TeamID: teamID, Name: team.Name, TimeZone: team.TimeZone.String(),
			NightStart: encodeClock(team.Night.Start), NightEnd: encodeClock(team.Night.End), Limits: limits,
			AlertSilent: minutes(team.Alerts.Silent), AlertBad: minutes(team.Alerts.Bad),
			AlertBadAtNight: team.Alerts.BadAtNight,
			AlertCoverage:   int32(team.Alerts.Coverage), //nolint:gosec // A percentage.
			AlertRejects:    minutes(team.Alerts.Rejected),
			MailAt:          encodeClock(team.Alerts.MailAt), MailWeekday: int16(team.Alerts.MailDay), //nolint:gosec // 0 to 6.
		})
	})
	return team, err
}

// TeamSettingsOf converts a row. SQL can have set a name that is not a zone: its times are shown in UTC.
func TeamSettingsOf(row *db.Team) accounts.TeamSettings {
	zone, ok := timezone.Load(row.TimeZone)
	if !ok {
		zone = time.UTC
	}
	return accounts.TeamSettings{
		ID: row.ID, Name: row.Name, TimeZone: zone,
		Night:  airquality.NightHours{Start: decodeClock(row.NightStart), End: decodeClock(row.NightEnd)},
		Limits: decodeLimits(row.Limits),
		Alerts: alerting.Settings{
			Silent: time.Duration(row.AlertSilent) * time.Minute,
			Bad:    time.Duration(row.AlertBad) * time.Minute, BadAtNight: row.AlertBadAtNight,
			Coverage: int(row.AlertCoverage), Rejected: time.Duration(row.AlertRejects) * time.Minute,
			MailAt: decodeClock(row.MailAt), MailDay: time.Weekday(row.MailWeekday),
		},
		KeepDays: row.KeepDays,
	}
}

func minutes(d time.Duration) int32 { return int32(d / time.Minute) } //nolint:gosec // At most a week.

const minute = int64(time.Minute / time.Microsecond)

func encodeClock(c roomsensor.Clock) pgtype.Time {
	return pgtype.Time{Microseconds: int64(c) * minute, Valid: true}
}

func decodeClock(t pgtype.Time) roomsensor.Clock { return roomsensor.Clock(t.Microseconds / minute) }
