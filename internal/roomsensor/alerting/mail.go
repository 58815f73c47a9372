package alerting

import (
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// MailPause is the least time between two mails of a rule to a person.
const MailPause = 15 * time.Minute

// MailChoice is which mails of a team a member wants.
type MailChoice struct {
	UserID                  uuid.UUID
	Alerts, Morning, Weekly bool
	Format                  roomsensor.FormatChoice // of the member, when the mails are written
	Told                    map[Rule]time.Time      // of the last mail about alerts, which reported everything until then
}

// Due returns the rules about which a member can get a mail now, with the time until which the last mail reported.
func (c *MailChoice) Due(now time.Time) map[Rule]time.Time {
	due := map[Rule]time.Time{}
	for _, rule := range Rules {
		if told := c.Told[rule]; c.Alerts && now.Sub(told) >= MailPause {
			due[rule] = told
		}
	}
	return due
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

// ReportLine is what a report says about a person or a room.
type ReportLine struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"` // of a night; empty for several nights
	Text    string `json:"text"`
}

// MailTime returns the newest time at which a mail of a time of day was due, at or before now. On each day this
// is the first instant at which the clocks show that time or a later one.
func MailTime(at roomsensor.Clock, now time.Time, zone *time.Location) time.Time {
	year, month, day := now.In(zone).Date()
	for {
		due := roomsensor.FirstInstant(time.Date(year, month, day, int(at)/60, int(at)%60, 0, 0, time.UTC), zone)
		if !due.After(now) {
			return due
		}
		day--
	}
}
