// Package doctor checks the settings and the state of an installation, for roomsensor doctor.
package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"time"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// Options are what Diagnose checks beside the database.
type Options struct {
	Standbys       config.Standbys
	Queue          config.Queue
	Keep           config.Retention
	PublicURL      string // of the API; empty is not checked
	NATSMonitoring string // URL of the monitoring port of NATS; empty is not checked
}

// Diagnosis is the result of roomsensor doctor.
type Diagnosis struct {
	Data []Finding `json:"data"`
}

// Finding is the result of one check.
type Finding struct {
	Check   string  `json:"check"` // such as database locks
	Status  Status  `json:"status"`
	Message string  `json:"message"`
	Fix     *string `json:"fix"` // what to do; null if there is nothing to do
}

// Status is how bad a finding is.
type Status string

// The statuses of findings. Only Wrong makes the command fail.
const (
	OK      Status = "ok"
	Advice  Status = "advice"  // works, but not as it should in production
	Wrong   Status = "wrong"   // breaks a guarantee or the service, or will soon
	Unknown Status = "unknown" // could not be checked
)

// Refusal returns the error of a diagnosis that found something wrong, or nil.
func (d *Diagnosis) Refusal() error {
	wrong := 0
	for i := range d.Data {
		if d.Data[i].Status == Wrong {
			wrong++
		}
	}
	switch wrong {
	case 0:
		return nil
	case 1:
		return process.Refusef("One check found something wrong. Its finding says what to do.")
	}
	return process.Refusef("%d checks found something wrong. Each finding says what to do.", wrong)
}

// doctor collects findings.
type doctor struct {
	store    *store.Store
	url      string // of the database
	now      func() time.Time
	options  Options
	findings []Finding
}

func (d *doctor) ok(check, format string, args ...any) {
	d.findings = append(d.findings, Finding{check, OK, fmt.Sprintf(format, args...), nil})
}

// find adds a finding that is not ok, with what to do.
func (d *doctor) find(status Status, check, fix, format string, args ...any) {
	d.findings = append(d.findings, Finding{check, status, fmt.Sprintf(format, args...), &fix})
}

const (
	// checkTimeout bounds the checks of one server.
	checkTimeout = 10 * time.Second
	// maxClockDifference is the greatest difference of two clocks that is not wrong: decisions about keys, windows and
	// uploads compare times of different machines.
	maxClockDifference = 5 * time.Second
	// certificateNotice is the time before its end from which a certificate is reported.
	certificateNotice = 14 * 24 * time.Hour
)

// Diagnose checks the settings and the state of an installation. It changes nothing.
func Diagnose(ctx context.Context, database config.Database, options Options) (Diagnosis, error) {
	s, err := process.OpenStore(ctx, database, store.Operator)
	if err != nil {
		return Diagnosis{}, err
	}
	defer s.Close()
	return (&doctor{store: s, url: string(database.DatabaseURL), now: time.Now, options: options}).diagnose(ctx)
}

func (d *doctor) diagnose(ctx context.Context) (Diagnosis, error) {
	if err := cmp.Or(d.options.Keep.Validate(), d.options.Standbys.Validate()); err != nil {
		return Diagnosis{}, err
	}
	return d.run(ctx, d.checkDatabase, d.checkStandbys, d.checkQueue, d.checkMonitoring, d.checkSite)
}

// run runs checks, each within checkTimeout.
func (d *doctor) run(ctx context.Context, checks ...func(context.Context)) (Diagnosis, error) {
	for _, check := range checks {
		bounded, cancel := context.WithTimeout(ctx, checkTimeout)
		check(bounded)
		cancel()
		if ctx.Err() != nil {
			return Diagnosis{}, process.ErrInterrupted
		}
	}
	return Diagnosis{d.findings}, nil
}

// explain returns an error of the database as the operator sees it.
func (d *doctor) explain(ctx context.Context, err error) error {
	return process.ExplainDatabase(ctx, d.url, err)
}

// checkClock compares the clock of a server with that of this machine. took is the duration of the answer, which bounds
// the error.
func (d *doctor) checkClock(check, server string, clock time.Time, took time.Duration) {
	difference := clock.Sub(d.now())
	if difference.Abs() <= maxClockDifference+took {
		d.ok(check, "The clock of %s differs from the one of this machine by at most %s.", server,
			(difference.Abs() + took).Round(time.Millisecond))
		return
	}
	direction := "behind"
	if difference > 0 {
		direction = "ahead of"
	}
	d.find(Wrong, check, "Run an NTP client, such as chrony or systemd-timesyncd, on both machines.",
		"The clock of %s is %s %s the one of this machine.", server, difference.Abs().Round(time.Second), direction)
}

// checkCertificate reports a certificate that ends soon.
func (d *doctor) checkCertificate(check, server string, certificate *x509.Certificate) {
	if certificate == nil {
		return
	}
	ends, left := roomsensor.FormatTime(certificate.NotAfter), certificate.NotAfter.Sub(d.now())
	if left > certificateNotice {
		d.ok(check, "The certificate of %s is valid until %s.", server, ends)
		return
	}
	d.find(Wrong, check, "Renew it, and check why it was not renewed automatically.",
		"The certificate of %s ends at %s.", server, ends)
}

// size returns a number of bytes for people.
func size(bytes int64) string {
	const unit = 1024
	switch {
	case bytes < unit*unit:
		return fmt.Sprintf("%d KiB", (bytes+unit-1)/unit)
	case bytes < unit*unit*unit:
		return fmt.Sprintf("%d MiB", bytes/unit/unit)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/unit/unit/unit)
}
