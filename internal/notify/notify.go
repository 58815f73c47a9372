// Package notify evaluates alerts, writes the mails of the teams, and sends them.
//
//   - notify.go: the loops
//   - evaluate.go: which alerts begin and end
//   - report.go: the morning report and the weekly summary
//   - mail.go: the texts of mails
//   - send.go: the outbox and the SMTP server
package notify

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/roomsensor/alerting"
)

// The intervals of the loops.
const (
	// roundInterval is how often the alerts of a team are evaluated, by all processes together.
	roundInterval = time.Minute
	// nightsInterval is the same for the coverage of the last night, which needs all readings of the night.
	nightsInterval = 15 * time.Minute
	// pollInterval is how often a process looks for work.
	pollInterval = 2 * time.Second
)

// Config is the configuration of a notifier.
type Config struct {
	URL     string // base of links to the dashboard, without a trailing slash
	Sender  Sender // nil: alerts and reports are on the pages only
	Now     func() time.Time
	Log     zerolog.Logger
	Metrics prometheus.Registerer
}

// Backend has what is stored. Its methods are safe for concurrent use.
type Backend interface {
	Outbox

	TeamSettings(ctx context.Context, teamID uuid.UUID) (accounts.TeamSettings, error)
	RoomStates(
		ctx context.Context, teamID uuid.UUID, limits *airquality.TeamLimits,
	) ([]alerting.RoomState, error)
	LastReadings(
		ctx context.Context, teamID uuid.UUID, since map[uuid.UUID]time.Time,
	) (map[uuid.UUID][]roomsensor.ExportRow, error)
	UnitRejects(ctx context.Context, teamID uuid.UUID, since time.Time) ([]alerting.UnitRejects, error)
	NightRooms(
		ctx context.Context, teamID uuid.UUID, q airquality.NightQuery,
	) (rooms []airquality.NightRoom, more bool, err error)
	RoomNights(
		ctx context.Context, teamID uuid.UUID, nights []airquality.NightQuery, keep func(*roomsensor.Assignment) bool,
	) (rooms []airquality.NightRoom, results [][]airquality.NightResult, more bool, err error)

	// AddTeams begins the rounds of new teams.
	AddTeams(ctx context.Context) error
	// EvaluateTeam evaluates the team that was evaluated least recently, unless that was less than interval ago.
	EvaluateTeam(
		ctx context.Context, now time.Time, interval time.Duration,
		evaluate func(context.Context, *alerting.Turn) error,
	) (found bool, err error)
}

// Outbox has the mails that wait. Its methods are safe for concurrent use.
type Outbox interface {
	// TakeMail takes the mail that is due for the longest time; nil if none is due.
	TakeMail(ctx context.Context, now time.Time, lease time.Duration) (*alerting.Mail, error)
	// EndMail records that a mail was sent, or has failed permanently for a reason.
	EndMail(ctx context.Context, id uuid.UUID, now time.Time, failure *string) error
	RetryMail(ctx context.Context, id uuid.UUID, at time.Time, failure string) error
}

// Notifier evaluates alerts and sends mails. Several processes may do so at the same time.
type Notifier struct {
	Config

	store  Backend
	rounds *prometheus.CounterVec // by result
	mails  *prometheus.CounterVec // by result
}

// New returns a notifier.
func New(cfg Config, s Backend) *Notifier {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	factory := promauto.With(cfg.Metrics)
	n := &Notifier{Config: cfg, store: s}
	n.rounds = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "roomsensor_alert_rounds_total",
		Help: "Evaluations of the alerts of a team, by result: ok, or failed; the log has the error.",
	}, []string{"result"})
	n.mails = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "roomsensor_mails_total",
		Help: "Attempts to send a mail, by result: sent, retry (the server did not accept it now), failed (it never will), " +
			"dropped (the person does not get it any more).",
	}, []string{"result"})
	for _, result := range []string{"ok", "failed"} {
		n.rounds.WithLabelValues(result)
	}
	for _, result := range []string{mailSent, mailRetry, mailFailed, mailDropped} {
		n.mails.WithLabelValues(result)
	}
	return n
}

// Evaluate evaluates teams until ctx ends. Its error is nil.
func (n *Notifier) Evaluate(ctx context.Context) error {
	retry.Every(ctx, pollInterval, func(ctx context.Context) {
		if err := n.EvaluateDue(ctx); err != nil && ctx.Err() == nil {
			n.Log.Warn().Err(err).Msg("could not evaluate alerts, retrying")
		}
	})
	return nil
}

// EvaluateDue evaluates all teams that are due.
func (n *Notifier) EvaluateDue(ctx context.Context) error {
	if err := n.store.AddTeams(ctx); err != nil {
		return err
	}
	for found := true; found && ctx.Err() == nil; {
		var err error
		found, err = n.store.EvaluateTeam(ctx, n.Now(), roundInterval, n.evaluate)
		switch {
		case !found && err != nil:
			return err
		case err != nil:
			n.rounds.WithLabelValues("failed").Inc()
			n.Log.Warn().Err(err).Msg("could not evaluate the alerts of a team")
		case found:
			n.rounds.WithLabelValues("ok").Inc()
		}
	}
	return nil
}
