package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"roomsensor/bench/load"
	"roomsensor/bench/report"
	"roomsensor/internal/roomsensor"
)

const (
	// changeWait is the wait of a request, the longest one.
	changeWait = 30
	// changeTimeout limits the time for which the client follows the feed after the last upload.
	changeTimeout = time.Minute
	// feedStatements is a regular expression for the statements of a process that serves the change feed.
	feedStatements = "^-- name: Feed(Reserve|Watermark|Changed|StateGet|LateList|DeviceList|RangeList|DayList|" +
		"FilterList|ReadingList)"
)

// changes is P8: the time from the commit of a reading until a client that follows the change feed has received it,
// while uploads of one reading each arrive at a constant rate.
func (s *Suite) changes(ctx context.Context) error {
	var p50, p99, uploads, database report.Sample
	exact := true
	for round := range s.Rounds + 1 {
		r, err := s.followChanges(ctx)
		if err != nil {
			return err
		}
		if round == 0 { // To warm up.
			continue
		}
		p50, p99 = append(p50, quantile(r.latencies, 0.5)), append(p99, quantile(r.latencies, 0.99))
		uploads = append(uploads, r.rate)
		if r.recorded {
			database = append(database, milliseconds(r.database)/float64(r.pages))
		}
		exact = r.exact
	}
	against := "time of the commit"
	if !exact {
		against = "time of the write, because the server has track_commit_timestamp off"
	}
	for _, row := range []struct {
		name   string
		sample report.Sample
	}{{"p50", p50}, {"p99", p99}} {
		s.Add(report.Row{
			ID: "P8", Workload: fmt.Sprintf("%s from commit to client, %d uploads/s", row.name, s.ChangeRate),
			Kind: report.Bound, Unit: "s", Ours: row.sample, Against: against, Database: database,
			Note: fmt.Sprintf("%.0f uploads/s arrived", uploads.Median()),
		})
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantile returns the element that the given share of an ascending list does not exceed.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// followed is a round of P8.
type followed struct {
	latencies []float64 // seconds, ascending
	exact     bool      // they count from the commit
	rate      float64   // uploads per second
	pages     int
	database  time.Duration // of all pages
	recorded  bool          // database is known
}

// followChanges uploads readings and follows the change feed until it has all of them.
func (s *Suite) followChanges(ctx context.Context) (*followed, error) {
	if err := s.queue.AwaitDrained(ctx); err != nil { // Earlier uploads would arrive too.
		return nil, err
	}
	n := int(float64(s.ChangeRate) * s.ChangeTime.Seconds())
	window := s.older(time.Duration((n+s.Fleet.Devices-1)/s.Fleet.Devices) * roomsensor.BucketLength)
	uploads, missing := s.singleUploads(window, n)
	client := &changeClient{
		client: s.newClients(1)[0], window: window, missing: missing, arrived: map[readingKey]time.Time{},
	}
	defer client.http.CloseIdle()
	if err := client.begin(ctx); err != nil {
		return nil, err
	}
	r := &followed{}
	var err error
	r.database, r.recorded, err = s.StatementTime(ctx, feedStatements, func() error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() (err error) {
			r.rate, err = s.sendSteadily(ctx, uploads)
			return err
		})
		group.Go(func() error { return client.follow(ctx, s.ChangeTime+changeTimeout) })
		return group.Wait()
	})
	if err != nil {
		return nil, err
	}
	r.pages = client.pages
	return r, s.sinceCommits(ctx, window, client.arrived, r)
}

// readingKey identifies a reading.
type readingKey struct {
	device uuid.UUID
	bucket int64 // seconds since 1970
}

// singleUploads returns n uploads of one reading each, bucket by bucket, and their readings.
func (s *Suite) singleUploads(w roomsensor.Window, n int) ([][]byte, map[readingKey]roomsensor.Measurement) {
	uploads, readings := make([][]byte, n), make(map[readingKey]roomsensor.Measurement, n)
	for k := range uploads {
		i, at := k%s.Fleet.Devices, w.From.Add(time.Duration(k/s.Fleet.Devices)*roomsensor.BucketLength)
		uploads[k] = s.Fleet.Upload(i, roomsensor.Window{From: at, To: at.Add(roomsensor.BucketLength)})
		readings[readingKey{s.Fleet.DeviceID(i), at.Unix()}] = s.Fleet.Reading(i, at)
	}
	return uploads, readings
}

// sendSteadily sends uploads at the rate of P8, and returns the rate at which they were accepted.
func (s *Suite) sendSteadily(ctx context.Context, uploads [][]byte) (float64, error) {
	post := func(ctx context.Context, _, n int) error { return s.Sender.Post(ctx, uploads[n]) }
	result, err := load.Open(ctx, float64(s.ChangeRate), s.ChangeTime, load.Limited(SenderConnections, post))
	if err != nil {
		return 0, err
	}
	return result.Rate(), nil
}

// sinceCommits sets the latencies of a round, of which the client has received the readings at some times.
func (s *Suite) sinceCommits(
	ctx context.Context, w roomsensor.Window, arrived map[readingKey]time.Time, r *followed,
) error {
	commits, exact, err := s.Commits(ctx, w)
	if err != nil {
		return err
	}
	if len(commits) != len(arrived) {
		return fmt.Errorf("%w: %d changes of %d", errBody, len(arrived), len(commits))
	}
	r.exact = exact
	for i := range commits {
		c := &commits[i]
		at, ok := arrived[readingKey{c.DeviceID, c.BucketAt.Unix()}]
		if !ok {
			return fmt.Errorf("%w: the reading of %v at %s did not arrive", errBody, c.DeviceID, c.BucketAt)
		}
		r.latencies = append(r.latencies, at.Sub(c.At).Seconds())
	}
	slices.Sort(r.latencies)
	return nil
}

// changeClient follows the change feed.
type changeClient struct {
	*client

	cursor  string
	window  roomsensor.Window // of the uploads
	missing map[readingKey]roomsensor.Measurement
	arrived map[readingKey]time.Time // when the client had the whole body
	pages   int
}

// changePage is a page of GET /readings/changes.
type changePage struct {
	Data []map[string]any `json:"data"`
	Next string           `json:"next_cursor"`
}

// begin starts now. Nothing of the window is uploaded yet.
func (c *changeClient) begin(ctx context.Context) error {
	page, at, err := c.read(ctx, "limit="+strconv.Itoa(roomsensor.MaxPage))
	if err != nil {
		return err
	}
	return c.takeAll(&page, at)
}

// follow requests pages until no reading is missing, or a time has passed.
func (c *changeClient) follow(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.New("some changes did not arrive in time"))
	defer cancel()
	for len(c.missing) > 0 {
		page, at, err := c.read(ctx, fmt.Sprintf("cursor=%s&wait=%d", url.QueryEscape(c.cursor), changeWait))
		if err != nil {
			return fmt.Errorf("%d changes are missing: %w: %w", len(c.missing), err, context.Cause(ctx))
		}
		c.pages++
		if err := c.takeAll(&page, at); err != nil {
			return err
		}
	}
	return nil
}

// read requests a page, and returns it with the time at which its body was complete.
func (c *changeClient) read(ctx context.Context, query string) (page changePage, at time.Time, err error) {
	request, err := c.request(ctx, http.MethodGet, "/readings/changes?"+query, nil)
	if err != nil {
		return page, at, err
	}
	body, err := c.http.Read(request)
	at = time.Now()
	if err != nil {
		return page, at, err
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return page, at, fmt.Errorf("reading changes: %w", err)
	}
	c.cursor = page.Next
	return page, at, nil
}

func (c *changeClient) takeAll(page *changePage, at time.Time) error {
	for _, item := range page.Data {
		if err := c.take(item, at); err != nil {
			return err
		}
	}
	return nil
}

// take compares an item with the upload. The feed repeats a reading only if it changed again, which none does. It
// begins up to a tenth of a second before now, with readings of earlier uploads.
func (c *changeClient) take(item map[string]any, at time.Time) error {
	device, _ := item["device_id"].(string)
	bucket, _ := item["bucket_at"].(string)
	id, err := uuid.Parse(device)
	start, timeErr := time.Parse(time.RFC3339, bucket)
	if timeErr == nil && !c.window.Contains(start) {
		return nil
	}
	key := readingKey{id, start.Unix()}
	want, ok := c.missing[key]
	if err != nil || timeErr != nil || !ok || !equalValues(&want, item) {
		return fmt.Errorf("%w: a change is %v", errBody, item)
	}
	delete(c.missing, key)
	c.arrived[key] = at
	return nil
}
