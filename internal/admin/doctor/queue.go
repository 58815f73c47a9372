package doctor

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/queue"
	"roomsensor/internal/receiver"
	"roomsensor/internal/roomsensor"
)

// maxLag is the age of the oldest upload that no worker has stored, from which on the workers count as late.
const maxLag = 5 * time.Minute

// checkQueue checks NATS and the stream. It creates nothing.
func (d *doctor) checkQueue(ctx context.Context) {
	q, conn, err := process.ConnectQueue(d.options.Queue, config.Defaults[config.Stream](), "roomsensor", zerolog.Nop())
	if err != nil {
		d.find(Wrong, "queue", err.Error(), "NATS cannot be used.")
		return
	}
	defer conn.Close()
	began := time.Now()
	info, err := q.Inspect(ctx)
	switch {
	case errors.Is(err, queue.ErrNoStream):
		d.find(Wrong, "queue",
			"Start roomsensor ingest, which creates it. If there was a stream before, find it first, and run "+
				"roomsensor stream confirm only if it is lost.", "NATS answers, but has no stream %s.", queue.StreamName)
		return
	case err != nil:
		d.find(Wrong, "queue", process.ExplainQueue(ctx, err).Error(), "NATS cannot be used.")
		return
	}
	d.ok("queue", "NATS answers, and the stream %s has %d uploads (%s).", queue.StreamName, info.Messages,
		size(int64(info.Bytes))) //nolint:gosec // Fewer than 2^63 bytes.
	d.checkClock("queue clock", "NATS", info.Clock, time.Since(began)) // Before anything else takes time.
	d.checkStream(ctx, &info)
	d.checkBacklog(&info)
	d.checkReach(&info)
	d.checkCertificate("queue certificate", "NATS", q.Certificate())
}

// checkStream checks the rules on which the guarantee of ingest depends (docs/operate/reliability.md).
func (d *doctor) checkStream(ctx context.Context, info *queue.Info) {
	recorded, err := d.store.StreamCreated(ctx, queue.StreamName)
	switch {
	case err != nil: // checkDatabase reports it.
	case recorded.IsZero():
		d.find(Advice, "queue stream",
			"Start a worker, which records it.", "The database has not recorded the stream yet.")
	case !recorded.Equal(info.Created):
		d.find(Wrong, "queue stream",
			"Find the stream that was lost (disk, account and NATS_URL of NATS). If it is gone, "+
				"run roomsensor stream confirm and restart receivers and mqtt.",
			"The database records another stream: uploads that were in that one are missing.")
	default:
		d.ok("queue stream", "It is the stream that the database records.")
	}
	if info.Settings != nil {
		d.find(Wrong, "queue settings", info.Settings.Error(), "The stream would lose uploads.")
	} else {
		d.ok("queue settings", "The stream keeps uploads in files until workers acknowledge each of them.")
	}
	switch {
	case len(info.Behind) > 0:
		d.find(Wrong, "queue replicas",
			"Start these servers. While most of them are missing, the stream accepts no uploads.",
			"Of %d servers of the stream, these are offline or behind: %s.", info.Servers, strings.Join(info.Behind, ", "))
	case info.Servers > 0 && info.Replicas == 1:
		d.find(Wrong, "queue replicas", "Set STREAM_REPLICAS to 3 and run roomsensor stream update.",
			"NATS is a cluster, but the stream has one copy: it is lost with the disk of its server.")
	case info.Replicas == 1:
		d.find(Advice, "queue replicas",
			"For production, run NATS as a cluster of three servers (docs/operate/cluster.md).",
			"The stream has one copy: uploads that are not stored yet are lost with the disk of NATS.")
	default:
		d.ok("queue replicas", "The stream has %d copies, and all of them are current.", info.Replicas)
	}
}

// checkBacklog checks that the workers keep up.
func (d *doctor) checkBacklog(info *queue.Info) {
	const check = "queue backlog"
	of := slices.IndexFunc(info.Consumers, func(c queue.ConsumerInfo) bool { return c.Name == queue.ConsumerName })
	if of < 0 {
		d.find(Wrong, check,
			"Start roomsensor ingest.", "The stream has no consumer of the workers: nothing is stored.")
		return
	}
	c := &info.Consumers[of]
	age := d.now().Sub(c.Oldest)
	if c.Oldest.IsZero() || age <= maxLag {
		d.ok(check, "The workers keep up: %d uploads wait, %d are being stored.", c.Waiting, c.Unacknowledged)
		return
	}
	d.find(Wrong, check,
		"Check that workers run and are ready (/readyz, their log), and add workers if they only need "+
			"longer (docs/operate/scaling.md).",
		"The oldest upload that is not stored waits for %s; %d uploads wait, %d are held by workers.",
		age.Round(time.Second), c.Waiting, c.Unacknowledged)
}

// checkReach compares how far back the stream reaches when it is full with how far a replay must reach.
func (d *doctor) checkReach(info *queue.Info) {
	const check = "queue size"
	keep := time.Duration(d.options.Keep.StreamKeep)
	held := info.Newest.Sub(info.Oldest)
	switch {
	case info.MaxBytes <= 0:
		d.find(Wrong, check, "Set a limit with the NATS command line: nats stream edit UPLOADS --max-bytes 8GiB.",
			"The stream has no size limit: it can fill the disk of NATS.")
	case held < time.Hour:
		d.ok(check,
			"The limit of the stream is %s. Its rate is unknown: it holds uploads of less than an hour.", size(info.MaxBytes))
	default:
		reach := time.Duration(float64(held) * float64(info.MaxBytes) / float64(info.Bytes))
		if reach < keep {
			d.find(Wrong, check, "Raise STREAM_MAX_BYTES and run roomsensor stream update, or lower STREAM_KEEP to what "+
				"the backup of the database needs.",
				"At its present rate, the stream (%s) can hold %s of uploads, less than STREAM_KEEP (%s).",
				size(info.MaxBytes), reach.Round(time.Minute), keep)
			return
		}
		d.ok(check, "At its present rate, the stream (%s) can hold %.1f days of uploads; STREAM_KEEP is %.1f days.",
			size(info.MaxBytes), reach.Hours()/day.Hours(), keep.Hours()/day.Hours())
	}
}

// checkMonitoring checks what only the monitoring port of NATS shows.
func (d *doctor) checkMonitoring(ctx context.Context) {
	const check = "queue durability"
	if d.options.NATSMonitoring == "" {
		d.find(Unknown, check, "Check that its configuration has sync_interval: always, or set --nats-monitoring-url "+
			"(NATS_MONITORING_URL).", "NATS shows only on its monitoring port whether it syncs each upload to disk.")
		return
	}
	var server struct {
		JetStream struct {
			Config *struct {
				SyncAlways bool `json:"sync_always"`
			} `json:"config"`
		} `json:"jetstream"`
	}
	_, err := get(ctx, strings.TrimRight(d.options.NATSMonitoring, "/")+"/varz", func(body io.Reader) error {
		return json.NewDecoder(body).Decode(&server)
	})
	switch {
	case err != nil:
		d.find(Unknown, check, "Check --nats-monitoring-url (NATS_MONITORING_URL).",
			"The monitoring port of NATS does not answer: %v.", err)
	case server.JetStream.Config == nil || !server.JetStream.Config.SyncAlways:
		d.find(Wrong, check,
			"Set sync_interval: always in the jetstream block of its configuration (deploy/nats.conf), and restart it.",
			"NATS acknowledges uploads before they are on disk: a power cut loses them.")
	default:
		d.ok(check, "NATS syncs each upload to disk before it acknowledges it.")
	}
	if err == nil {
		d.checkHealth(ctx)
	}
}

// checkHealth checks what NATS reports about itself, such as a stream that accepts no uploads after a write error. The
// stream still responds then.
func (d *doctor) checkHealth(ctx context.Context) {
	const check = "queue health"
	var health struct {
		Status string `json:"status"`
		Error  string `json:"error"`
	}
	response, err := request(ctx, strings.TrimRight(d.options.NATSMonitoring, "/")+"/healthz")
	if err == nil { // The status of a server that is not healthy is 503.
		defer func() { _ = response.Body.Close() }()
		err = json.NewDecoder(io.LimitReader(response.Body, maxDocument)).Decode(&health)
	}
	switch {
	case err != nil:
		d.find(Unknown, check, "Check --nats-monitoring-url (NATS_MONITORING_URL).",
			"The monitoring port of NATS does not answer: %v.", err)
	case health.Status != "ok":
		d.find(Wrong, check,
			"Read the log of NATS, and check the free space of its disk. After a write error, free space and restart NATS: "+
				"until then the stream confirms no uploads.", "NATS says that it is not healthy: %s.", health.Error)
	default:
		d.ok(check, "NATS says that it is healthy.")
	}
}

// checkSite checks that clients reach the API at its public address.
func (d *doctor) checkSite(ctx context.Context) {
	const check = "public URL"
	if d.options.PublicURL == "" {
		d.find(Unknown, check, "Set --public-url (PUBLIC_URL) to the address that clients use.", "It was not given.")
		return
	}
	address := strings.TrimRight(d.options.PublicURL, "/")
	isAPI := false
	certificate, err := get(ctx, address+"/docs/openapi.json", func(body io.Reader) error {
		var document struct {
			Paths map[string]any `json:"paths"`
		}
		err := json.NewDecoder(body).Decode(&document)
		isAPI = document.Paths["/devices/current"] != nil
		return err //nolint:wrapcheck // The finding says what was done.
	})
	switch {
	case err != nil:
		d.find(Wrong, check,
			"Check the address, the proxy in front of the API, and its certificate (docs/operate/proxies.md).",
			"The API cannot be reached at %s: %v.", address, err)
	case !isAPI:
		d.find(Wrong, check, "Check the address and the proxy in front of the API (docs/operate/proxies.md).",
			"%s is not the API.", address)
	case certificate == nil && !isLocal(address):
		d.find(Wrong, check, "Put a proxy with TLS in front of the API (docs/operate/proxies.md).",
			"%s has no TLS: keys cross the network in plain text.", address)
	default:
		d.ok(check, "The API answers at %s.", address)
	}
	d.checkCertificate("public certificate", address, certificate)
	if err == nil && isAPI {
		d.checkUploads(ctx, address+"/uploads")
	}
}

// checkUploads checks that the largest upload reaches a receiver: without a credential, it refuses it before it reads
// the body, which is then not sent unless a proxy asks for it.
func (d *doctor) checkUploads(ctx context.Context, address string) {
	const check = "public uploads"
	const proxy = "Let the proxy send /uploads and /rejects to a receiver, with bodies of 16 MiB " +
		"(docs/operate/proxies.md)."
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(make([]byte, receiver.MaxBody)))
	if err != nil {
		d.find(Unknown, check, "Check the address.", "It could not be tried: %v.", err)
		return
	}
	r.Header.Set("Expect", "100-continue")
	response, err := send(r)
	if err != nil {
		d.find(Unknown, check, "Check the proxy, and repeat it over a faster connection.",
			"%d MiB could not be sent to %s: %v.", receiver.MaxBody>>20, address, err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	var refusal struct {
		Error struct {
			Code roomsensor.Code `json:"code"`
		} `json:"error"`
	}
	_ = json.NewDecoder(io.LimitReader(response.Body, maxDocument)).Decode(&refusal) // Others do not answer in JSON.
	switch {
	case refusal.Error.Code == roomsensor.CodeIngestKeyMissing:
		d.ok(check, "Uploads of %d MiB reach a receiver at %s.", receiver.MaxBody>>20, address)
	case response.StatusCode == http.StatusRequestEntityTooLarge:
		d.find(Wrong, check, proxy, "%s refuses uploads of %d MiB.", address, receiver.MaxBody>>20)
	default:
		d.find(Wrong, check, proxy, "No receiver answers at %s: the status is %d.", address, response.StatusCode)
	}
}

// isLocal reports whether a URL leads to this machine.
func isLocal(address string) bool {
	u, err := url.Parse(address)
	return err == nil && config.IsLoopback(u.Hostname())
}

// maxDocument bounds what is read of another server, in bytes.
const maxDocument = 8 << 20

// request sends a GET request. The caller closes the body.
func request(ctx context.Context, address string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("reading a URL: %w", err)
	}
	return send(r)
}

// send sends a request. The caller closes the body.
func send(r *http.Request) (*http.Response, error) {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment, ExpectContinueTimeout: time.Second,
	}}
	return client.Do(r) //nolint:wrapcheck // The finding says what was done.
}

// get reads a document of at most maxDocument bytes, and returns the certificate of its server; nil without TLS.
func get(ctx context.Context, address string, read func(io.Reader) error) (*x509.Certificate, error) {
	response, err := request(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var certificate *x509.Certificate
	if response.TLS != nil {
		certificate = response.TLS.PeerCertificates[0]
	}
	if response.StatusCode != http.StatusOK {
		return certificate, fmt.Errorf("the status is %d", response.StatusCode)
	}
	return certificate, read(io.LimitReader(response.Body, maxDocument))
}
