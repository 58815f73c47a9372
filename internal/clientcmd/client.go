package clientcmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"roomsensor/client"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
)

const (
	// clientPatience is the longest pause before a retry: that of the rate limit (decision 25 b).
	clientPatience = 11 * time.Minute
	// notedPause is the length from which a pause is reported.
	notedPause = 3 * time.Second
)

// connect returns a client of the API, and a function that closes its connections.
func connect(t *cli.Terminal, c config.Client) (api *client.Client, shut func(), err error) {
	options, shut := clientOptions(t)
	api, err = newAPI(&c, options)
	return api, shut, err
}

func newAPI(c *config.Client, options []client.Option) (*client.Client, error) {
	key, err := c.RoomsensorAPIKey.Read()
	if err != nil {
		return nil, cli.Usagef("--roomsensor-api-key (ROOMSENSOR_API_KEY) %v.", err)
	}
	api, err := client.New(c.RoomsensorURL, key, options...)
	if err != nil {
		return nil, cli.Usagef("--roomsensor-url (ROOMSENSOR_URL): %v.", err)
	}
	return api, nil
}

// noteRetries returns a hook that reports long pauses. Requests that wait at the same time are one line.
func noteRetries(t *cli.Terminal) func(client.Retry) {
	var mutex sync.Mutex
	var until time.Time // the end of the pause that was reported last
	return func(r client.Retry) {
		mutex.Lock()
		defer mutex.Unlock()
		if now := time.Now(); r.Pause >= notedPause && !now.Before(until) {
			until = now.Add(r.Pause)
			_, _ = fmt.Fprintf(t.Stderr, "roomsensor: trying again in %s: %v\n", r.Pause.Round(time.Second), r.Err)
		}
	}
}

// clientOptions returns the options of all clients, and a function that closes their connections.
func clientOptions(t *cli.Terminal) (options []client.Option, shut func()) {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // The standard library's.
	return []client.Option{
		client.WithHTTPClient(&http.Client{Transport: transport}),
		client.WithUserAgent("roomsensor/" + t.Version),
		client.WithMaxWait(clientPatience),
		client.WithRetryHook(noteRetries(t)),
	}, transport.CloseIdleConnections
}

// explain returns the error of a request to the API as a person sees it.
func explain(ctx context.Context, c config.Client, err error) error {
	return explainURL(ctx, "service at "+c.RoomsensorURL, "--roomsensor-url (ROOMSENSOR_URL)", err)
}

// explainURL returns the error of a request as a person sees it. flag is where the address comes from.
func explainURL(ctx context.Context, server, flag string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return process.RefusedError("Interrupted.")
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	if broken, ok := errors.AsType[*url.Error](err); ok && !certificate {
		return fmt.Errorf("the %s does not answer: %w. Check that it runs and that %s is right", server, broken.Err, flag)
	}
	return err
}

// findDevice returns the id of a device by its id, its name, or the hardware id of its unit.
func findDevice(ctx context.Context, api *client.Client, text string) (uuid.UUID, error) {
	var asID cli.ID
	if asID.UnmarshalText([]byte(text)) == nil {
		return uuid.UUID(asID), nil
	}
	var found []uuid.UUID
	names := map[string]string{} // by the name in lower case
	for device, err := range api.Devices(ctx, client.DeviceQuery{}) {
		if err != nil {
			return uuid.Nil, fmt.Errorf("looking for the device: %w", err)
		}
		if device.HardwareID == text || device.DisplayName != nil && *device.DisplayName == text {
			found = append(found, device.DeviceID)
		}
		if device.DisplayName != nil {
			names[strings.ToLower(*device.DisplayName)] = *device.DisplayName
		}
	}
	switch len(found) {
	case 0:
		meant := httpedge.Closest(text, slices.Sorted(maps.Keys(names)))
		return uuid.Nil, process.Refusef("The team has no device %q. %s'roomsensor get devices' lists its devices.",
			text, httpedge.DidYouMean(names[meant]))
	case 1:
		return found[0], nil
	}
	return uuid.Nil, process.Refusef("The team has %d devices %q: %s and %s, for example. Give the id of one.",
		len(found), text, found[0], found[1])
}

// window are the flags of a period.
type window struct {
	From *cli.Edge   `help:"Start of the period, a UTC time or date." implied:"that of the endpoint, such as 24 hours before the end" placeholder:"TIME"`
	To   *cli.Edge   `help:"End of the period, which is not part of it." implied:"now" placeholder:"TIME"`
	Last *cli.Period `help:"Length of the period up to now, such as 90m, 24h or 7d, in place of --from and --to." implied:"that of the endpoint, such as 24h" placeholder:"DURATION"`
}

// checkPeriod returns a usage error if the flags of a period contradict each other.
func checkPeriod(from, to *cli.Edge, last *cli.Period) error {
	switch {
	case last != nil && (from != nil || to != nil):
		return cli.Usagef("--last cannot be combined with --from and --to. Omit one of them.")
	case from != nil && to != nil && !time.Time(*from).Before(time.Time(*to)):
		return cli.Usagef("--from must be earlier than --to.")
	}
	return nil
}

// query returns the window of a request.
func (w *window) query() (client.Window, error) {
	if err := checkPeriod(w.From, w.To, w.Last); err != nil {
		return client.Window{}, err
	}
	q := client.Window{Last: cli.OrZero(w.Last)}
	if w.From != nil {
		q.From = time.Time(*w.From)
	}
	if w.To != nil {
		q.To = time.Time(*w.To)
	}
	return q, nil
}

// listed is the flag that selects devices by their ids and names.
type listed struct {
	Devices []string `help:"Ids of devices, separated by commas, or the name of one device; can be repeated. Without it, all devices." placeholder:"DEVICE" sep:"none"`
}

// findDevices returns the ids of the named devices.
func (l listed) findDevices(ctx context.Context, api *client.Client) (devices []uuid.UUID, err error) {
	for _, text := range l.Devices {
		var ids []uuid.UUID
		for piece := range strings.SplitSeq(text, ",") {
			var device cli.ID
			if device.UnmarshalText([]byte(piece)) == nil {
				ids = append(ids, uuid.UUID(device))
			}
		}
		if len(ids) != strings.Count(text, ",")+1 { // A name, which may contain commas.
			device, err := findDevice(ctx, api, text)
			if err != nil {
				return nil, err
			}
			ids = []uuid.UUID{device}
		}
		devices = append(devices, ids...)
	}
	return devices, nil
}

// tagged is the flag that selects devices by their metadata.
type tagged struct {
	Metadata cli.Metadata `help:"Only devices with this metadata entry; can be repeated." placeholder:"KEY=VALUE" sep:"none"`
}

// metricNames checks the names of metrics.
func metricNames(names []string) (metrics []client.Metric, err error) {
	for _, name := range names {
		if _, ok := roomsensor.MetricNamed(name); !ok {
			return nil, cli.Usagef("--metrics: %q is not a metric. %s.", name, cli.KnownMetrics)
		}
		metrics = append(metrics, client.Metric(name))
	}
	return metrics, nil
}
