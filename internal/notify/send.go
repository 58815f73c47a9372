package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	smtp "github.com/wneessen/go-mail"

	"roomsensor/internal/config"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor/alerting"
)

// The results of an attempt to send a mail.
const (
	mailSent    = "sent"
	mailRetry   = "retry"
	mailFailed  = "failed"
	mailDropped = "dropped"
)

const (
	// sendTimeout bounds an attempt. lease is the time in which no other process takes the mail: it is longer, so that a
	// mail is sent twice only if a process ends between the acceptance by the server and its record.
	sendTimeout, lease = time.Minute, 3 * time.Minute
	// giveUpAfter is the age at which a mail fails permanently.
	giveUpAfter = 24 * time.Hour
	// maxReason bounds what is stored of an error.
	maxReason = 300
)

// retryDelay is the delay between two attempts to send a mail.
var retryDelay = retry.Backoff{First: time.Minute, Max: time.Hour}

// Sender sends mails.
type Sender interface {
	// Send sends a mail. Its error is a *RefusedError if no later attempt can succeed.
	Send(ctx context.Context, m *alerting.Mail, stopURL string) error
}

// RefusedError means that the server will never accept a mail, such as one to an address that does not exist.
type RefusedError struct{ Reason error }

// Error returns the answer of the server.
func (e *RefusedError) Error() string { return e.Reason.Error() }

// Unwrap returns the error of the server.
func (e *RefusedError) Unwrap() error { return e.Reason }

// Send sends the mails of the outbox until ctx ends. Its error is nil.
func (n *Notifier) Send(ctx context.Context) error {
	retry.Every(ctx, pollInterval, func(ctx context.Context) {
		if err := n.SendDue(ctx); err != nil && ctx.Err() == nil {
			n.Log.Warn().Err(err).Msg("could not read the outbox, retrying")
		}
	})
	return nil
}

// SendDue sends all mails that are due, one after the other.
func (n *Notifier) SendDue(ctx context.Context) error {
	for ctx.Err() == nil {
		m, err := n.store.TakeMail(ctx, n.Now(), lease)
		if m == nil || err != nil {
			return err
		}
		// A mail that the server accepted is recorded, even if the process stops meanwhile.
		if err := n.settle(context.WithoutCancel(ctx), m, n.send(ctx, m)); err != nil {
			return err
		}
	}
	return nil
}

// errNotWanted means that a mail is not sent, because the person left, was disabled, or stopped these mails.
var errNotWanted = errors.New("the person does not get these mails any more")

func (n *Notifier) send(ctx context.Context, m *alerting.Mail) error {
	if m.To == "" {
		return errNotWanted
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	stop := m.Stop.String()
	m.Plain = strings.ReplaceAll(m.Plain, alerting.MailStopMark, stop)
	m.HTML = strings.ReplaceAll(m.HTML, alerting.MailStopMark, stop)
	return n.Sender.Send(ctx, m, n.URL+"/mails/stop/"+stop)
}

// settle records what came of an attempt.
func (n *Notifier) settle(ctx context.Context, m *alerting.Mail, err error) error {
	now := n.Now()
	var refused *RefusedError
	switch {
	case err == nil:
		n.mails.WithLabelValues(mailSent).Inc()
		return n.store.EndMail(ctx, m.ID, now, nil)
	case errors.Is(err, errNotWanted):
		n.mails.WithLabelValues(mailDropped).Inc()
		return n.store.EndMail(ctx, m.ID, now, nil)
	case errors.As(err, &refused) || now.Sub(m.CreatedAt) >= giveUpAfter:
		n.mails.WithLabelValues(mailFailed).Inc()
		n.Log.Warn().Stringer("mail", m.ID).Str("kind", string(m.Kind)).Str("reason", reason(err)).
			Msg("gave up a mail")
		return n.store.EndMail(ctx, m.ID, now, new(reason(err)))
	}
	n.mails.WithLabelValues(mailRetry).Inc()
	delay := retryDelay.Delay(m.Tries)
	n.Log.Warn().Stringer("mail", m.ID).Str("reason", reason(err)).Dur("delay_ms", delay).
		Msg("could not send a mail, retrying")
	return n.store.RetryMail(ctx, m.ID, now.Add(delay), reason(err))
}

// reason returns the answer of the server for people and the log, without the recipients that the client adds.
func reason(err error) string {
	answer, _, _ := strings.Cut(err.Error(), ", affected recipient(s): ")
	text := []rune(strings.ToValidUTF8(strings.Join(strings.Fields(answer), " "), "?"))
	return string(text[:min(len(text), maxReason)])
}

// smtpSender sends mails through an SMTP server. It connects for each mail, with the URL and the CAs that their files
// have then.
type smtpSender struct {
	cfg  *config.Mail
	from *mail.Address
}

// NewSender returns the sender of a configuration that Validate accepted; nil without a server.
func NewSender(cfg *config.Mail) (Sender, error) {
	if cfg.SMTPURL == "" {
		return nil, nil //nolint:nilnil // Mails are not configured.
	}
	from, err := mail.ParseAddress(cfg.MailFrom)
	if err != nil {
		return nil, fmt.Errorf("reading the sender of mails: %w", err)
	}
	return &smtpSender{cfg, from}, nil
}

// client returns a client of the server.
func (s *smtpSender) client() (*smtp.Client, error) {
	text, err := s.cfg.SMTPURL.Read()
	if err != nil {
		return nil, fmt.Errorf("reading the URL of the SMTP server: %w", err)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, s.cfg.Malformed()
	}
	trusted := &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	if trusted.RootCAs, err = config.CertPool(s.cfg.SMTPCA); err != nil {
		return nil, fmt.Errorf("reading the certificates of the SMTP server: %w", err)
	}
	port, policy := smtp.DefaultPort, smtp.TLSOpportunistic
	options := []smtp.Option{smtp.WithTimeout(sendTimeout), smtp.WithTLSConfig(trusted)}
	if u.Scheme == config.SMTPS {
		port, options = smtp.DefaultPortSSL, append(options, smtp.WithSSL())
	}
	if u.User != nil {
		password, _ := u.User.Password()
		options = append(options, smtp.WithSMTPAuth(smtp.SMTPAuthAutoDiscover),
			smtp.WithUsername(u.User.Username()), smtp.WithPassword(password))
		if !config.IsLoopback(u.Hostname()) {
			policy = smtp.TLSMandatory // A password must not be readable on the network.
		}
	}
	if u.Port() != "" {
		port, _ = strconv.Atoi(u.Port()) // Validate checked it.
	}
	client, err := smtp.NewClient(u.Hostname(), append(options, smtp.WithTLSPolicy(policy), smtp.WithPort(port))...)
	if err != nil {
		return nil, fmt.Errorf("configuring the SMTP client: %w", err)
	}
	return client, nil
}

// Send implements Sender.
func (s *smtpSender) Send(ctx context.Context, m *alerting.Mail, stopURL string) error {
	msg := smtp.NewMsg(smtp.WithNoDefaultUserAgent())
	msg.FromMailAddress(s.from)
	if err := msg.To(m.To); err != nil {
		return &RefusedError{err}
	}
	msg.Subject(m.Subject)
	msg.SetDateWithValue(m.CreatedAt)
	_, domain, _ := strings.Cut(s.from.Address, "@")
	msg.SetMessageIDWithValue(m.ID.String() + "@" + domain) // A repeated mail has the same.
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetGenHeader(smtp.HeaderListUnsubscribe, "<"+stopURL+">")
	if strings.HasPrefix(stopURL, "https:") {
		msg.SetListUnsubscribePost()
	}
	msg.SetBodyString(smtp.TypeTextPlain, m.Plain)
	msg.AddAlternativeString(smtp.TypeTextHTML, m.HTML)
	client, err := s.client()
	if err != nil {
		return err
	}
	err = client.DialAndSendWithContext(ctx, msg)
	var failed *smtp.SendError
	switch {
	case err == nil || msg.IsDelivered(): // The end of the connection cannot make it undelivered.
		return nil
	case errors.As(err, &failed) && failed.ErrorCode() >= 500 &&
		(failed.Reason == smtp.ErrSMTPRcptTo || failed.Reason == smtp.ErrSMTPDataClose):
		return &RefusedError{err}
	}
	return err //nolint:wrapcheck // settle reports it.
}
