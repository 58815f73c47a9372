package clientcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"roomsensor/client"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
)

const (
	// probeValues is the number of different values that checks upload, one per second. All are valid, and exact as a
	// reading.
	probeValues = 100_000
	// certificateLeft is the time for which certificates must remain valid for --once. The alert has the same.
	certificateLeft = 14 * 24 * time.Hour
	// rejectTimeout limits the question why a reading is not there.
	rejectTimeout = 5 * time.Second
)

// probeResult is what a check measured. A step that was not reached is null.
type probeResult struct {
	OK                   bool       `json:"ok"`
	ReadSeconds          *float64   `json:"read_seconds"`     // GET /devices/current
	AcceptedSeconds      *float64   `json:"accepted_seconds"` // POST /uploads
	VisibleSeconds       *float64   `json:"visible_seconds"`  // from then on until the change feed has the reading
	CertificateExpiresAt *time.Time `json:"certificate_expires_at"`
}

// ProbeOnce checks the service once and prints the result. Its error says what is wrong.
func ProbeOnce(ctx context.Context, t *cli.Terminal, cfg *config.Probe) error {
	result, err := check(ctx, cfg, t.Version)
	if at := result.CertificateExpiresAt; err == nil && at != nil && time.Until(*at) < certificateLeft {
		result.OK = false
		err = process.Refusef("A certificate expires on %s. Renew it.", at.Format(time.DateOnly))
	}
	if failed := t.Print(cli.Format{Output: "auto"}, result); failed != nil {
		return failed
	}
	return err
}

// check reads, uploads a reading, and waits until the change feed has it, on new connections.
func check(ctx context.Context, cfg *config.Probe, version string) (result probeResult, err error) {
	standard := http.DefaultTransport.(*http.Transport) //nolint:forcetypeassert // The standard library's.
	transport := &certificateNotes{Transport: standard.Clone()}
	defer transport.CloseIdleConnections()
	c := &checker{cfg: cfg, result: &result, options: []client.Option{
		client.WithHTTPClient(&http.Client{Transport: transport, CheckRedirect: followNone}),
		client.WithUserAgent("roomsensor-probe/" + version),
		client.WithMaxAttempts(1), // What a retry would hide is a failure.
	}}
	limited, cancel := context.WithTimeout(ctx, time.Duration(cfg.Timeout))
	defer cancel()
	err = c.run(limited)
	if !transport.expires.IsZero() {
		result.CertificateExpiresAt = &transport.expires
	}
	switch {
	case ctx.Err() != nil:
		return result, process.RefusedError("Interrupted.")
	case errors.Is(err, context.DeadlineExceeded) && result.AcceptedSeconds != nil:
		return result, c.notVisible(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return result, process.Refusef("The service did not answer within %s.", cfg.Timeout)
	}
	result.OK = err == nil
	return result, err
}

// followNone makes a redirect the response: a device that posts follows none either.
func followNone(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// checker is a check in progress.
type checker struct {
	cfg     *config.Probe
	options []client.Option
	result  *probeResult

	receiver *client.Receiver
	line     []byte // the upload
}

// run reads before it uploads, so that the feed is followed from before the reading.
func (c *checker) run(ctx context.Context) error {
	api, err := newAPI(&c.cfg.Client, c.options)
	if err != nil {
		return err
	}
	sender := config.Sender{ReceiverSite: c.cfg.ReceiverSite, IngestKey: c.cfg.IngestKey}
	if c.receiver, err = newReceiver(&sender, c.options); err != nil {
		return err
	}
	began := time.Now()
	device, err := onlyDevice(ctx, api)
	if err != nil {
		return err
	}
	c.result.ReadSeconds = new(time.Since(began).Seconds())
	changes := client.ChangeQuery{Devices: []uuid.UUID{device.DeviceID}, GiveUp: true}
	position, err := firstPosition(ctx, api, changes)
	if err != nil {
		return err
	}
	began = time.Now()
	value := float64(began.Unix() % probeValues)
	if c.line, err = json.Marshal(map[string]any{
		"hardware_id": device.HardwareID,
		"readings":    []any{map[string]any{"measured_at": roomsensor.FormatTime(began.UTC()), "lux": value}},
	}); err != nil {
		return fmt.Errorf("encoding an upload: %w", err)
	}
	if _, err := c.receiver.Upload(ctx, c.line); err != nil {
		return err
	}
	c.result.AcceptedSeconds = new(time.Since(began).Seconds())
	for page, err := range api.Follow(ctx, changes, position) {
		if err != nil {
			return err
		}
		for i := range page.Readings {
			if lux := page.Readings[i].Lux; lux != nil && *lux == value {
				c.result.VisibleSeconds = new(time.Since(began).Seconds())
				return nil
			}
		}
	}
	return ctx.Err()
}

// onlyDevice returns the only device of the team.
func onlyDevice(ctx context.Context, api *client.Client) (device client.CurrentDevice, err error) {
	n := 0
	for d, err := range api.CurrentDevices(ctx, client.DeviceQuery{PageSize: 2}) {
		if err != nil {
			return device, err
		}
		device = d
		if n++; n > 1 {
			break
		}
	}
	if n != 1 {
		return device, process.Refusef("The team of the API key must have one device, for the probe alone. Create a team " +
			"with 'roomsensor team create', and its device and keys.")
	}
	return device, nil
}

// firstPosition returns the present end of the change feed.
func firstPosition(ctx context.Context, api *client.Client, q client.ChangeQuery) (at client.Position, err error) {
	q.UntilCaughtUp = true
	for page, err := range api.Follow(ctx, q, "") {
		if err != nil {
			return "", err
		}
		at = page.Position
	}
	return at, nil
}

// notVisible returns why a reading that was accepted is not there: what the receiver would reject, if it knows.
func (c *checker) notVisible(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rejectTimeout)
	defer cancel()
	report, err := c.receiver.TryUpload(ctx, c.line)
	if err == nil && len(report.Rejects) > 0 {
		reject := report.Rejects[0]
		return process.Refusef("The upload was accepted, but its reading was rejected: %s: %s", reject.Reason, reject.Detail)
	}
	return process.Refusef("The upload was accepted, but its reading was not readable within %s. "+
		"Check that the workers run and can use the database.", c.cfg.Timeout)
}

// certificateNotes is a transport that notes when the first certificate of its servers expires.
type certificateNotes struct {
	*http.Transport

	expires time.Time // zero without TLS
}

// RoundTrip implements http.RoundTripper.
func (n *certificateNotes) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := n.Transport.RoundTrip(r)
	if err != nil || response.TLS == nil {
		return response, err //nolint:wrapcheck // A transport returns errors unchanged.
	}
	for _, certificate := range response.TLS.PeerCertificates {
		if n.expires.IsZero() || certificate.NotAfter.Before(n.expires) {
			n.expires = certificate.NotAfter
		}
	}
	return response, nil
}
