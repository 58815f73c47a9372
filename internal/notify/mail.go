package notify

import (
	"bytes"
	"embed"
	"fmt"
	htmltemplate "html/template"
	"strings"
	texttemplate "text/template"
	"time"

	"roomsensor/internal/roomsensor/alerting"
	"roomsensor/internal/wording"
)

//go:embed mail.txt mail.html
var files embed.FS

var (
	plainText = texttemplate.Must(texttemplate.ParseFS(files, "mail.txt"))
	htmlText  = htmltemplate.Must(htmltemplate.ParseFS(files, "mail.html"))
)

// maxLines is how many lines a part of a mail has at most. The page has all of them.
const maxLines = 50

// letter is the data of the templates of mails.
type letter struct {
	Headline string
	Parts    []part
	Links    []link
	Team     string
	Stop     string // address
}

// part is a part of a mail; without lines it is left out.
type part struct {
	Title string
	Lines []string
	More  int // lines that were left out
}

// link is a link to a page.
type link struct{ Text, URL string }

func newPart(title string, lines []string) part {
	p := part{Title: title, Lines: lines[:min(len(lines), maxLines)]}
	p.More = len(lines) - len(p.Lines)
	return p
}

// link returns a link to a page of the team.
func (r *round) link(text, path string) link {
	return link{text, r.notifier.URL + "/teams/" + r.TeamID.String() + path}
}

// mail returns a mail with a letter, to which it adds what all mails have.
func (r *round) mail(kind alerting.MailKind, subject string, l *letter) (*alerting.Mail, error) {
	l.Links = append(l.Links, r.link("Alerts", "/alerts"), r.link("Overview", ""))
	l.Team, l.Stop = r.team.Name, r.notifier.URL+"/mails/stop/"+alerting.MailStopMark
	var plain, html bytes.Buffer
	if err := plainText.Execute(&plain, l); err != nil {
		return nil, fmt.Errorf("writing a mail: %w", err)
	}
	if err := htmlText.Execute(&html, l); err != nil {
		return nil, fmt.Errorf("writing a mail: %w", err)
	}
	return &alerting.Mail{
		Kind: kind, Subject: r.team.Name + ": " + subject, Plain: plain.String(), HTML: html.String(),
	}, nil
}

// alertMail returns the mail about alerts that began or ended.
func (r *round) alertMail(f wording.Format, news []alerting.Alert) (*alerting.Mail, error) {
	clock := func(at time.Time) string { return f.Time(at.In(r.team.TimeZone), "Mon 2 Jan, 15:04") }
	var began, ended []string
	var first string
	for i := range news {
		a := &news[i]
		text := f.AlertText(a)
		if first == "" || a.EndedAt == nil && len(began) == 0 {
			first = text
		}
		if a.EndedAt == nil {
			began = append(began, text+", since "+clock(a.Since)+". "+wording.AlertDo(a))
			continue
		}
		ended = append(ended, wording.AlertEnded(a)+": "+text+", from "+clock(a.Since)+" to "+clock(*a.EndedAt)+".")
	}
	subject := first
	switch {
	case len(news) > 1 && len(began) > 0:
		subject = first + ", and " + wording.Plural(len(news)-1, "other alert")
	case len(news) > 1:
		subject = wording.Plural(len(ended), "alert") + " ended"
	case len(ended) == 1:
		subject = wording.AlertEnded(&news[0]) + ": " + first
	}
	return r.mail(alerting.MailAlerts, subject, &letter{
		Headline: subject, Parts: []part{newPart("Wrong now", began), newPart("Ended", ended)},
	})
}

// morningMail returns the mail with a report.
func (r *round) morningMail(report *alerting.MorningReport) (*alerting.Mail, error) {
	night := linesOf(report.People)
	if report.Others != "" {
		night = append(night, report.Others)
	}
	parts := []part{newPart("Last night", night)}
	if len(report.Good) > 0 {
		parts = append(parts, part{Title: "Good air", Lines: []string{strings.Join(report.Good, ", ")}})
	}
	return r.mail(alerting.MailMorning, report.Headline, &letter{
		Headline: report.Headline,
		Parts: append(parts, newPart("Wrong now", report.Attention),
			newPart("Changed since the last report", report.Changes)),
		Links: []link{r.link("Last night", "/nights"), r.link("People", "/people")},
	})
}

// weeklyMail returns the mail with the last nights of a report.
func (r *round) weeklyMail(report *alerting.MorningReport) (*alerting.Mail, error) {
	return r.mail(alerting.MailWeekly, fmt.Sprintf("the last %d nights", reportNights), &letter{
		Headline: fmt.Sprintf("The last %d nights until %s", reportNights, report.Night),
		Parts:    []part{newPart("Nights of each", linesOf(report.Week))},
		Links:    []link{r.link("People", "/people")},
	})
}

func linesOf(lines []alerting.ReportLine) []string {
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = line.Name + ": " + line.Text
	}
	return texts
}
