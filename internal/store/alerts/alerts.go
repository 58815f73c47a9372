// Package alerts reads and changes alerts, the rounds in which they are evaluated, and the outbox of mails.
package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/roomsensor/alerting"
	"roomsensor/internal/store/pg"
)

// Store reads and changes alerts and mails. It is safe for concurrent use.
type Store struct{ *pg.DB }

// New returns a store with the pools of a role.
func New(d *pg.DB) *Store { return &Store{d} }

// transaction is the transaction of a turn.
type transaction struct {
	store  *Store
	tx     pgx.Tx
	teamID uuid.UUID
	now    time.Time
	began  bool // an alert
}

// EvaluateTeam evaluates the team that was tried least recently, unless that was less than interval ago. found is
// false if there is none. A team whose evaluation fails has its next turn like the others.
func (s *Store) EvaluateTeam(
	ctx context.Context, now time.Time, interval time.Duration,
	evaluate func(context.Context, *alerting.Turn) error,
) (found bool, err error) {
	var teamID uuid.UUID
	err = s.InTx(ctx, "evaluating alerts", func(tx pgx.Tx) error {
		row, err := s.Queries.AlertRoundTake(ctx, tx, now.Add(-interval))
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		teamID = row.TeamID
		t := &transaction{store: s, tx: tx, teamID: teamID, now: now}
		turn := &alerting.Turn{
			Tx: t, TeamID: teamID, Now: now,
			NightsAt: row.NightsAt, ReportedAt: row.ReportedAt,
		}
		if err := json.Unmarshal(row.Reported, &turn.Reported); err != nil {
			return fmt.Errorf("reading the last report: %w", err)
		}
		if err := evaluate(ctx, turn); err != nil {
			return err
		}
		if t.began {
			if err := s.Queries.AlertTrim(ctx, tx, db.AlertTrimParams{TeamID: teamID, Kept: maxEnded}); err != nil {
				return err
			}
		}
		return s.saveTurn(ctx, tx, turn, row.Report)
	})
	if err != nil && teamID != uuid.Nil {
		p := db.AlertRoundFailParams{TeamID: teamID, AttemptedAt: now}
		err = errors.Join(err, s.Queries.AlertRoundFail(ctx, s.Pool, p))
	}
	return teamID != uuid.Nil, err
}

func (s *Store) saveTurn(ctx context.Context, tx pgx.Tx, turn *alerting.Turn, report []byte) error {
	reported, err := json.Marshal(turn.Reported)
	if err == nil && turn.Report != nil {
		report, err = json.Marshal(turn.Report)
	}
	if err != nil {
		return fmt.Errorf("encoding a report: %w", err)
	}
	return s.Queries.AlertRoundUpdate(ctx, tx, db.AlertRoundUpdateParams{
		TeamID: turn.TeamID, EvaluatedAt: turn.Now, NightsAt: turn.NightsAt, ReportedAt: turn.ReportedAt,
		Report: report, Reported: reported, SendsMails: turn.SendsMails,
	})
}

// AddTeams begins the rounds of new teams.
func (s *Store) AddTeams(ctx context.Context) error {
	if err := s.Queries.AlertRoundInsert(ctx, s.Pool); err != nil {
		return fmt.Errorf("adding teams: %w", pg.Translate(err))
	}
	return nil
}

// RoomStates returns the devices of a team that are not retired.
func (s *Store) RoomStates(
	ctx context.Context, teamID uuid.UUID, limits *airquality.TeamLimits,
) ([]alerting.RoomState, error) {
	rows, err := s.Queries.AlertDeviceList(ctx, s.Pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("reading devices: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.AlertDeviceListRow) alerting.RoomState {
		var tags map[string]string
		_ = json.Unmarshal(row.Metadata, &tags) // The table checks that they are texts.
		room := alerting.RoomState{DeviceID: row.ID, Limits: limits.For(row.ID, tags)}
		if row.LastSeenAt != nil {
			room.LastSeenAt = *row.LastSeenAt
		}
		if row.BucketAt != nil {
			room.Newest = roomsensor.ExportRow{
				DeviceID: row.ID, BucketAt: *row.BucketAt,
				Values: roomsensor.ValuesOf([...]*float32{row.Co2Ppm, row.TempC, row.HumidityPct, row.Lux, row.SplDb}),
			}
		}
		return room
	}), nil
}

// UnitRejects returns the rejects of the units of a team since a time.
func (s *Store) UnitRejects(ctx context.Context, teamID uuid.UUID, since time.Time) ([]alerting.UnitRejects, error) {
	rows, err := s.Queries.AlertRejectList(ctx, s.Pool, db.AlertRejectListParams{
		TeamID: teamID, Since: since, Most: alerting.MaxAlerts,
	})
	if err != nil {
		return nil, fmt.Errorf("reading rejects: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.AlertRejectListRow) alerting.UnitRejects {
		return alerting.UnitRejects{
			Unit: row.Unit, Reason: row.Reason, FirstAt: row.FirstAt, LastAt: row.LastAt,
		}
	}), nil
}

// TeamAlerts returns the alerts of a team that are open or ended after a time: the open ones first, then the newest. It
// returns at most alerting.MaxOpen.
func (s *Store) TeamAlerts(ctx context.Context, teamID uuid.UUID, since time.Time) ([]alerting.Alert, error) {
	return s.alerts(ctx, s.Pool, teamID, since)
}

// Alerts is TeamAlerts, with what the transaction changed.
func (t *transaction) Alerts(ctx context.Context, since time.Time) ([]alerting.Alert, error) {
	return t.store.alerts(ctx, t.tx, t.teamID, since)
}

func (s *Store) alerts(
	ctx context.Context, from db.DBTX, teamID uuid.UUID, since time.Time,
) ([]alerting.Alert, error) {
	rows, err := s.Queries.AlertList(ctx, from, db.AlertListParams{
		TeamID: teamID, Since: since, Most: alerting.MaxOpen,
	})
	if err != nil {
		return nil, fmt.Errorf("reading alerts: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.AlertListRow) alerting.Alert {
		a := &row.Alert
		alert := alerting.Alert{
			ID: a.ID, Rule: alerting.Rule(a.Rule), Subject: a.Subject, DeviceID: a.DeviceID, Detail: a.Detail,
			Since: a.Since, NotedAt: a.NotedAt, EndedAt: a.EndedAt, Name: row.Name, Label: row.Label,
		}
		if a.Outcome != nil {
			alert.Outcome = alerting.Outcome(*a.Outcome)
		}
		return alert
	}), nil
}

// BeginAlert stores a new alert.
func (t *transaction) BeginAlert(ctx context.Context, a *alerting.Alert) error {
	t.began = true
	return t.store.Queries.AlertInsert(ctx, t.tx, db.AlertInsertParams{
		TeamID: t.teamID, Rule: string(a.Rule), Subject: a.Subject, DeviceID: a.DeviceID, Detail: a.Detail,
		Since: a.Since, NotedAt: t.now,
	})
}

// RenewAlert changes what an open alert says.
func (t *transaction) RenewAlert(ctx context.Context, id uuid.UUID, detail string, since time.Time) error {
	return t.store.Queries.AlertRenew(ctx, t.tx, db.AlertRenewParams{
		TeamID: t.teamID, AlertID: id, Detail: detail, Since: since,
	})
}

// EndAlert ends an alert.
func (t *transaction) EndAlert(ctx context.Context, id uuid.UUID, outcome alerting.Outcome) error {
	return t.store.Queries.AlertEnd(ctx, t.tx, db.AlertEndParams{
		TeamID: t.teamID, AlertID: id, EndedAt: &t.now, Outcome: new(string(outcome)),
	})
}

// AlertRound returns the last evaluation of the alerts of a team; a zero one if there was none.
func (s *Store) AlertRound(ctx context.Context, teamID uuid.UUID) (last alerting.Round, err error) {
	row, err := s.Queries.AlertReportGet(ctx, s.Pool, teamID)
	if errors.Is(err, pgx.ErrNoRows) {
		return last, nil
	}
	if err != nil {
		return last, fmt.Errorf("reading a report: %w", pg.Translate(err))
	}
	last.At, last.SendsMails = row.EvaluatedAt, row.SendsMails
	if row.Report != nil {
		if err := json.Unmarshal(row.Report, &last.Report); err != nil {
			return last, fmt.Errorf("decoding a report: %w", err)
		}
	}
	return last, nil
}

// NewestAlertRound returns when the evaluation of any team was tried last, the epoch if none was, and how many teams
// have none that is not alerting.Late, although it was tried.
func (s *Store) NewestAlertRound(ctx context.Context) (at time.Time, failing int64, err error) {
	row, err := s.Queries.AlertRoundGetNewest(ctx, s.Pool, alerting.Late.Seconds())
	if err != nil {
		return at, 0, fmt.Errorf("reading the last evaluation of alerts: %w", pg.Translate(err))
	}
	return row.AttemptedAt, row.Failing, nil
}

const (
	// keepAlerts is the retention of alerts after they ended, and keepMails that of the records of mails.
	keepAlerts, keepMails = 90 * 24 * time.Hour, 14 * 24 * time.Hour
	purgePart             = 1000
	// maxEnded is the number of alerts of a team that ended and are kept.
	maxEnded = 10_000
)

// PurgeAlerts deletes old alerts and records of mails.
func (s *Store) PurgeAlerts(ctx context.Context) (int64, error) {
	now := time.Now()
	alerts, err := s.DeleteInParts(ctx, "deleting old alerts", func(tx pgx.Tx) (int64, error) {
		return s.Queries.AlertPurge(ctx, tx, db.AlertPurgeParams{Before: new(now.Add(-keepAlerts)), Most: purgePart})
	})
	if err != nil {
		return alerts, err
	}
	mails, err := s.DeleteInParts(ctx, "deleting records of mails", func(tx pgx.Tx) (int64, error) {
		return s.Queries.MailPurge(ctx, tx, db.MailPurgeParams{Before: new(now.Add(-keepMails)), Most: purgePart})
	})
	return alerts + mails, err
}
