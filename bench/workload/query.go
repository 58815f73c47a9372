package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"roomsensor/bench/load"
	"roomsensor/bench/report"
)

// Query is what a row asks of the service: one request, or all pages of a list. Its answers are checked, and the
// service must repeat them.
type Query struct {
	suite *Suite
	ask   requestFunc
}

// Latency returns the median seconds of the query in a round, on one connection.
func (q *Query) Latency(ctx context.Context) (float64, error) {
	return q.suite.medianTime(ctx, q.suite.Time, q.ask)
}

// DatabaseTime returns the milliseconds that the database takes for one query, from planning to sending, in each round.
// That includes the authentication and the limiter. It is empty if the server does not record it.
func (q *Query) DatabaseTime(ctx context.Context) (sample report.Sample, err error) {
	s := q.suite
	for range s.Rounds {
		clients := s.newClients(1)
		if err := q.ask(ctx, clients[0], 0); err != nil { // The first request may insert API keys.
			return nil, err
		}
		queries := 0
		total, ok, err := s.StatementTime(ctx, anyStatement, func() error {
			result, err := load.Closed(ctx, 1, s.Time, func(ctx context.Context, _, n int) error {
				return q.ask(ctx, clients[0], n)
			})
			if err == nil {
				queries = result.Requests
			}
			return err
		})
		clients[0].http.CloseIdle()
		if err != nil || !ok {
			return nil, err
		}
		sample = append(sample, milliseconds(total)/float64(queries))
	}
	return sample, nil
}

// anyStatement is the pattern of all statements.
const anyStatement = ""

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// list returns a query for all pages of lists, whose answers are as given.
func (s *Suite) list(lists []*list) *Query {
	return &Query{s, func(ctx context.Context, c *client, n int) error {
		l := lists[n%len(lists)]
		pages, err := c.getList(ctx, l.path)
		if err != nil {
			return err
		}
		hash, err := hashOf(pages)
		if err == nil && hash != l.hash {
			return errDiffers
		}
		return err
	}}
}

// list is a list and the hash of its checked items.
type list struct {
	path string // under /v1, of the first page
	hash uint64
}

// checkList requests all pages of a list and calls check with the items of each page, as a JSON array.
func (s *Suite) checkList(ctx context.Context, path string, check func(pages [][]byte) error) (*list, error) {
	pages, err := s.newClients(1)[0].getList(ctx, path)
	if err == nil {
		err = check(pages)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	hash, err := hashOf(pages)
	return &list{path, hash}, err
}

func hashOf(pages [][]byte) (uint64, error) {
	digest, err := load.Digest(bytes.NewReader(bytes.Join(pages, nil)))
	return digest.Hash, err
}

// getList requests all pages of a list under /v1, and returns the items of each as a JSON array.
func (c *client) getList(ctx context.Context, path string) (pages [][]byte, err error) {
	resource, _, _ := strings.Cut(path, "?")
	for {
		request, err := c.request(ctx, http.MethodGet, path, nil)
		if err != nil {
			return nil, err
		}
		body, err := c.http.Read(request)
		if err != nil {
			return nil, err
		}
		items, cursor, err := splitPage(body)
		if err != nil {
			return nil, err
		}
		pages = append(pages, items)
		if cursor == "" {
			return pages, nil
		}
		path = resource + "?cursor=" + url.QueryEscape(cursor)
	}
}

// splitPage returns the items of a page as a JSON array, and the cursor of the next page, which is empty on the last
// one. Cursors are different in every response, so that hashes of whole bodies would differ.
func splitPage(body []byte) (items []byte, cursor string, err error) {
	const begin, between = `{"data":`, `,"next_cursor":`
	items, isList := bytes.CutPrefix(body, []byte(begin))
	i := bytes.LastIndex(items, []byte(between))
	if !isList || i < 0 {
		return nil, "", fmt.Errorf("%w: it is no list", errBody)
	}
	var end struct {
		Next *string `json:"next_cursor"`
	}
	if err := json.Unmarshal(append([]byte{'{'}, items[i+1:]...), &end); err != nil {
		return nil, "", fmt.Errorf("reading the end of a page: %w", err)
	}
	if end.Next != nil {
		cursor = *end.Next
	}
	return items[:i], cursor, nil
}
