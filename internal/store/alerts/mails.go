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
	"roomsensor/internal/roomsensor/alerting"
	"roomsensor/internal/store/pg"
)

// Choices returns which mails the members of the team want who may get some.
func (t *transaction) Choices(ctx context.Context) ([]alerting.MailChoice, error) {
	rows, err := t.store.Queries.MailChoiceList(ctx, t.tx, t.teamID)
	if err != nil {
		return nil, err
	}
	return pg.Convert(rows, func(row *db.MailChoiceListRow) alerting.MailChoice {
		c := choiceOf(&row.MailChoice)
		c.Format = roomsensor.FormatChoice{Fahrenheit: row.Fahrenheit, Hour12: row.Hour12, MonthFirst: row.MonthFirst}
		return c
	}), nil
}

func choiceOf(row *db.MailChoice) alerting.MailChoice {
	c := alerting.MailChoice{
		UserID: row.UserID, Alerts: row.Alerts, Morning: row.Morning, Weekly: row.Weekly,
		Told: map[alerting.Rule]time.Time{},
	}
	_ = json.Unmarshal(row.Told, &c.Told) // Only the store writes it.
	return c
}

// SetTold stores until when a member knows the alerts of each rule.
func (t *transaction) SetTold(ctx context.Context, c *alerting.MailChoice) error {
	told, err := json.Marshal(c.Told)
	if err != nil {
		return fmt.Errorf("encoding times: %w", err)
	}
	return t.store.Queries.MailChoiceSetTold(ctx, t.tx, db.MailChoiceSetToldParams{
		TeamID: t.teamID, UserID: c.UserID, Told: told,
	})
}

// Enqueue adds a mail to the outbox.
func (t *transaction) Enqueue(ctx context.Context, m *alerting.Mail) error {
	return t.store.Queries.MailInsert(ctx, t.tx, db.MailInsertParams{
		TeamID: t.teamID, UserID: m.UserID, Kind: string(m.Kind),
		Subject: &m.Subject, Plain: &m.Plain, Html: &m.HTML, Now: t.now,
	})
}

// MailChoice returns which mails of a team a member wants.
func (s *Store) MailChoice(ctx context.Context, teamID, userID uuid.UUID) (alerting.MailChoice, error) {
	row, err := s.Queries.MailChoiceGet(ctx, s.Pool, db.MailChoiceGetParams{TeamID: teamID, UserID: userID})
	if errors.Is(err, pgx.ErrNoRows) {
		return alerting.MailChoice{UserID: userID}, nil
	}
	if err != nil {
		return alerting.MailChoice{}, fmt.Errorf("reading a choice of mails: %w", pg.Translate(err))
	}
	return choiceOf(&row), nil
}

// ChooseMails stores which mails of a team a member wants. It reports no alerts that began before.
func (s *Store) ChooseMails(ctx context.Context, teamID uuid.UUID, c alerting.MailChoice, now time.Time) error {
	c.Told = map[alerting.Rule]time.Time{}
	for _, rule := range alerting.Rules {
		c.Told[rule] = now.Add(-alerting.MailPause) // The next alert is reported at once.
	}
	told, err := json.Marshal(c.Told)
	if err != nil {
		return fmt.Errorf("encoding times: %w", err)
	}
	return s.InChange(ctx, "choosing mails", func(tx pgx.Tx) error {
		return s.Queries.MailChoicePut(ctx, tx, db.MailChoicePutParams{
			TeamID: teamID, UserID: c.UserID, Alerts: c.Alerts, Morning: c.Morning, Weekly: c.Weekly, Told: told,
		})
	})
}

// MailTeam returns the name of the team whose mails a link stops.
func (s *Store) MailTeam(ctx context.Context, stop uuid.UUID) (string, error) {
	name, err := s.Queries.MailChoiceGetByStop(ctx, s.Pool, stop)
	if err != nil {
		return "", fmt.Errorf("reading a choice of mails: %w", pg.Translate(err))
	}
	return name, nil
}

// StopMails stops the mails of a link. Its error is ErrNotFound for a link that does not exist.
func (s *Store) StopMails(ctx context.Context, stop uuid.UUID) error {
	return s.InTx(ctx, "stopping mails", func(tx pgx.Tx) error {
		return pg.ChangedRow(s.Queries.MailChoiceStop(ctx, tx, stop))
	})
}

// TakeMail takes the mail that is due for the longest time; nil if none is due. No other process takes it within lease.
func (s *Store) TakeMail(ctx context.Context, now time.Time, lease time.Duration) (*alerting.Mail, error) {
	row, err := s.Queries.MailTake(ctx, s.Pool, db.MailTakeParams{Now: now, AgainAt: now.Add(lease)})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // No mail is due.
	}
	if err != nil {
		return nil, fmt.Errorf("reading the outbox: %w", pg.Translate(err))
	}
	return &alerting.Mail{
		ID: row.ID, Kind: alerting.MailKind(row.Kind), CreatedAt: row.CreatedAt, Tries: int(row.Tries), To: row.Email,
		Subject: row.Subject, Plain: row.Plain, HTML: row.Html, Stop: row.Stop,
	}, nil
}

// EndMail records that a mail was sent, or has failed permanently for a reason.
func (s *Store) EndMail(ctx context.Context, id uuid.UUID, now time.Time, failure *string) error {
	err := s.Queries.MailEnd(ctx, s.Pool, db.MailEndParams{MailID: id, DoneAt: &now, Error: failure})
	if err != nil {
		return fmt.Errorf("recording a mail: %w", pg.Translate(err))
	}
	return nil
}

// RetryMail records why a mail could not be sent, and when to try again.
func (s *Store) RetryMail(ctx context.Context, id uuid.UUID, at time.Time, failure string) error {
	err := s.Queries.MailRetry(ctx, s.Pool, db.MailRetryParams{MailID: id, TryAt: at, Error: &failure})
	if err != nil {
		return fmt.Errorf("recording a mail: %w", pg.Translate(err))
	}
	return nil
}

// maxFailures is how many failed mails are listed.
const maxFailures = 20

// MailFailures returns the mails of a team since a time that could not be sent so far, or never, the newest first.
func (s *Store) MailFailures(ctx context.Context, teamID uuid.UUID, since time.Time) ([]alerting.MailFailure, error) {
	rows, err := s.Queries.MailFailureList(ctx, s.Pool, db.MailFailureListParams{
		TeamID: teamID, Since: since, Most: maxFailures,
	})
	if err != nil {
		return nil, fmt.Errorf("reading mails that failed: %w", pg.Translate(err))
	}
	return pg.Convert(rows, func(row *db.MailFailureListRow) alerting.MailFailure {
		return alerting.MailFailure{
			To: row.Email, Kind: alerting.MailKind(row.Kind), CreatedAt: row.CreatedAt, GaveUp: row.DoneAt != nil,
			Reason: row.Error,
		}
	}), nil
}

// OutboxState counts the mails that failed permanently since a time and those that wait since before another one. It
// has the newest error.
type OutboxState struct {
	Failed, Waiting int64
	Error           string
}

// Outbox returns the state of the mails of all teams.
func (s *Store) Outbox(ctx context.Context, failedSince, waitingSince time.Time) (OutboxState, error) {
	row, err := s.Queries.MailCount(ctx, s.Pool, db.MailCountParams{FailedSince: failedSince, WaitingSince: waitingSince})
	if err != nil {
		return OutboxState{}, fmt.Errorf("counting mails: %w", pg.Translate(err))
	}
	return OutboxState{row.Failed, row.Waiting, row.Error}, nil
}
