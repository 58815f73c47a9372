package config

import (
	"cmp"
	"errors"
	"net/mail"
	"net/url"

	"github.com/rs/zerolog"
)

// SMTPS is the scheme of an SMTP server that expects TLS from the first byte.
const SMTPS = "smtps"

// Mail is how mails are sent.
type Mail struct {
	SMTPURL  Secret `help:"URL of the SMTP server: smtp://USER:PASSWORD@HOST:587, or smtps:// for TLS from the start. smtp:// uses STARTTLS where the server offers it, and requires it to send a password. Without it, alerts and reports are in the dashboard only." implied:"sends no mails" name:"smtp-url" placeholder:"URL" setting:"" rule:"smtp-url"`
	SMTPCA   string `help:"File with the certificates of the CAs of the SMTP server. Set it if a CA of your own signed the server's certificate." implied:"those of the system" name:"smtp-ca" placeholder:"FILE" setting:"" rule:"certificates"`
	MailFrom string `help:"Sender of mails, such as Room sensors <rooms@example.com>. SMTP_URL needs it." implied:"none" placeholder:"ADDRESS" setting:"" rule:"mail-address"`
}

var (
	errSMTPURL = errors.New("must have the form smtp://HOST:PORT or smtps://HOST:PORT, with USER:PASSWORD@ before the " +
		"host if the server needs them. Encode special characters of a password, such as %40 for @")
	errMailAddress = errors.New("must be an address such as rooms@example.com or Room sensors <rooms@example.com>")
)

// Validate checks the form of the settings.
func (c *Mail) Validate() error {
	if err := validate(c); err != nil {
		return err
	}
	if c.SMTPURL != "" && c.MailFrom == "" {
		return &ValueError{Flag: "mail-from", Reason: "is missing: SMTP_URL needs the address that mails come from"}
	}
	return nil
}

// Malformed returns the error of an SMTP URL. It does not repeat the URL, which may contain a password.
func (c *Mail) Malformed() error { return &ValueError{Flag: "smtp-url", Reason: errSMTPURL.Error()} }

func smtpURL(value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "smtp" && u.Scheme != SMTPS || u.Hostname() == "" || !hasGoodPort(u) ||
		u.Path != "" || u.RawQuery != "" {
		return errSMTPURL
	}
	return nil
}

func mailAddress(value string) error {
	if _, err := mail.ParseAddress(value); err != nil {
		return errMailAddress
	}
	return nil
}

// Notify configures the processes that evaluate alerts and send mails.
type Notify struct {
	Database
	DashboardSite
	Mail
	Log
	Stop
	OpsAddr string `default:"127.0.0.1:9084" help:"Address of health checks, metrics and profiles." placeholder:"HOST:PORT" setting:"" rule:"address"`
}

// Validate checks everything that can be checked without connecting.
func (c *Notify) Validate() error {
	return cmp.Or(validate(c), c.DashboardSite.Validate(), c.Mail.Validate())
}

// MarshalZerologObject logs the configuration without its secrets.
func (c *Notify) MarshalZerologObject(e *zerolog.Event) {
	inForce := *c
	inForce.DashboardURL = c.URL("")
	logSettings(e, &inForce)
}
