package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"roomsensor/bench/load"
	"roomsensor/bench/workload"
	"roomsensor/test/proctest"
)

const prestVersion = "v1.5.5"

// prest changes devices in the tables of the service.
type prest struct {
	*proctest.Process
	suite *workload.Suite
	table string // URL
}

// startPREST starts the other program of W4 on the database of the service. It has no authentication and no limiter. It
// keeps as many connections to the database as the workload has: by default it opens one per request.
func startPREST(ctx context.Context, s *workload.Suite) (*workload.Rival, error) {
	program, err := s.Install(ctx, "github.com/prest/prest", prestVersion, "cmd/prestd")
	if err != nil {
		return nil, err
	}
	address, err := proctest.FreeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("reading an address: %w", err)
	}
	database, err := url.Parse(s.Database)
	if err != nil {
		return nil, fmt.Errorf("reading the database URL: %w", err)
	}
	query := database.Query()
	query.Set("sslmode", "disable")
	database.RawQuery = query.Encode()
	connections := fmt.Sprint(workload.PatchConnections)
	p := &prest{suite: s, table: "http://" + address + path.Join("/", database.Path, "public", "devices")}
	p.Process, err = start(ctx, s, "prest", "http://"+address+"/_health", proctest.Command{
		Path: program, Env: []string{
			"DATABASE_URL=" + database.String(), "PREST_HTTP_HOST=" + host, "PREST_HTTP_PORT=" + port,
			"PREST_JWT_DEFAULT=false", "PREST_PG_MAXIDLECONN=" + connections, "PREST_PG_MAXOPENCONN=" + connections,
			"PREST_QUERIES_LOCATION=" + filepath.Join(s.Dir, "prest-queries"), "PREST_CACHE_STORAGEPATH=" + s.Dir,
		},
	})
	if err != nil {
		return nil, err
	}
	return &workload.Rival{Name: "pREST " + prestVersion, Run: p.rate, Stop: p.Kill}, nil
}

// rate returns the changes of random devices per second.
func (p *prest) rate(ctx context.Context) (float64, error) {
	client := load.NewClient()
	defer client.CloseIdle()
	result, err := load.Closed(ctx, workload.PatchConnections, p.suite.Time,
		func(ctx context.Context, _, _ int) error { return p.patch(ctx, client) })
	if err != nil {
		return 0, err
	}
	return result.Rate(), nil
}

// patch changes a device of the team. pREST replaces all tags.
func (p *prest) patch(ctx context.Context, client *load.Client) error {
	value := rand.N(1_000_000_000) //nolint:gosec // Not a secret.
	body := fmt.Sprintf(`{"metadata":{"building":"b1","floor":"1","bench":"%d"}}`, value)
	device := p.suite.Fleet.DeviceID(rand.N(p.suite.Fleet.Devices)) //nolint:gosec // Not a secret.
	condition := url.Values{"id": {"$eq." + device.String()}, "team_id": {"$eq." + p.suite.Team().String()}}
	address := p.table + "?" + condition.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, address, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("creating a request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Read(request)
	if err == nil && !bytes.Contains(answer, []byte(`"rows_affected":1`)) {
		err = fmt.Errorf("%w: %s", errPeer, answer)
	}
	return err
}
