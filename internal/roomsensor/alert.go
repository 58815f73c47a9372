package roomsensor

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/google/uuid"
)

// AlertRule is what an alert is about.
type AlertRule string

// The rules of alerts.
const (
	RuleSilent   AlertRule = "silent"   // a device sends nothing
	RuleBad      AlertRule = "bad"      // the air of a room is bad
	RuleCoverage AlertRule = "coverage" // readings of the last night are missing
	RuleRejects  AlertRule = "rejects"  // the readings of a unit are rejected
)

// AlertRules lists the rules.
var AlertRules = []AlertRule{RuleBad, RuleSilent, RuleCoverage, RuleRejects}

// DefaultAlertSettings are those of a team that chose no others. The columns of teams have the same defaults.
var DefaultAlertSettings = AlertSettings{
	Silent: 3 * time.Hour, Bad: 20 * time.Minute, Coverage: 80, Rejected: time.Hour,
	MailAt: 7*60 + 30, MailDay: time.Monday,
}

// AlertSettings are the rules of a team, and when its mails are sent. A rule of 0 is off.
type AlertSettings struct {
	Silent     time.Duration // without an upload; whole minutes
	Bad        time.Duration // of bad air; whole minutes
	BadAtNight bool          // only in the hours of the night
	Coverage   int           // percent of the expected readings of a night
	Rejected   time.Duration // during which readings are rejected; whole minutes
	MailAt     Clock         // of the morning mail, in the zone of the team
	MailDay    time.Weekday  // of the weekly summary
}

// On reports whether a rule is on.
func (s *AlertSettings) On(rule AlertRule) bool {
	switch rule {
	case RuleSilent:
		return s.Silent > 0
	case RuleBad:
		return s.Bad > 0
	case RuleCoverage:
		return s.Coverage > 0
	case RuleRejects:
		return s.Rejected > 0
	}
	return false
}

// The times of alerts. Late data is normal: an alert about bad air needs fresh readings, and one about the coverage of
// a night waits.
const (
	// AlertFresh is the greatest age of the newest reading of bad air.
	AlertFresh = 30 * time.Minute
	// CoverageDelay is the time between the end of a night and the judgment of its coverage.
	CoverageDelay = time.Hour
	// RejectPause is the time without a reject after which the rejects of a unit are over.
	RejectPause = 30 * time.Minute
	// MailPause is the least time between two mails of a rule to a person.
	MailPause = 15 * time.Minute
	// MaxAlerts is how many alerts of a team are open at most.
	MaxAlerts = 1000
	// AlertsLate is the age of the last evaluation from which nobody evaluates alerts. An evaluation is due each minute.
	AlertsLate = 10 * time.Minute
)

// AlertOutcome is why an alert ended.
type AlertOutcome string

// The outcomes.
const (
	AlertOver      AlertOutcome = "over"
	AlertUnknown   AlertOutcome = "unknown"   // there are no fresh readings
	AlertRetracted AlertOutcome = "retracted" // late data changed what was known
	AlertOff       AlertOutcome = "off"       // the rule was switched off
)

// Alert is something that was wrong, from when to when.
type Alert struct {
	ID       uuid.UUID
	Rule     AlertRule
	Subject  string     // id of a device, or hardware id of a unit whose uploads are rejected
	DeviceID *uuid.UUID // nil for a unit that is not registered
	Detail   string     // of bad air: the metric and its limit (wording.AlertDetail); otherwise words
	Since    time.Time  // when the cause began
	NotedAt  time.Time
	EndedAt  *time.Time
	Outcome  AlertOutcome // empty while it is open

	Name  string // of the device; Subject without one
	Label string // of the assignment of the device now; empty without one
}

// AlertKey identifies what an alert is about: one alert of a key is open at a time.
type AlertKey struct {
	Rule    AlertRule
	Subject string
}

// Key returns the key of an alert.
func (a *Alert) Key() AlertKey { return AlertKey{a.Rule, a.Subject} }

// RoomState is what alerts need to know about a device.
type RoomState struct {
	DeviceID   uuid.UUID
	Limits     Limits
	LastSeenAt time.Time // arrival of the newest upload; zero before the first one
	Newest     ExportRow // the newest reading; its BucketAt is zero without one
}

// fresh reports whether the newest reading says what the air is like now.
func (r *RoomState) fresh(now time.Time) bool {
	return now.Sub(r.Newest.BucketAt) <= AlertFresh+BucketLength
}

// AirAlert says whether the air of a room is bad now, and judges the rule about bad air. At night, the limits of sound
// count too.
type AirAlert struct {
	Settings *AlertSettings
	Night    func(time.Time) bool // reports whether a time is in the hours of the night
	Now      time.Time
}

// judge returns the verdict on a reading, as far as the rule counts it.
func (j *AirAlert) judge(r *RoomState, m *ExportRow) Air {
	night := j.Night(m.BucketAt)
	if j.Settings.BadAtNight && !night {
		return Air{}
	}
	return r.Limits.Judge(&m.Values, night)
}

// Since returns from when on readings decide about an alert, for a room whose newest reading is fresh and bad. ok is
// false for another one, which has no alert.
func (j *AirAlert) Since(r *RoomState) (since time.Time, ok bool) {
	ok = j.Settings.Bad > 0 && r.fresh(j.Now) && j.judge(r, &r.Newest).Verdict == Bad
	return r.Newest.BucketAt.Add(-j.Settings.Bad - AlertFresh), ok
}

// Alert returns the alert of a room whose last readings are all bad, the oldest first, for as long as the rule says. A
// gap of more than AlertFresh ends the time of bad air.
func (j *AirAlert) Alert(r *RoomState, last []ExportRow) (a Alert, ok bool) {
	first := r.Newest.BucketAt
	for i := len(last) - 1; i >= 0; i-- {
		m := &last[i]
		if first.Sub(m.BucketAt) > AlertFresh || j.judge(r, m).Verdict != Bad {
			break
		}
		first = m.BucketAt
	}
	if r.Newest.BucketAt.Add(BucketLength).Sub(first) < j.Settings.Bad {
		return Alert{}, false
	}
	return Alert{Rule: RuleBad, Subject: r.DeviceID.String(), DeviceID: &r.DeviceID, Since: first}, true
}

// Ended returns why the alert of a room ended.
func (j *AirAlert) Ended(r *RoomState) AlertOutcome {
	switch {
	case r == nil || !r.fresh(j.Now):
		return AlertUnknown
	case j.judge(r, &r.Newest).Verdict == Bad:
		return AlertRetracted
	}
	return AlertOver
}

// Cause returns the metric of the newest reading that the rule judges bad: that which is beyond its bad limit by the
// most, in parts of the limit. The reading must be bad.
func (j *AirAlert) Cause(r *RoomState) (c Cause) {
	air, most := j.judge(r, &r.Newest), -1.0
	add := func(m Metric, v Verdict, high bool, limit *float32) {
		if v != Bad {
			return
		}
		x, _ := r.Newest.Values.Get(m)
		if beyond := math.Abs(float64(x-*limit)) / math.Max(1, math.Abs(float64(*limit))); beyond > most {
			c, most = Cause{Metric: m, High: high, Limit: *limit}, beyond
		}
	}
	for _, m := range Metrics {
		add(m, air.High[m], true, r.Limits[m].High.Bad)
		add(m, air.Low[m], false, r.Limits[m].Low.Bad)
	}
	return c
}

// SilentAlert returns the alert of a device that sends nothing.
func (s *AlertSettings) SilentAlert(r *RoomState, now time.Time) (a Alert, ok bool) {
	if s.Silent == 0 || r.LastSeenAt.IsZero() || now.Sub(r.LastSeenAt) < s.Silent {
		return Alert{}, false
	}
	return Alert{Rule: RuleSilent, Subject: r.DeviceID.String(), DeviceID: &r.DeviceID, Since: r.LastSeenAt}, true
}

// CoverageAlert returns the alert of a room of which too few readings of a night arrived.
func (s *AlertSettings) CoverageAlert(night *Night, room *NightRoom) (a Alert, ok bool) {
	if s.Coverage == 0 || room.Expected == 0 || room.Present*100 >= s.Coverage*room.Expected {
		return Alert{}, false
	}
	id := room.Assignment.DeviceID
	return Alert{Rule: RuleCoverage, Subject: id.String(), DeviceID: &id, Since: night.Window.From}, true
}

// UnitRejects are the rejects of a unit that are not older than the rule needs, and were not replayed.
type UnitRejects struct {
	HardwareID      string // empty for uploads without one
	Reason          string // of the newest
	FirstAt, LastAt time.Time
}

// RejectAlert returns the alert of a unit whose readings are rejected for as long as the rule says.
func (s *AlertSettings) RejectAlert(u *UnitRejects, now time.Time) (a Alert, ok bool) {
	if s.Rejected == 0 || u.LastAt.Sub(u.FirstAt) < s.Rejected || now.Sub(u.LastAt) > RejectPause {
		return Alert{}, false
	}
	subject := cmp.Or(u.HardwareID, "unknown unit")
	return Alert{Rule: RuleRejects, Subject: subject, Detail: u.Reason, Since: u.FirstAt}, true
}

// MailChoice is which mails of a team a member wants.
type MailChoice struct {
	UserID                  uuid.UUID
	Alerts, Morning, Weekly bool
	Format                  FormatChoice            // of the member, when the mails are written
	Told                    map[AlertRule]time.Time // of the last mail about alerts, which reported everything until then
}

// Due returns the rules about which a member can get a mail now, with the time until which the last mail reported.
func (c *MailChoice) Due(now time.Time) map[AlertRule]time.Time {
	due := map[AlertRule]time.Time{}
	for _, rule := range AlertRules {
		if told := c.Told[rule]; c.Alerts && now.Sub(told) >= MailPause {
			due[rule] = told
		}
	}
	return due
}

// News reports whether an alert began after a mail, or ended after it for another reason than that its rule was
// switched off.
func (a *Alert) News(told time.Time) bool {
	if a.Outcome == AlertOff {
		return false
	}
	return a.NotedAt.After(told) || a.EndedAt != nil && a.EndedAt.After(told)
}

// AlertTurn is the evaluation of one team, in a transaction that no other process has for the team at the same time.
type AlertTurn struct {
	AlertTx

	TeamID     uuid.UUID
	Now        time.Time
	NightsAt   time.Time                    // when the coverage of the last night was evaluated
	ReportedAt time.Time                    // for which the newest morning report was due
	Reported   map[string]map[string]string // verdicts of that report by night and sleeper
	Report     *MorningReport               // a new one; nil if the stored one stays
	SendsMails bool                         // whether the process sends mails
}

// AlertTx changes the alerts and mails of a team.
type AlertTx interface {
	// Alerts returns those that are open or ended after a time: the open ones first, then the newest.
	Alerts(ctx context.Context, since time.Time) ([]Alert, error)
	BeginAlert(ctx context.Context, a *Alert) error
	RenewAlert(ctx context.Context, id uuid.UUID, detail string, since time.Time) error
	EndAlert(ctx context.Context, id uuid.UUID, outcome AlertOutcome) error
	// Choices returns which mails the members want who may get some.
	Choices(ctx context.Context) ([]MailChoice, error)
	SetTold(ctx context.Context, c *MailChoice) error
	Enqueue(ctx context.Context, m *Mail) error
}

// MailKind is what a mail is about.
type MailKind string

// The kinds of mails.
const (
	MailAlerts  MailKind = "alerts"
	MailMorning MailKind = "morning"
	MailWeekly  MailKind = "weekly"
)

// Mail is a mail to a member of a team.
type Mail struct {
	ID          uuid.UUID
	UserID      uuid.UUID
	Kind        MailKind
	Subject     string
	Plain, HTML string
	CreatedAt   time.Time
	Tries       int       // with the one for which it was taken
	To          string    // empty if the person must not get it, or does not want it any more
	Stop        uuid.UUID // in the link that stops the mails
}

// MailFailure is a mail that could not be sent.
type MailFailure struct {
	To        string
	Kind      MailKind
	CreatedAt time.Time
	GaveUp    bool
	Reason    string
}

// MailStopMark stands in the texts of a mail for the token of the link that stops the mails of its reader.
const MailStopMark = "token-of-this-mail"

// MorningReport is what the people of a team read in the morning.
type MorningReport struct {
	At        time.Time    `json:"at"` // for which it was due
	Night     string       `json:"night"`
	Headline  string       `json:"headline"`
	Others    string       `json:"others"`
	People    []ReportLine `json:"people"`    // the worst first, without the good ones
	Good      []string     `json:"good"`      // who had good air
	Attention []string     `json:"attention"` // what is wrong now
	Changes   []string     `json:"changes"`   // of earlier nights, since the report before
	Week      []ReportLine `json:"week"`      // of everybody, the worst first
}

// AlertRound is the last evaluation of the alerts of a team.
type AlertRound struct {
	At         time.Time
	SendsMails bool           // whether the process sends mails
	Report     *MorningReport // the newest one; nil without one
}

// ReportLine is what a report says about a person or a room.
type ReportLine struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"` // of a night; empty for several nights
	Text    string `json:"text"`
}

// MailTime returns the newest time at which a mail of a time of day was due, at or before now. On each day this
// is the first instant at which the clocks show that time or a later one.
func MailTime(at Clock, now time.Time, zone *time.Location) time.Time {
	year, month, day := now.In(zone).Date()
	for {
		due := reach(zone, time.Date(year, month, day, int(at)/60, int(at)%60, 0, 0, time.UTC))
		if !due.After(now) {
			return due
		}
		day--
	}
}
