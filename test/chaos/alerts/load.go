package alerts

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

const (
	// sentAge is the age of the first reading that the devices send. Each upload has the next bucket, so that every upload
	// changes a row for longer than the trial lasts.
	sentAge = 10 * 24 * time.Hour
	// Each kind of request has its pause: fewer requests than the rate limit allows.
	uploadPause    = 200 * time.Millisecond
	requestPause   = 200 * time.Millisecond
	dashboardPause = 250 * time.Millisecond
	// answerTimeout is longer than every timeout of the service for these requests.
	answerTimeout = 20 * time.Second
)

// load is what clients send all the time. Requests do not wait for one another, as those of many clients do not.
type load struct {
	*env
	client *http.Client
	from   time.Time
}

func newLoad(e *env) *load {
	return &load{
		env: e, from: time.Now().UTC().Add(-sentAge).Truncate(roomsensor.BucketLength),
		client: &http.Client{
			// Without a session, the dashboard leads to another page.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       answerTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: teamKeys, DisableCompression: true},
		},
	}
}

// run sends until ctx ends.
func (l *load) run(ctx context.Context) {
	var group sync.WaitGroup
	defer l.client.CloseIdleConnections()
	defer group.Wait()
	group.Go(func() { every(ctx, uploadPause, l.upload) })
	group.Go(func() { every(ctx, requestPause, l.request) })
	group.Go(func() { every(ctx, dashboardPause, l.openPage) })
}

// every calls send once per pause with the number of the call, and does not wait for earlier calls.
func every(ctx context.Context, pause time.Duration, send func(ctx context.Context, n int)) {
	var group sync.WaitGroup
	defer group.Wait()
	n := 0
	retry.Every(ctx, pause, func(ctx context.Context) {
		i := n
		n++
		group.Go(func() { send(ctx, i) })
	})
}

// upload sends the next reading of a device.
func (l *load) upload(ctx context.Context, n int) {
	at := l.from.Add(time.Duration(n/teamDevices) * roomsensor.BucketLength)
	l.post(ctx, bytes.NewReader(uploadOf(l.devices[n%teamDevices].HardwareID, at)))
}

// uploadOf returns an upload with one reading.
func uploadOf(hardwareID string, at time.Time) []byte {
	m := roomsensor.Measurement{MeasuredAt: at}
	m.Values.Set(roomsensor.CO2, 400)
	u := simulate.Upload{
		HardwareID: hardwareID, SentAt: at, Firmware: "1.0.0", LeaveOut: true, Readings: []roomsensor.Measurement{m},
	}
	return append(u.AppendJSON(nil), '\n')
}

// post sends uploads once. What becomes of them is for the metrics to show.
func (l *load) post(ctx context.Context, body io.Reader) {
	l.send(ctx, http.MethodPost, l.processes[receiverName].URL()+"/uploads", l.credential, body)
}

// request lists devices with one key after the other.
func (l *load) request(ctx context.Context, n int) {
	l.send(ctx, http.MethodGet, l.processes[apiName].URL()+"/v1/devices", l.keys[n%teamKeys], nil)
}

// openPage opens a page of the dashboard with a session that it looks up in the database.
func (l *load) openPage(ctx context.Context, n int) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.processes[dashboardName].URL()+"/teams", nil)
	if err != nil {
		return
	}
	request.AddCookie(&http.Cookie{Name: "roomsensor", Value: fmt.Sprint("unknown", n)}) //nolint:gosec // Not a session.
	l.do(request)
}

func (l *load) send(ctx context.Context, method, url, key string, body io.Reader) {
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return
	}
	request.Header.Set("Authorization", "Bearer "+key)
	l.do(request)
}

// do sends a request. An error is a fault that the metrics show, too.
func (l *load) do(request *http.Request) {
	if response, err := l.client.Do(request); err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}
