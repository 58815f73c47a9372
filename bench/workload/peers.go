package workload

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"

	"roomsensor/bench/bar"
	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

// peer is another database of time series, in a process of its own.
type peer interface {
	String() string // its name and version
	Lacks() string  // what it does not promise and the service does
	Kill()
	CPU() (time.Duration, error) // that it used since it was started

	WriteURL() string                 // takes lines
	Settle(ctx context.Context) error // makes all that was taken readable
	Count(ctx context.Context, w roomsensor.Window) (int, error)
	Latest(w roomsensor.Window) *bar.Question
	Page(device uuid.UUID, w roomsensor.Window) *bar.Question
	Export(devices []uuid.UUID, w roomsensor.Window) *bar.Question
}

// maker builds a peer, and starts it.
type maker struct {
	name  string
	build func(ctx context.Context, dir string) (path string, err error)
	start func(ctx context.Context, path string, log io.Writer) (peer, error)
}

func makers() []maker {
	return []maker{
		{
			"VictoriaMetrics", bar.BuildVictoriaMetrics,
			func(ctx context.Context, path string, log io.Writer) (peer, error) {
				return bar.StartVictoriaMetrics(ctx, path, log)
			},
		},
		{
			"InfluxDB", bar.BuildInfluxDB,
			func(ctx context.Context, path string, log io.Writer) (peer, error) {
				return bar.StartInfluxDB(ctx, path, log)
			},
		},
	}
}

// rival is a peer that holds the readings of the fleet.
type rival struct {
	peer
	suite  *suite
	sender *sender
	past   time.Time // where its readings begin
}

// besidePeers is P1 to P4: what databases of time series do as well, one of them at a time, each with the same
// readings. They promise less, and so there is no verdict.
func (s *suite) besidePeers(ctx context.Context) error {
	if !s.Peers {
		return nil
	}
	for _, m := range makers() {
		if err := s.besidePeer(ctx, m); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

func (s *suite) besidePeer(ctx context.Context, m maker) error {
	r, err := s.openRival(ctx, m)
	if err != nil {
		return err
	}
	defer r.Kill()
	for _, part := range []func(context.Context) error{r.latest, r.page, r.export, r.load} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) openRival(ctx context.Context, m maker) (*rival, error) {
	s.Say("building %s", m.name)
	path, err := m.build(ctx, s.Dir())
	if err != nil {
		return nil, err
	}
	var log *os.File
	if log, err = s.LogFile(m.name); err != nil {
		return nil, err
	}
	p, err := m.start(ctx, path, log)
	if err != nil {
		return nil, err
	}
	s.Push(func() error { p.Kill(); return nil })
	r := &rival{
		peer: p, suite: s, past: s.fleet.From(),
		sender: &sender{client: load.NewClient(senderConnections), url: p.WriteURL(), wanted: http.StatusNoContent},
	}
	if err := r.fill(ctx); err != nil {
		return nil, err
	}
	if err := r.calm(ctx); err != nil {
		return nil, err
	}
	return r, s.Settle(ctx)
}

const (
	// atRest is what a peer that does nothing of its own uses of a processor in a second, at most.
	atRest = 50 * time.Millisecond
	// calmWithin is the longest that is waited for it.
	calmWithin = time.Minute
)

// calm waits until the peer is done with merging what it was given, which it does behind its answers.
func (r *rival) calm(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for began, before := time.Now(), -atRest; time.Since(began) < calmWithin; {
		spent, err := r.CPU()
		if err != nil || spent-before < atRest {
			return err
		}
		before = spent
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", r, ctx.Err())
		case <-ticker.C:
		}
	}
	return nil
}

// add keeps a row without a verdict.
func (r *rival) add(row report.Row) {
	row.Workload += ", beside " + r.String()
	row.Against = r.String()
	r.suite.add(row)
}

// asked is a question and how long its answer was when it was checked.
type asked struct {
	*bar.Question
	bytes int64
}

// check asks once and compares the answer with what the fleet measured.
func (r *rival) check(ctx context.Context, q *bar.Question, want func(got bar.Cells) bar.Cells) (*asked, error) {
	request, err := q.Request(ctx)
	if err != nil {
		return nil, err
	}
	body, err := whole(request)
	if err != nil {
		return nil, err
	}
	got, err := q.Read(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if wanted := want(got); !maps.Equal(got, wanted) {
		return nil, fmt.Errorf("%w: %d values, where %d were measured", errBody, len(got), len(wanted))
	}
	return &asked{q, int64(len(body))}, nil
}

// slack is by how many bytes an answer may differ from the one that was checked: VictoriaMetrics tells how long it
// took.
const slack = 16

// again asks and reads the whole answer. Peers answer in any order of series, so that hashes could differ.
func (a *asked) again(ctx context.Context, client *load.Client) error {
	request, err := a.Request(ctx)
	if err != nil {
		return err
	}
	answer, err := client.Do(request, http.StatusOK)
	if err == nil && max(answer.Bytes-a.bytes, a.bytes-answer.Bytes) > slack {
		err = fmt.Errorf("%w: %d bytes instead of %d", errBody, answer.Bytes, a.bytes)
	}
	return err
}

// closed is the rate of questions in a closed loop.
func (r *rival) closed(ctx context.Context, connections int, which func(connection, n int) *asked) (float64, error) {
	client := load.NewClient(connections)
	defer client.CloseIdle()
	result, err := load.Closed(ctx, connections, r.suite.Time, func(ctx context.Context, connection, n int) error {
		return which(connection, n).again(ctx, client)
	})
	if err != nil {
		return 0, err
	}
	return result.Rate(), nil
}
